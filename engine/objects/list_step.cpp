#include "engine/objects/list_step.hpp"

#include <algorithm>

namespace semel::engine {

namespace {

/// How many values the first leaf has; all of them: they fit into one. A leaf that grows at the end
/// or begin of the list is left full, as one that values go to in order.
unsigned split_at(const ListLeafDraft& draft, bool is_at_end, bool is_at_begin) noexcept {
  if (draft.is_one_leaf()) return draft.count();
  if (is_at_end) return draft.first_of_full();
  if (is_at_begin) return draft.count() - draft.last_of_full();
  return draft.half();
}

}  // namespace

ListStep::Value ListStep::stored(const TreePart& part) noexcept {
  if (part.run == 0) return {static_cast<std::uint8_t>(part.bytes.size()), part.bytes.data()};
  run_ = part.run;
  return {list_run_length, reinterpret_cast<const char*>(&run_)};
}

TreeChange ListStep::insert_value(Bytes value) {
  if (!draft_.reserve(dropped_max())) return TreeChange::no_memory;
  const TreePart part = maker_.part(value, list_apart_min);
  if (maker_.failed()) return finish(TreeChange::no_memory, false);
  const Value added = stored(part);
  const bool done = write({.added = added.values(), .delta = {1, value.size()}});
  return finish(TreeChange::added, done);
}

TreeChange ListStep::insert_values(const ListValues& values) {
  SEMEL_ASSERT(!values.has_runs && values.count != 0);
  if (!draft_.reserve(dropped_max())) return TreeChange::no_memory;
  return finish(TreeChange::added,
                write({.added = values, .delta = {values.count, values.stored}}));
}

TreeChange ListStep::replace_value(Bytes value) {
  const TreePart old = entry().value;
  if (old.bytes == value) return TreeChange::nothing;
  const TreeSize delta = minus({1, value.size()}, {1, old.bytes.size()});
  if (!draft_.reserve(dropped_max())) return TreeChange::no_memory;
  drop(old.run);
  const TreePart part = maker_.part(value, list_apart_min);
  if (maker_.failed()) return finish(TreeChange::no_memory, false);
  const Value added = stored(part);
  const bool done = write({.removed = 1, .added = added.values(), .delta = delta});
  return finish(TreeChange::replaced, done);
}

TreeChange ListStep::erase_value() {
  if (!draft_.reserve(dropped_max())) return TreeChange::no_memory;
  const TreePart old = entry().value;
  drop(old.run);
  const TreeSize delta = minus({}, {1, old.bytes.size()});
  return finish(TreeChange::erased, write({.removed = 1, .delta = delta, .joins = true}));
}

TreeChange ListStep::erase_values(unsigned count) {
  if (!draft_.reserve(dropped_max())) return TreeChange::no_memory;
  const unsigned index = path_[depth_ - 1].index;
  const std::size_t bytes = leaf_node().list().values(index, index + count).stored;
  const TreeSize delta = minus({}, {count, bytes});
  return finish(TreeChange::erased, write({.removed = count, .delta = delta}));
}

Handle ListStep::join(const Splice& splice, NodeChange& change, bool& is_right) noexcept {
  if (!splice.joins || depth_ < 2) return 0;
  const TreeNodeHead& head = leaf_node().head();
  const TreeNode parent = node(depth_ - 2);
  const unsigned left = head.entries - splice.removed;
  // Of none at all its neighbour would be written anew as it is.
  if (left == 0 || left >= tree_entries_min || head.used >= tree_bytes_min ||
      parent.entries() < 2) {
    return 0;
  }
  is_right = change.index + 1 < parent.entries();
  if (!is_right) --change.index;
  change.removed = 2;
  return parent.child(is_right ? change.index + 1 : change.index).node;
}

bool ListStep::write(const Splice& splice) {
  ListLeafDraft draft;
  if (depth_ == 0) {
    draft.add(splice.added);
    return set_root(maker_.leaf(draft.values(0, draft.count()), &splice.delta).node);
  }
  const unsigned level = depth_ - 1;
  const unsigned index = path_[level].index;
  const ListLeaf leaf = leaf_node().list();
  const unsigned behind = index + splice.removed;
  NodeChange above{.removed = 1, .delta = splice.delta};
  if (level != 0) above.index = path_[level - 1].index;
  bool is_right = false;
  const Handle other = join(splice, above, is_right);
  TreeSize total = leaf_node().head().size;
  total += splice.delta;
  if (other != 0) total += TreeNode{memory_, other}.head().size;
  const auto add_other = [&] {
    const ListLeaf neighbour = TreeNode{memory_, other}.list();
    draft.add(neighbour.values(0, neighbour.count()));
  };
  if (other != 0 && !is_right) add_other();
  draft.add(leaf.values(0, index));
  draft.add(splice.added);
  draft.add(leaf.values(behind, leaf.count()));
  if (other != 0 && is_right) add_other();
  if (other == 0 && shrink_in_place(splice, draft)) return true;

  drop(path_[level].node);
  drop(other);
  const unsigned count = draft.count();
  if (count == 0) return level == 0 ? (draft_.root = 0, true) : apply_above(level, above);
  const bool has_added_only = splice.removed == 0 && other == 0;
  const unsigned split =
      split_at(draft, has_added_only && behind == leaf.count(), has_added_only && is_at_begin());
  const auto [first, second] = make_leaves(draft, split, total);
  if (maker_.failed()) return false;
  if (second.node == 0 && other == 0) return point_to(first, level, splice.delta);
  above.pieces[above.added++] = maker_.child_piece({}, first);
  if (second.node != 0) above.pieces[above.added++] = maker_.child_piece({}, second);
  if (level != 0) return apply_above(level, above);
  return set_root(maker_.node(1, {above.pieces.data(), above.added}, false).node);
}

bool ListStep::is_at_begin() const noexcept {
  return std::all_of(path_.begin(), path_.begin() + depth_,
                     [](const Place& place) { return place.index == 0; });
}

/// Of two leaves the sizes of the fewer values are summed up, and the others have the rest.
std::array<NodeMaker::Made, 2> ListStep::make_leaves(const ListLeafDraft& draft, unsigned split,
                                                     const TreeSize& total) {
  const unsigned count = draft.count();
  if (split == count) return {maker_.leaf(draft.values(0, count), &total)};
  const ListValues first = draft.values(0, split);
  const ListValues second = draft.values(split, count);
  const bool is_first_small = first.count < second.count;
  const NodeMaker::Made small = maker_.leaf(is_first_small ? first : second);
  const TreeSize rest = minus(total, small.size);
  const NodeMaker::Made large = maker_.leaf(is_first_small ? second : first, &rest);
  if (is_first_small) return {small, large};
  return {large, small};
}

/// In a leaf that this edit has made: an edit that erases many values makes no leaf for each.
bool ListStep::shrink_in_place(const Splice& splice, const ListLeafDraft& draft) noexcept {
  const unsigned level = depth_ - 1;
  if (draft.count() == 0 || !draft_.is_fresh(path_[level].node)) return false;
  const ListValues values = draft.values(0, draft.count());
  const std::size_t used =
      sizeof(TreeNodeHead) + ListLeafDraft::bytes_of(values.count, values.stored);
  if (used > leaf_node().head().room || !draft.is_one_leaf()) return false;
  char* const to = memory_.writable(path_[level].node);
  NodeMaker::write_leaf(values, to);
  reinterpret_cast<TreeNodeHead*>(to)->size += splice.delta;
  add_to_parents(level, splice.delta);
  return true;
}

}  // namespace semel::engine
