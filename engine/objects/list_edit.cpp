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

}  // namespace

// --- between the parts --------------------------------------------------------------------------

template <class GoesOn>
bool ListEdit::spill_head(TreeEdit& tree, GoesOn&& goes_on) {
  while (head_.size() != 0 && goes_on()) {
    const unsigned last = head_.size() - 1;
    if (tree.insert_at(0, head_.view().at(last)) == TreeChange::no_memory) return false;
    head_.erase(last, last + 1);
    has_spilled_ = true;
  }
  return true;
}

template <class GoesOn>
bool ListEdit::spill_tail(TreeEdit& tree, GoesOn&& goes_on) {
  while (tail_.size() != 0 && goes_on()) {
    if (tree.insert_at(size_of(tree), tail_.view().at(0)) == TreeChange::no_memory) return false;
    tail_.erase(0, 1);
    has_spilled_ = true;
  }
  return true;
}

TreeChange ListEdit::push_head(TreeEdit& tree, Bytes value) {
  if (!head_.has_room(value.size())) {
    const bool is_short = value.size() <= list_end_value_max;
    if (!spill_head(tree, [&] { return !is_short || head_.is_above_half(); })) {
      return TreeChange::no_memory;
    }
    if (!is_short) return tree.insert_at(0, value);
  }
  head_.insert(0, value);
  return TreeChange::added;
}

TreeChange ListEdit::push_tail(TreeEdit& tree, Bytes value) {
  if (!tail_.has_room(value.size())) {
    const bool is_short = value.size() <= list_end_value_max;
    if (!spill_tail(tree, [&] { return !is_short || tail_.is_above_half(); })) {
      return TreeChange::no_memory;
    }
    if (!is_short) return tree.insert_at(size_of(tree), value);
  }
  tail_.insert(tail_.size(), value);
  return TreeChange::added;
}

void ListEdit::refill_head(TreeEdit& tree) {
  if (size_of(tree) < refilled_from) return;
  while (!head_.is_above_half()) {
    const Bytes next = tree.tree().at(0).element().value;
    if (!head_.has_room(next.size())) return;
    const KeptValue value{next};
    if (tree.erase_at(0) == TreeChange::no_memory) return;
    head_.insert(head_.size(), value.bytes());
  }
}

void ListEdit::refill_tail(TreeEdit& tree) {
  if (size_of(tree) < refilled_from) return;
  while (!tail_.is_above_half()) {
    const std::uint64_t last = size_of(tree) - 1;
    const Bytes next = tree.tree().at(last).element().value;
    if (!tail_.has_room(next.size())) return;
    const KeptValue value{next};
    if (tree.erase_at(last) == TreeChange::no_memory) return;
    tail_.insert(0, value.bytes());
  }
}

// --- changes ------------------------------------------------------------------------------------

TreeChange ListEdit::insert(TreeEdit& tree, std::uint64_t rank, Bytes value) {
  const KeptValue kept{value};
  const std::uint64_t tree_end = head_.size() + size_of(tree);
  if (rank == tree_end + tail_.size() && rank != 0) return push_tail(tree, kept.bytes());
  if (rank == 0) return push_head(tree, kept.bytes());
  const bool has_room_in_head = head_.has_room(value.size());
  if (rank < head_.size() || (rank == head_.size() && has_room_in_head)) {
    if (has_room_in_head) {
      head_.insert(static_cast<unsigned>(rank), kept.bytes());
      return TreeChange::added;
    }
    if (!spill_head(tree, [&] { return rank < head_.size(); })) return TreeChange::no_memory;
  } else if (rank > tree_end) {
    if (tail_.has_room(value.size())) {
      tail_.insert(static_cast<unsigned>(rank - tree_end), kept.bytes());
      return TreeChange::added;
    }
    const std::uint64_t behind = tree_end + tail_.size() - rank;
    if (!spill_tail(tree, [&] { return tail_.size() > behind; })) return TreeChange::no_memory;
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
  if (is_in_head) {
    if (!spill_head(tree, [&] { return rank < head_.size(); })) return TreeChange::no_memory;
  } else {
    const std::uint64_t behind = tail_.size() - index - 1;
    if (!spill_tail(tree, [&] { return tail_.size() > behind; })) return TreeChange::no_memory;
  }
  return tree.set_at(rank - head_.size(), kept.bytes());
}

TreeChange ListEdit::erase(TreeEdit& tree, std::uint64_t rank) {
  if (rank == 0 && head_.size() == 0) refill_head(tree);
  const std::uint64_t size = head_.size() + size_of(tree) + tail_.size();
  if (rank + 1 == size && tail_.size() == 0) refill_tail(tree);
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
