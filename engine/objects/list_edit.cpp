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
static_assert(list_end_value_max < tree_apart_min && list_end_value_max < list_apart_min);

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

/// Elements of an end, as a leaf has them.
ListValues values_of(const EndElements& from, unsigned first, unsigned count) noexcept {
  std::size_t stored = 0;
  for (unsigned i = first; i < first + count; ++i) stored += from.lengths()[i];
  return {from.lengths() + first, from.at(first).data(), count, stored, false};
}

}  // namespace

// --- between the parts --------------------------------------------------------------------------

bool ListEdit::spill(TreeEdit& tree, TreeEnd end, unsigned count) {
  if (count == 0) return true;
  EndDraft& from = at(end);
  const unsigned first = end == TreeEnd::begin ? from.size() - count : 0;
  const ListValues values = values_of(from.view(), first, count);
  if (tree.insert_values(values, end) == TreeChange::no_memory) return false;
  from.erase(first, first + count);
  return true;
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
  if (size < refilled_from) return;
  const bool is_head = end == TreeEnd::begin;
  EndDraft& to = at(end);
  SEMEL_ASSERT(to.size() == 0);
  const unsigned most = std::min(tree.leaf_entries(end), list_end_elements_max / 2);
  TreeCursor next = tree.tree().at(is_head ? 0 : size - 1);
  while (to.size() < most && !to.is_above_half()) {
    const Bytes value = next.element().value;
    if (!to.has_room(value.size())) break;
    to.insert(is_head ? to.size() : 0, value);
    if (is_head) {
      next.next();
    } else {
      static_cast<void>(next.previous());
    }
  }
  if (to.size() == 0) return;
  if (tree.erase_values(to.size(), end) == TreeChange::no_memory) to.clear();
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
