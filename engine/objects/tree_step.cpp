#include "engine/objects/tree_step.hpp"

#include <algorithm>

namespace semel::engine {

namespace {

/// Of a stream. Its head lies in no leaf that is full: each entry that comes changes the head. And
/// where the last of a section comes, the next one begins another leaf: those that follow it come
/// at the end of theirs then, and fill it. 0: neither is so.
unsigned split_sections(const Pieces& pieces, const NodeChange& change) noexcept {
  const unsigned count = pieces.count();
  const auto section = [&](unsigned index) {
    const Bytes key = pieces[index].key.bytes;
    return key.empty() ? '\0' : key.front();
  };
  unsigned split = 1;
  if (section(0) != static_cast<char>(StreamSection::head)) {
    split = change.index + change.added;
    if (change.added <= change.removed || split >= count) return 0;
  }
  if (section(split - 1) == section(split)) return 0;
  return split <= tree_entries_max && count - split <= tree_entries_max ? split : 0;
}

/// The entries of the first node; all of them: they fit into one.
unsigned split_at(const Pieces& pieces, const NodeChange& change, bool has_sections) noexcept {
  const unsigned count = pieces.count();
  if (count < 2 || (count <= tree_entries_max && pieces.bytes() <= tree_node_bytes)) return count;
  if (has_sections) {
    if (const unsigned split = split_sections(pieces, change); split != 0) return split;
  }
  // Elements in order fill their nodes: a full node begins another one at its end or begin.
  if (count <= tree_entries_max + 1 && change.added > change.removed) {
    if (change.index + change.added == count) return count - 1;
    if (change.index == 0) return 1;
  }
  unsigned split = 1;
  for (std::size_t bytes = pieces[0].raw.size() + place_bytes;
       split < count - 1 && bytes * 2 < pieces.bytes(); ++split) {
    bytes += pieces[split].raw.size() + place_bytes;
  }
  return std::clamp(split, count > tree_entries_max ? count - tree_entries_max : 1,
                    tree_entries_max);
}

/// One entry takes the place of another and is as long: above the leaves nearly always.
bool has_same_bytes(const TreeNode& node, const NodeChange& change) noexcept {
  return change.removed == 1 && change.added == 1 &&
         node.entry(change.index).raw.size() == change.pieces[0].raw.size();
}

bool is_too_small(const Pieces& pieces, const NodeChange& change) noexcept {
  return change.removed > change.added && pieces.count() < tree_entries_min &&
         pieces.bytes() < tree_bytes_min;
}

/// A leaf of entries is unpacked to join its neighbour, which takes longer than to copy it.
constexpr unsigned packed_entries_min = 4;

/// Whether a leaf of entries stays one with the change.
bool stays_packed(const TreeNode& leaf, const NodeChange& change) noexcept {
  return change.removed == 1 && change.added == 0 && leaf.entries() > packed_entries_min;
}

bool has_entries_first(const TreeNode& leaf) noexcept {
  return leaf.is_entry_leaf() || is_entry_key(leaf.key(0));
}

}  // namespace

bool TreeStep::find(Bytes sought) noexcept {
  if (draft_.root == 0) return false;
  const SoughtKey key{sought};
  for (Handle handle = draft_.root;;) {
    const TreeNode node{memory_, handle};
    SEMEL_ASSERT(depth_ < tree_levels_max);
    const unsigned index = node.is_leaf() ? node.lower_bound(key) : node.child_for(key);
    path_[depth_++] = {handle, index};
    if (node.is_leaf()) return index < node.entries() && has_key(node, index, sought);
    handle = node.child(index).node;
    fetch_node(memory_, handle);
  }
}

bool TreeStep::find_at(std::uint64_t rank) noexcept {
  if (draft_.root == 0) return false;
  for (Handle handle = draft_.root;;) {
    const TreeNode node{memory_, handle};
    SEMEL_ASSERT(depth_ < tree_levels_max);
    if (node.is_leaf()) {
      SEMEL_ASSERT(rank <= node.entries());
      path_[depth_++] = {handle, static_cast<unsigned>(rank)};
      return rank < node.entries();
    }
    const unsigned index = node.child_at(rank);  // behind the last of all, the last child
    path_[depth_++] = {handle, index};
    handle = node.child(index).node;
    fetch_node(memory_, handle);
  }
}

TreeElementBytes TreeStep::element_bytes() noexcept {
  const TreeNode leaf = node(depth_ - 1);
  const unsigned index = path_[depth_ - 1].index;
  if (leaf.is_entry_leaf() && !leaf.entry_leaf().is_run(index)) {
    return {entry_key_bytes, leaf.entry_leaf().value_bytes(index)};
  }
  const TreeEntry found = entry();
  return {found.key.bytes.size(), found.value.bytes.size()};
}

TreeChange TreeStep::insert(Bytes key, Bytes value) {
  const TreeSize size{1, key.size() + value.size()};
  NodeChange change{.added = 1, .delta = size};
  if (depth_ != 0) change.index = path_[depth_ - 1].index;
  if (!draft_.reserve(dropped_max())) return TreeChange::no_memory;
  const TreePart new_key = maker_.part(key);
  const TreePart new_value = maker_.part(value);
  if (maker_.failed()) return finish(TreeChange::no_memory, false);
  change.pieces[0] = maker_.piece(new_key, new_value, size);
  return finish(TreeChange::added, apply_above(depth_, change));
}

TreeChange TreeStep::replace(Bytes value) {
  SEMEL_ASSERT(depth_ != 0);
  const unsigned index = path_[depth_ - 1].index;
  const TreeEntry old = entry();
  if (old.value.bytes == value) return TreeChange::nothing;
  const std::size_t key_bytes = old.key.bytes.size();
  const TreeSize size{1, key_bytes + value.size()};
  NodeChange change{.index = index, .removed = 1, .added = 1};
  change.delta = minus(size, {1, key_bytes + old.value.bytes.size()});
  if (!draft_.reserve(dropped_max())) return TreeChange::no_memory;
  drop(old.value.run);
  const TreePart new_value = maker_.part(value);
  if (maker_.failed()) return finish(TreeChange::no_memory, false);
  change.pieces[0] = maker_.piece(old.key, new_value, size);
  return finish(TreeChange::replaced, apply_above(depth_, change));
}

TreeChange TreeStep::erase() {
  SEMEL_ASSERT(depth_ != 0);
  const unsigned index = path_[depth_ - 1].index;
  if (!draft_.reserve(dropped_max())) return TreeChange::no_memory;
  const TreeElementBytes bytes = element_bytes();
  const TreeNode leaf = node(depth_ - 1);
  if (!leaf.is_entry_leaf() || leaf.entry_leaf().is_run(index)) {
    const TreeEntry old = entry();
    drop(old.key.run);
    drop(old.value.run);
  }
  const TreeSize size{1, bytes.key + bytes.value};
  NodeChange change{.index = index, .removed = 1, .delta = minus({}, size)};
  return finish(TreeChange::erased, apply_above(depth_, change));
}

TreeChange TreeStep::finish(TreeChange change, bool done) {
  if (!done) {
    maker_.free_all();
    return TreeChange::no_memory;
  }
  for (unsigned i = 0; i < gone_count_; ++i) draft_.drop(gone_[i]);
  return change;
}

bool TreeStep::apply_above(unsigned level, NodeChange& change) {
  if (depth_ == 0) {
    draft_.root = maker_.node(0, {change.pieces.data(), 1}, false).node;
    return !maker_.failed();
  }
  while (level-- > 0) {
    if (changes_in_place(level, change)) {
      change_in_place(level, change);
      add_to_parents(level, change.delta);
      return true;
    }
    if (is_plain(level, change)) return copy(level, change);
    if (!rewrite(level, change)) return false;
  }
  return true;
}

// --- in place -------------------------------------------------------------------------------

bool TreeStep::changes_in_place(unsigned level, const NodeChange& change) const noexcept {
  if (!draft_.is_fresh(path_[level].node)) return false;
  if (node(level).is_entry_leaf()) return stays_packed(node(level), change);
  if (has_same_bytes(node(level), change)) return true;
  const TreeNodeHead& head = node(level).head();
  const unsigned entries = change.entries_of(head);
  if (entries > head.places || head.used + change.added_bytes() > head.room) return false;
  // A first child has no bound, and a small node joins its neighbour: rewrite() sees to both.
  if (head.level > 0 && change.index == 0 && change.added == 0) return false;
  return change.added >= change.removed || entries >= tree_entries_min;
}

void TreeStep::change_in_place(unsigned level, const NodeChange& change) noexcept {
  char* const to = memory_.writable(path_[level].node);
  auto& head = *reinterpret_cast<TreeNodeHead*>(to);
  head.size += change.delta;
  if (node(level).is_entry_leaf()) {
    head.places = static_cast<std::uint16_t>(
        head.places - (node(level).entry_leaf().is_run(change.index) ? 1 : 0));
    head.used = static_cast<std::uint32_t>(
        EntryLeaf::erase(to, sizeof head, head.entries, head.used, change.index));
    --head.entries;
    return;
  }
  if (has_same_bytes(node(level), change)) {
    const Bytes raw = change.pieces[0].raw;
    std::memcpy(const_cast<char*>(node(level).entry(change.index).raw.data()), raw.data(),
                raw.size());
    return;
  }
  for (unsigned i = 0; i < change.removed; ++i) {
    head.dead += static_cast<std::uint16_t>(node(level).entry(change.index + i).raw.size());
  }
  char* const places = to + sizeof(TreeNodeHead);
  const unsigned behind = change.index + change.removed;
  SEMEL_ASSERT(behind <= head.entries);
  std::memmove(places + (change.index + change.added) * place_bytes, places + behind * place_bytes,
               (head.entries - behind) * place_bytes);
  head.entries = static_cast<std::uint16_t>(change.entries_of(head));
  for (unsigned i = 0; i < change.added; ++i) {
    NodeMaker::append(to, change.index + i, change.pieces[i].raw);
  }
}

/// The parents of a fresh node are fresh.
void TreeStep::add_to_parents(unsigned level, const TreeSize& delta) noexcept {
  while (level-- > 0) {
    SEMEL_ASSERT(draft_.is_fresh(path_[level].node));
    reinterpret_cast<TreeNodeHead*>(memory_.writable(path_[level].node))->size += delta;
    const TreeEntry entry = node(level).entry(path_[level].index);
    TreeChild child = node(level).child(path_[level].index);
    child.size += delta;
    std::memcpy(const_cast<char*>(entry.value.bytes.data()), &child, sizeof child);
  }
}

// --- anew -----------------------------------------------------------------------------------

/// Whether the node with the change is one node, and none of its entries is written otherwise.
bool TreeStep::is_plain(unsigned level, const NodeChange& change) const noexcept {
  if (node(level).is_entry_leaf()) return stays_packed(node(level), change);
  const TreeNodeHead& head = node(level).head();
  if (head.dead != 0) return false;
  const unsigned entries = head.entries - change.removed + change.added;
  std::size_t bytes = head.used + change.added * place_bytes;
  for (unsigned i = 0; i < change.added; ++i) bytes += change.pieces[i].raw.size();
  if (entries > tree_entries_max || bytes > tree_node_bytes) return false;
  if (change.added >= change.removed) return true;
  const bool is_first_child = head.level > 0 && change.index == 0;
  return entries >= tree_entries_min && !is_first_child;
}

/// With a copy that does not look at the entries that stay.
bool TreeStep::copy(unsigned level, const NodeChange& change) {
  const Handle from = path_[level].node;
  const TreeNode old = node(level);
  NodeMaker::Made made;
  if (old.is_entry_leaf()) {
    made = maker_.copy_entries(from, change.index, change.delta);
  } else if (has_same_bytes(old, change)) {
    const std::size_t offset = old.offset(old.entry(change.index).raw);
    made = maker_.copy_with(from, offset, change.pieces[0].raw, change.delta);
  } else {
    made = maker_.copy(from, change, draft_.is_fresh(from));
  }
  if (maker_.failed()) return false;
  drop(from);
  return point_to(made, level, change.delta);
}

/// The node at `level` has become `made`, with the same bound: above it only the child changes.
bool TreeStep::point_to(NodeMaker::Made made, unsigned level, const TreeSize& delta) {
  while (level-- > 0) {
    const Place& place = path_[level];
    const TreeChild child{made.node, made.size};
    const Bytes bytes{reinterpret_cast<const char*>(&child), sizeof child};
    const std::size_t offset = node(level).offset(node(level).entry(place.index).value.bytes);
    if (draft_.is_fresh(place.node)) {
      char* const to = memory_.writable(place.node);
      reinterpret_cast<TreeNodeHead*>(to)->size += delta;
      std::memcpy(to + offset, bytes.data(), bytes.size());
      add_to_parents(level, delta);
      return true;
    }
    made = maker_.copy_with(place.node, offset, bytes, delta);
    if (maker_.failed()) return false;
    drop(place.node);
  }
  return set_root(made.node);
}

/// Writes the node anew, as one or two or none, and makes `change` what its parent has to do.
bool TreeStep::rewrite(unsigned level, NodeChange& change) {
  Pieces pieces;
  UnpackedEntries unpacked;
  collect(level, change, pieces, unpacked);
  const bool with_room = draft_.is_fresh(path_[level].node);  // it is changed again and again
  bool was_packed = node(level).is_entry_leaf();
  const std::uint8_t height = node(level).head().level;
  const bool is_root = level == 0;
  drop(path_[level].node);
  NodeChange above{.delta = change.delta};
  TreePart bound;  // of the first node
  if (!is_root) {
    above.index = path_[level - 1].index;
    above.removed = 1;
    if (is_too_small(pieces, change)) {
      const unsigned with = neighbour(level, pieces.count());
      if (with != above.index) was_packed |= join(level, with, pieces, unpacked, above);
    }
    bound = node(level - 1).entry(above.index).key;
  }
  if (pieces.count() == 0) {
    drop(bound.run);
    if (is_root) draft_.root = 0;
    change = above;
    return true;
  }
  if (is_root && height > 0 && pieces.count() == 1) return drop_root(pieces[0]), true;

  const bool is_stream_leaf = height == 0 && draft_.is_stream;
  const unsigned split = split_at(pieces, change, is_stream_leaf);
  TreePart second_bound;
  if (split < pieces.count()) {
    if (height == 0) {
      second_bound =
          maker_.part(bound_between(pieces[split - 1].key.bytes, pieces[split].key.bytes));
    } else {  // it moves up: a first child has none
      second_bound = pieces[split].key;
      pieces.replace(split, maker_.piece({}, pieces[split].value, pieces[split].size));
    }
  }
  // Where elements come in order, the node that they leave behind is full.
  const bool is_left_behind = split + 1 == pieces.count();
  const bool stays_settled = was_packed && change.added == 0;
  // `is_settled`: no entry comes to it any more.
  const auto make = [&](std::span<const Piece> part, bool has_room, bool is_settled) {
    return is_stream_leaf && is_settled ? maker_.entries(part)
                                        : maker_.node(height, part, has_room);
  };
  const NodeMaker::Made first =
      make(pieces.part(0, split), with_room && !is_left_behind, stays_settled || is_left_behind);
  if (is_root && split == pieces.count()) return set_root(first.node);
  above.pieces[above.added++] = maker_.child_piece(bound, first);
  if (split < pieces.count()) {
    const NodeMaker::Made second =
        make(pieces.part(split, pieces.count()), with_room && split != 1, stays_settled);
    above.pieces[above.added++] = maker_.child_piece(second_bound, second);
  }
  if (is_root) {
    const auto higher = static_cast<std::uint8_t>(height + 1);
    return set_root(maker_.node(higher, {above.pieces.data(), above.added}, with_room).node);
  }
  change = above;
  return !maker_.failed();
}

bool TreeStep::set_root(Handle root) noexcept {
  if (!maker_.failed()) draft_.root = root;
  return !maker_.failed();
}

/// The node's entries with the change, and without a bound of the first child.
void TreeStep::collect(unsigned level, const NodeChange& change, Pieces& pieces,
                       UnpackedEntries& unpacked) noexcept {
  const TreeNode from = node(level);
  const auto take = [&](unsigned begin, unsigned end) {
    for (unsigned i = begin; i < end; ++i) pieces.add(unpacked.piece_of(from, i));
  };
  take(0, change.index);
  for (unsigned i = 0; i < change.added; ++i) pieces.add(change.pieces[i]);
  take(change.index + change.removed, from.entries());
  if (from.is_leaf() || pieces.count() == 0 || pieces[0].key.bytes.empty()) return;
  drop(pieces[0].key.run);
  pieces.replace(0, maker_.piece({}, pieces[0].value, pieces[0].size));
}

/// Of a stream, entries join entries only, for they would be parted again; and no leaf joins one
/// that is so full that both would be two again, as it would be with the first leaf of a queue.
unsigned TreeStep::neighbour(unsigned level, unsigned count) const noexcept {
  const TreeNode parent = node(level - 1);
  const unsigned own = path_[level - 1].index;
  const auto fits = [&](unsigned other) {
    if (!draft_.is_stream || !node(level).is_leaf()) return true;
    const TreeNode leaf{memory_, parent.child(other).node};
    return count != 0 && count + leaf.entries() <= tree_entries_max &&
           has_entries_first(leaf) == has_entries_first(node(level));
  };
  if (own + 1 < parent.entries() && fits(own + 1)) return own + 1;
  return own > 0 && fits(own - 1) ? own - 1 : own;
}

/// Takes the entries of a neighbour in, which then goes as well.
bool TreeStep::join(unsigned level, unsigned with, Pieces& pieces, UnpackedEntries& unpacked,
                    NodeChange& above) noexcept {
  const TreeNode parent = node(level - 1);
  const unsigned own = path_[level - 1].index;
  const bool is_right = with > own;  // the neighbour
  const unsigned right = is_right ? own + 1 : own;
  const TreePart bound = parent.entry(right).key;
  const Handle other = parent.child(with).node;
  const TreeNode neighbour{memory_, other};
  Pieces all;
  // Above the leaves the bound comes down to the child that was first in the right node, unless
  // nothing is left before it.
  bool is_used = false;
  const auto add = [&](const Piece& from, bool is_right_first) {
    const bool takes_bound = is_right_first && !neighbour.is_leaf() && all.count() > 0;
    is_used |= takes_bound;
    all.add(takes_bound ? maker_.piece(bound, from.value, from.size) : from);
  };
  const auto add_neighbour = [&] {
    for (unsigned i = 0; i < neighbour.entries(); ++i) {
      add(unpacked.piece_of(neighbour, i), is_right && i == 0);
    }
  };
  if (!is_right) add_neighbour();
  for (unsigned i = 0; i < pieces.count(); ++i) add(pieces[i], !is_right && i == 0);
  if (is_right) add_neighbour();
  if (!is_used) drop(bound.run);
  drop(other);
  pieces.assign(all);
  above.index = right - 1;
  above.removed = 2;
  return neighbour.is_entry_leaf();
}

/// A root with one child is none.
void TreeStep::drop_root(const Piece& only) noexcept {
  TreeChild child;
  std::memcpy(&child, only.value.bytes.data(), sizeof child);
  draft_.root = child.node;
}

}  // namespace semel::engine
