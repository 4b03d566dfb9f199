// Changes of a large list: which part of it a rank means, and what moves between the parts.
#pragma once

#include "engine/objects/large_object.hpp"
#include "engine/objects/tree_edit.hpp"

namespace semel::engine {

/// The ends of a list that is being changed, beside its tree. Of one thread. Each call is done or,
/// with no_memory, has changed no element, though some may have moved to another part.
class ListEdit {
 public:
  void begin(const EndElements& head, const EndElements& tail, const ListEndSizes& sizes) noexcept {
    head_.assign(head, sizes.head_bytes);
    tail_.assign(tail, sizes.tail_bytes);
  }
  /// All elements are in the tree.
  void clear() noexcept {
    head_.clear();
    tail_.clear();
  }

  /// added or no_memory.
  [[nodiscard]] TreeChange insert(TreeEdit& tree, std::uint64_t rank, Bytes value);
  /// Of the element of `rank`, which is there: replaced, nothing or no_memory.
  [[nodiscard]] TreeChange set(TreeEdit& tree, std::uint64_t rank, Bytes value);
  /// erased or no_memory.
  [[nodiscard]] TreeChange erase(TreeEdit& tree, std::uint64_t rank);

  [[nodiscard]] LargeElements elements(const Tree& tree) const noexcept {
    return {tree, head_.view(), tail_.view()};
  }
  [[nodiscard]] ListEndSizes sizes() const noexcept;
  /// Writes what lies behind the version: sizes().bytes() of it.
  void write(char* to) const noexcept;

 private:
  [[nodiscard]] EndDraft& at(TreeEnd end) noexcept { return end == TreeEnd::begin ? head_ : tail_; }
  /// Gives the `count` elements that are next to the tree to it. False: no memory.
  [[nodiscard]] bool spill(TreeEdit& tree, TreeEnd end, unsigned count);
  [[nodiscard]] TreeChange push(TreeEdit& tree, TreeEnd end, Bytes value);
  /// Takes the elements of the tree that are next to it, half of an end's at most, as far as there
  /// is memory.
  void refill(TreeEdit& tree, TreeEnd end);

  EndDraft head_;
  EndDraft tail_;
};

}  // namespace semel::engine
