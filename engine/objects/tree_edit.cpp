#include "engine/objects/tree_edit.hpp"

#include <new>

#include "engine/objects/list_step.hpp"

namespace semel::engine {

TreeEdit::~TreeEdit() {
  if (!committed_ && draft_.root != 0) free_fresh(draft_.root);
}

TreeChange TreeEdit::put(Bytes key, Bytes value) {
  SEMEL_ASSERT(!committed_);
  TreeStep step{draft_};
  return step.find(key) ? step.replace(value) : step.insert(key, value);
}

TreeChange TreeEdit::erase(Bytes key, TreeElementBytes& bytes) {
  SEMEL_ASSERT(!committed_);
  TreeStep step{draft_};
  if (!step.find(key)) return TreeChange::nothing;
  bytes = step.element_bytes();
  return step.erase();
}

TreeChange TreeEdit::erase_if(Bytes key, Bytes value) {
  SEMEL_ASSERT(!committed_);
  TreeStep step{draft_};
  return step.find(key) && step.entry().value.bytes == value ? step.erase() : TreeChange::nothing;
}

TreeChange TreeEdit::insert_at(std::uint64_t rank, Bytes value) {
  SEMEL_ASSERT(!committed_);
  ListStep step{draft_};
  static_cast<void>(step.find_at(rank));
  return step.insert_value(value);
}

TreeChange TreeEdit::set_at(std::uint64_t rank, Bytes value) {
  SEMEL_ASSERT(!committed_);
  ListStep step{draft_};
  const bool is_there = step.find_at(rank);
  SEMEL_ASSERT(is_there);
  return step.is_list() ? step.replace_value(value) : step.replace(value);
}

TreeChange TreeEdit::erase_at(std::uint64_t rank, TreeElementBytes& bytes) {
  SEMEL_ASSERT(!committed_);
  ListStep step{draft_};
  const bool is_there = step.find_at(rank);
  SEMEL_ASSERT(is_there);
  bytes = step.element_bytes();
  return step.is_list() ? step.erase_value() : step.erase();
}

TreeChange TreeEdit::insert_values(const ListValues& values, TreeEnd end) {
  SEMEL_ASSERT(!committed_);
  ListStep step{draft_};
  static_cast<void>(step.find_at(end == TreeEnd::begin ? 0 : tree().size().elements));
  return step.insert_values(values);
}

unsigned TreeEdit::leaf_entries(TreeEnd end) const noexcept {
  if (draft_.root == 0) return 0;
  TreeNode node{draft_.memory, draft_.root};
  while (!node.is_leaf()) {
    node = {draft_.memory, node.child(end == TreeEnd::begin ? 0 : node.entries() - 1).node};
  }
  return node.entries();
}

TreeChange TreeEdit::erase_values(unsigned count, TreeEnd end) {
  SEMEL_ASSERT(!committed_);
  ListStep step{draft_};
  static_cast<void>(step.find_at(end == TreeEnd::begin ? 0 : tree().size().elements - count));
  return step.erase_values(count);
}

bool TreeEdit::clear() {
  if (draft_.root == 0) return true;
  try {
    std::vector<Handle> all;
    collect(draft_.root, all);
    if (!draft_.reserve(all.size())) return false;
    for (const Handle handle : all) draft_.drop(handle);
  } catch (const std::bad_alloc&) {
    return false;
  }
  free_fresh(draft_.root);
  draft_.root = 0;
  return true;
}

void TreeEdit::trim() noexcept {
  SEMEL_ASSERT(!committed_);
  if (draft_.root != 0 && draft_.is_fresh(draft_.root)) draft_.root = trimmed(draft_.root);
}

Handle TreeEdit::trimmed(Handle handle) noexcept {
  const TreeNode node{draft_.memory, handle};
  for (unsigned i = 0; !node.is_leaf() && i < node.entries(); ++i) {
    TreeChild child = node.child(i);
    if (!draft_.is_fresh(child.node)) continue;
    child.node = trimmed(child.node);
    std::memcpy(const_cast<char*>(node.entry(i).value.bytes.data()), &child, sizeof child);
  }
  const TreeNodeHead& head = node.head();
  const std::size_t unused = head.room - head.used + head.dead;
  if (unused <= head.room / 8) return handle;
  NodeMaker maker{draft_.memory, draft_.stamp};
  NodeMaker::Made made;
  if (node.is_list()) {
    made = maker.leaf(node.list().values(0, node.entries()), &head.size);
  } else if (node.is_entry_leaf()) {
    made = maker.copy_entries(handle, EntryLeaf::no_entry, {});
  } else {
    Pieces pieces;
    for (unsigned i = 0; i < node.entries(); ++i) pieces.add(piece_of(node, i));
    made = maker.node(head.level, pieces.part(0, pieces.count()), false);
  }
  if (maker.failed()) return handle;
  draft_.memory.free(handle);
  return made.node;
}

void TreeEdit::commit() noexcept {
  SEMEL_ASSERT(!committed_);
  committed_ = true;
  draft_.retire_dropped();
}

/// Those that are not fresh. A node that is not fresh has no fresh ones below it.
void TreeEdit::collect(Handle handle, std::vector<Handle>& to) const {
  const TreeNode node{draft_.memory, handle};
  if (!draft_.is_fresh(handle)) to.push_back(handle);
  each_run(node, [&](Handle run) {
    if (!draft_.is_fresh(run)) to.push_back(run);
  });
  for (unsigned i = 0; !node.is_leaf() && i < node.entries(); ++i) collect(node.child(i).node, to);
}

void TreeEdit::free_fresh(Handle handle) noexcept {
  if (!draft_.is_fresh(handle)) return;
  const TreeNode node{draft_.memory, handle};
  each_run(node, [&](Handle run) {
    if (draft_.is_fresh(run)) draft_.memory.free(run);
  });
  for (unsigned i = 0; !node.is_leaf() && i < node.entries(); ++i) free_fresh(node.child(i).node);
  draft_.memory.free(handle);
}

}  // namespace semel::engine
