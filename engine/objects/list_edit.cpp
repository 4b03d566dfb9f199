#include "engine/objects/list_edit.hpp"

namespace semel::engine {

namespace {

/// An end that is empty takes elements only from a tree with some more.
constexpr std::uint64_t refilled_from = 64;

std::uint64_t size_of(const TreeEdit& tree) noexcept {
  return tree.tree().size().elements;
}

/// A short value, apart from where it lay: it may be an element of this list, which moves.
class KeptValue {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  explicit KeptValue(Bytes value) noexcept : bytes_(value) {
    if (value.empty() || value.size() > kept_.size()) return;  // a longer one lies in a run
    std::memcpy(kept_.data(), value.data(), value.size());
    bytes_ = {kept_.data(), value.size()};
  }
  KeptValue(const KeptValue&) = delete;
  KeptValue& operator=(const KeptValue&) = delete;

  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }

 private:
  std::array<char, tree_apart_min - 1> kept_;
  Bytes bytes_;
};
static_assert(list_end_value_max < tree_apart_min);

/// How many of an end go to the tree so that the rest fills half of it.
unsigned above_half(const EndDraft& end, TreeEnd which) noexcept {
  const EndElements all = end.view();
  unsigned bytes = end.bytes();
  unsigned gone = 0;
  for (; all.size() - gone > list_end_elements_max / 2 || bytes > list_end_bytes_max / 2; ++gone) {
    const unsigned next = which == TreeEnd::begin ? all.size() - 1 - gone : gone;
    bytes -= static_cast<unsigned>(all.at(next).size());
  }
  return gone;
}

/// Elements of an end as the entries of a leaf.
class EndLeaf {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  EndLeaf(const EndElements& from, unsigned first, unsigned count) noexcept : count_(count) {
    SEMEL_ASSERT(count <= list_end_elements_max);
    base::ByteWriter to{bytes_.data()};
    for (unsigned i = 0; i < count; ++i) {
      const Bytes value = from.at(first + i);
      const char* const begin = to.end();
      to.varint(0);  // no key
      to.varint(value.size());
      to.bytes(value);
      const Bytes raw{begin, static_cast<std::size_t>(to.end() - begin)};
      pieces_[i] = {raw, {}, {raw.substr(raw.size() - value.size()), 0}, {1, value.size()}};
    }
  }
  EndLeaf(const EndLeaf&) = delete;
  EndLeaf& operator=(const EndLeaf&) = delete;

  [[nodiscard]] std::span<const Piece> pieces() const noexcept { return {pieces_.data(), count_}; }

 private:
  static constexpr std::size_t lengths_max = 3;  // varints of 0 and of up to 255
  std::array<char, list_end_bytes_max + list_end_elements_max * lengths_max> bytes_;
  std::array<Piece, list_end_elements_max> pieces_;
  unsigned count_;
};
static_assert(list_end_elements_max <= tree_leaf_given_max);
static_assert(tree_leaf_given_max <= tree_entries_max);

}  // namespace

// --- between the parts --------------------------------------------------------------------------

bool ListEdit::spill_one_by_one(TreeEdit& tree, TreeEnd end, unsigned count) {
  EndDraft& from = at(end);
  for (; count != 0; --count) {
    const bool is_head = end == TreeEnd::begin;
    const unsigned next = is_head ? from.size() - 1 : 0;
    const Bytes value = from.view().at(next);
    if (tree.insert_at(is_head ? 0 : size_of(tree), value) == TreeChange::no_memory) return false;
    from.erase(next, next + 1);
    has_spilled_ = true;
  }
  return true;
}

bool ListEdit::spill(TreeEdit& tree, TreeEnd end, unsigned count) {
  if (count == 0) return true;
  EndDraft& from = at(end);
  const unsigned first = end == TreeEnd::begin ? from.size() - count : 0;
  const EndLeaf leaf{from.view(), first, count};
  switch (tree.insert_leaf(leaf.pieces(), end)) {
    case TreeChange::no_memory:
      return false;
    case TreeChange::nothing:
      return spill_one_by_one(tree, end, count);
    default:
      from.erase(first, first + count);
      return true;
  }
}

TreeChange ListEdit::push(TreeEdit& tree, TreeEnd end, Bytes value) {
  EndDraft& to = at(end);
  const bool is_head = end == TreeEnd::begin;
  if (!to.has_room(value.size())) {
    const bool is_short = value.size() <= list_end_value_max;
    const unsigned count = is_short ? above_half(to, end) : to.size();
    if (!spill(tree, end, count)) return TreeChange::no_memory;
    if (!is_short) return tree.insert_at(is_head ? 0 : size_of(tree), value);
  }
  to.insert(is_head ? 0 : to.size(), value);
  return TreeChange::added;
}

void ListEdit::refill(TreeEdit& tree, TreeEnd end) {
  const std::uint64_t size = size_of(tree);
  const unsigned count = size < refilled_from ? 0 : tree.leaf_entries(end);
  if (count == 0) return;
  EndDraft& to = at(end);
  TreeCursor next = tree.tree().at(end == TreeEnd::begin ? 0 : size - count);
  for (; to.size() < count && to.has_room(next.element().value.size()); next.next()) {
    to.insert(to.size(), next.element().value);
  }
  if (to.size() == count && tree.erase_leaf(end) == TreeChange::erased) return;
  const bool is_full = to.size() != count;
  to.clear();
  if (is_full) refill_one_by_one(tree, end);
}

/// Where not all of the leaf has room.
void ListEdit::refill_one_by_one(TreeEdit& tree, TreeEnd end) {
  EndDraft& to = at(end);
  while (!to.is_above_half()) {
    const std::uint64_t rank = end == TreeEnd::begin ? 0 : size_of(tree) - 1;
    const Bytes next = tree.tree().at(rank).element().value;
    if (!to.has_room(next.size())) return;
    const KeptValue value{next};
    if (tree.erase_at(rank) == TreeChange::no_memory) return;
    to.insert(end == TreeEnd::begin ? to.size() : 0, value.bytes());
  }
}

// --- changes ------------------------------------------------------------------------------------

TreeChange ListEdit::insert(TreeEdit& tree, std::uint64_t rank, Bytes value) {
  const KeptValue kept{value};
  const std::uint64_t tree_end = head_.size() + size_of(tree);
  if (rank == tree_end + tail_.size() && rank != 0) return push(tree, TreeEnd::end, kept.bytes());
  if (rank == 0) return push(tree, TreeEnd::begin, kept.bytes());
  const bool has_room_in_head = head_.has_room(value.size());
  if (rank < head_.size() || (rank == head_.size() && has_room_in_head)) {
    if (has_room_in_head) {
      head_.insert(static_cast<unsigned>(rank), kept.bytes());
      return TreeChange::added;
    }
    const unsigned behind = head_.size() - static_cast<unsigned>(rank);
    if (!spill(tree, TreeEnd::begin, behind)) return TreeChange::no_memory;
  } else if (rank > tree_end) {
    if (tail_.has_room(value.size())) {
      tail_.insert(static_cast<unsigned>(rank - tree_end), kept.bytes());
      return TreeChange::added;
    }
    const auto before = static_cast<unsigned>(rank - tree_end);
    if (!spill(tree, TreeEnd::end, before)) return TreeChange::no_memory;
  }
  return tree.insert_at(rank - head_.size(), kept.bytes());
}

TreeChange ListEdit::set(TreeEdit& tree, std::uint64_t rank, Bytes value) {
  const std::uint64_t tree_end = head_.size() + size_of(tree);
  const bool is_in_head = rank < head_.size();
  if (!is_in_head && rank < tree_end) return tree.set_at(rank - head_.size(), value);
  EndDraft& end = is_in_head ? head_ : tail_;
  const auto index = static_cast<unsigned>(is_in_head ? rank : rank - tree_end);
  const Bytes before = end.view().at(index);
  if (before == value) return TreeChange::nothing;
  const KeptValue kept{value};
  if (end.has_room_without(before.size(), value.size())) {
    end.erase(index, index + 1);
    end.insert(index, kept.bytes());
    return TreeChange::replaced;
  }
  // It goes to the tree, with all that is between them.
  const unsigned count = is_in_head ? head_.size() - index : index + 1;
  if (!spill(tree, is_in_head ? TreeEnd::begin : TreeEnd::end, count)) return TreeChange::no_memory;
  return tree.set_at(rank - head_.size(), kept.bytes());
}

TreeChange ListEdit::erase(TreeEdit& tree, std::uint64_t rank) {
  if (rank == 0 && head_.size() == 0) refill(tree, TreeEnd::begin);
  const std::uint64_t size = head_.size() + size_of(tree) + tail_.size();
  if (rank + 1 == size && tail_.size() == 0) refill(tree, TreeEnd::end);
  const std::uint64_t tree_end = size - tail_.size();
  if (rank < head_.size()) {
    head_.erase(static_cast<unsigned>(rank), static_cast<unsigned>(rank) + 1);
    return TreeChange::erased;
  }
  if (rank < tree_end) return tree.erase_at(rank - head_.size());
  const auto index = static_cast<unsigned>(rank - tree_end);
  tail_.erase(index, index + 1);
  return TreeChange::erased;
}

// --- the version --------------------------------------------------------------------------------

ListEndSizes ListEdit::sizes() const noexcept {
  return {.head = static_cast<std::uint8_t>(head_.size()),
          .tail = static_cast<std::uint8_t>(tail_.size()),
          .head_bytes = static_cast<std::uint16_t>(head_.bytes()),
          .tail_bytes = static_cast<std::uint16_t>(tail_.bytes())};
}

void ListEdit::write(char* to) const noexcept {
  const auto add = [&to](const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    to += bytes;
  };
  add(head_.view().lengths(), head_.size());
  add(tail_.view().lengths(), tail_.size());
  add(head_.data(), head_.bytes());
  add(tail_.data(), tail_.bytes());
}

}  // namespace semel::engine
