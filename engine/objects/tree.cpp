#include "engine/objects/tree.hpp"

#include "engine/objects/tree_pieces.hpp"

namespace semel::engine {

TreeElement TreeCursor::element(EntryRoom& room) const noexcept {
  SEMEL_ASSERT(has_element());
  const TreeEntry entry = node(depth_ - 1).entry(steps_[depth_ - 1].index, room);
  return {entry.key.bytes, entry.value.bytes};
}

TreeElement TreeCursor::element() const noexcept {
  SEMEL_ASSERT(has_element());
  const TreeEntry entry = node(depth_ - 1).entry(steps_[depth_ - 1].index);
  return {entry.key.bytes, entry.value.bytes};
}

void TreeCursor::descend(bool to_last) noexcept {
  for (TreeNode at = node(depth_ - 1); !at.is_leaf(); at = node(depth_ - 1)) {
    const Handle child = at.child(steps_[depth_ - 1].index).node;
    SEMEL_ASSERT(depth_ < tree_levels_max);
    const unsigned last = TreeNode{*memory_, child}.entries() - 1;
    steps_[depth_++] = {child, to_last ? last : 0};
  }
}

void TreeCursor::next() noexcept {
  SEMEL_ASSERT(has_element());
  while (depth_ > 0) {
    Step& step = steps_[depth_ - 1];
    if (++step.index < TreeNode{*memory_, step.node}.entries()) return descend(false);
    --depth_;
  }
}

bool TreeCursor::previous() noexcept {
  if (root_ == 0) return false;
  if (depth_ == 0) {
    steps_[depth_++] = {root_, TreeNode{*memory_, root_}.entries() - 1};
    descend(true);
    return true;
  }
  for (unsigned depth = depth_; depth > 0; --depth) {
    if (steps_[depth - 1].index == 0) continue;
    --steps_[depth - 1].index;
    depth_ = depth;
    descend(true);
    return true;
  }
  return false;
}

std::optional<Bytes> Tree::find(Bytes sought) const noexcept {
  EntryRoom room;
  const std::optional<Bytes> value = find(sought, room);
  SEMEL_ASSERT_SLOW(!value || !room.has(value->data()));
  return value;
}

std::optional<Bytes> Tree::find(Bytes sought, EntryRoom& room) const noexcept {
  if (root_ == 0) return std::nullopt;
  const SoughtKey key{sought};
  TreeNode node{*memory_, root_};
  while (!node.is_leaf()) {
    const Handle child = node.child(node.child_for(key)).node;
    fetch_node(*memory_, child);
    node = {*memory_, child};
  }
  const unsigned index = node.lower_bound(key);
  if (index == node.entries() || !has_key(node, index, sought)) return std::nullopt;
  return node.entry(index, room).value.bytes;
}

std::uint64_t Tree::rank(Bytes sought) const noexcept {
  if (root_ == 0) return 0;
  const SoughtKey key{sought};
  std::uint64_t before = 0;
  TreeNode node{*memory_, root_};
  while (!node.is_leaf()) {
    const unsigned index = node.child_for(key);
    before += node.elements_before(index);
    node = {*memory_, node.child(index).node};
  }
  return before + node.lower_bound(key);
}

TreeCursor Tree::at(std::uint64_t rank) const noexcept {
  TreeCursor cursor = end();
  if (rank >= size().elements) return cursor;
  for (Handle handle = root_;;) {
    const TreeNode node{*memory_, handle};
    SEMEL_ASSERT(cursor.depth_ < tree_levels_max);
    if (node.is_leaf()) {
      cursor.steps_[cursor.depth_++] = {handle, static_cast<unsigned>(rank)};
      return cursor;
    }
    const unsigned index = node.child_at(rank);
    cursor.steps_[cursor.depth_++] = {handle, index};
    handle = node.child(index).node;
  }
}

TreeCursor Tree::lower_bound(Bytes sought) const noexcept {
  TreeCursor cursor = end();
  if (root_ == 0) return cursor;
  const SoughtKey key{sought};
  for (Handle handle = root_;;) {
    const TreeNode node{*memory_, handle};
    SEMEL_ASSERT(cursor.depth_ < tree_levels_max);
    const unsigned index = node.is_leaf() ? node.lower_bound(key) : node.child_for(key);
    cursor.steps_[cursor.depth_++] = {handle, index};
    if (!node.is_leaf()) {
      handle = node.child(index).node;
      fetch_node(*memory_, handle);
      continue;
    }
    if (index < node.entries()) return cursor;
    --cursor.steps_[cursor.depth_ - 1].index;  // behind its last entry: the next leaf's first
    cursor.next();
    return cursor;
  }
}

TreeCursor Tree::end() const noexcept {
  TreeCursor cursor;
  cursor.memory_ = memory_;
  cursor.root_ = root_;
  return cursor;
}

namespace {

struct Subtree {
  Handle node;
  Bytes from;  // not above any key of it
  Bytes to;    // above all of them
  bool has_to;
};

/// Of a list's leaf: each value begins where the one before has ended, and nothing is left.
bool has_all_bytes(const TreeNode& node) noexcept {
  const ListLeaf leaf = node.list();
  const unsigned count = leaf.count();
  std::size_t stored = 0;
  unsigned runs = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (leaf.at(i) != leaf.at(0) + stored) return false;
    stored += list_stored_bytes(leaf.length(i));
    runs += leaf.length(i) == list_run_length ? 1 : 0;
  }
  return node.head().used == sizeof(TreeNodeHead) + ListLeafDraft::bytes_of(count, stored) &&
         node.head().used <= list_leaf_bytes && node.head().places == runs;
}

/// Of a stream's leaf: entries alone, and runs where they are counted.
bool has_entries_alone(const TreeNode& node) noexcept {
  if (!node.is_leaf() || !node.entry_leaf().is_sound()) return false;
  unsigned runs = 0;
  EntryRoom room;
  for (unsigned i = 0; i < node.entries(); ++i) {
    const TreePart value = node.entry(i, room).value;
    if ((value.run != 0) != (value.bytes.size() >= tree_apart_min)) return false;
    runs += value.run != 0 ? 1 : 0;
  }
  return node.head().places == runs && node.head().dead == 0;
}

const char* check(const NodeMemory& memory, const Subtree& subtree, bool has_keys) {
  const TreeNode node{memory, subtree.node};
  const TreeNodeHead& head = node.head();
  const unsigned entries_max = node.is_list() ? list_leaf_entries_max : tree_entries_max;
  if (head.entries == 0 || head.entries > entries_max) return "a node's count of entries";
  if (head.used > head.room) return "a node's room";
  if (node.is_list() && (has_keys || !has_all_bytes(node))) return "a list's leaf";
  if (node.is_entry_leaf() && (!has_keys || !has_entries_alone(node))) return "a leaf of entries";
  if (head.form == NodeForm::entries && head.entries > head.places) return "a node's places";
  TreeSize size;
  EntryRoom room;
  EntryRoom room_before;
  for (unsigned i = 0; i < head.entries; ++i) {
    const TreeEntry entry = node.entry(i, room);
    const Bytes key = entry.key.bytes;
    if (!has_keys && !key.empty()) return "a key where there are none";
    if (has_keys && i > 0 && node.entry(i - 1, room_before).key.bytes >= key) {
      return "the order of keys";
    }
    if (!has_keys && node.is_leaf() && !node.is_list()) return "a leaf of a list";
    if (key < subtree.from && (node.is_leaf() || i > 0)) return "a key below its bound";
    if (has_keys && subtree.has_to && key >= subtree.to) return "a key above its bound";
    if (node.is_leaf()) {
      size += {1, key.size() + entry.value.bytes.size()};
      continue;
    }
    if (i == 0 && !key.empty()) return "a first child with a bound";
    const TreeChild child = node.child(i);
    const TreeNode below{memory, child.node};
    if (below.head().level + 1 != head.level) return "a level";
    if (below.head().size != child.size) return "the size of a child";
    size += child.size;
    Subtree next{child.node, i == 0 ? subtree.from : key, subtree.to, subtree.has_to};
    if (i + 1 < head.entries) next = {next.node, next.from, node.key(i + 1), true};
    if (const char* const wrong = check(memory, next, has_keys)) return wrong;
  }
  return size == head.size ? nullptr : "the size of a node";
}

}  // namespace

const char* Tree::check_invariants(bool has_keys) const {
  return root_ == 0 ? nullptr : check(*memory_, {root_, {}, {}, false}, has_keys);
}

void free_newer(NodeMemory& memory, Handle handle, std::uint64_t floor) noexcept {
  if (handle == 0 || memory.stamp(handle) <= floor) return;
  const TreeNode node{memory, handle};
  each_run(node, [&](Handle run) {
    if (memory.stamp(run) > floor) memory.free(run);
  });
  for (unsigned i = 0; !node.is_leaf() && i < node.entries(); ++i) {
    free_newer(memory, node.child(i).node, floor);
  }
  memory.free(handle);
}

}  // namespace semel::engine
