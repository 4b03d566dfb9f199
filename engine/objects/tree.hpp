// The elements of a large object: a map of bytes to bytes in the order of the keys, that also
// counts. It is persistent: a change makes new nodes and a new root (tree_edit.hpp), and whoever
// holds a root reads one version of the whole object, without a lock.
//
// find, at, rank: O(log n). docs/decisions/0080-objects.md has the choice and its figures.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "engine/objects/tree_node.hpp"

namespace semel::engine {

struct TreeElement {
  Bytes key;
  Bytes value;
};

/// A place between two elements, or at the end. Valid as long as the tree's root is.
class TreeCursor {
 public:
  /// False: it is behind the last element.
  [[nodiscard]] bool has_element() const noexcept { return depth_ != 0; }
  /// Of an entry of a stream, `room` may have its bytes: until it is used again.
  [[nodiscard]] TreeElement element(EntryRoom& room) const noexcept;
  /// Of a tree that is no stream's.
  [[nodiscard]] TreeElement element() const noexcept;
  /// To the next element, or behind the last.
  void next() noexcept;
  /// Of a list: calls `visit(Bytes)` for the next `count` values, as far as their leaf has them,
  /// and goes behind them. How many there were; 0: `visit` has returned false.
  template <class Visit>
  std::uint64_t each_in_leaf(std::uint64_t count, Visit&& visit) {
    Step& step = steps_[depth_ - 1];
    const TreeNode leaf{*memory_, step.node};
    const auto passed = static_cast<unsigned>(
        count < leaf.entries() - step.index ? count : leaf.entries() - step.index);
    if (!leaf.each_value(step.index, step.index + passed, visit)) return 0;
    step.index += passed - 1;
    next();
    return passed;
  }
  [[nodiscard]] bool is_in_list() const noexcept {
    return depth_ != 0 && node(depth_ - 1).is_list();
  }
  /// To the element before. False: there is none, and it stays.
  [[nodiscard]] bool previous() noexcept;

 private:
  friend class Tree;
  struct Step {
    Handle node;
    unsigned index;
  };
  [[nodiscard]] TreeNode node(unsigned level) const noexcept {
    return {*memory_, steps_[level].node};
  }
  /// From the child at step `depth_ - 1` down to its first or last leaf entry.
  void descend(bool to_last) noexcept;

  const NodeMemory* memory_ = nullptr;
  Handle root_ = 0;
  unsigned depth_ = 0;                         // steps; 0: at the end
  std::array<Step, tree_levels_max> steps_{};  // from the root to a leaf
};

/// A version of a tree. Thread-safe: nothing in it changes.
class Tree {
 public:
  /// `root` 0: without elements.
  Tree(const NodeMemory& memory, Handle root) noexcept : memory_(&memory), root_(root) {}

  [[nodiscard]] Handle root() const noexcept { return root_; }
  [[nodiscard]] TreeSize size() const noexcept {
    return root_ == 0 ? TreeSize{} : TreeNode{*memory_, root_}.head().size;
  }
  /// The value of `key`. Of an entry of a stream, `room` may have it.
  [[nodiscard]] std::optional<Bytes> find(Bytes key, EntryRoom& room) const noexcept;
  /// Of a tree that is no stream's.
  [[nodiscard]] std::optional<Bytes> find(Bytes key) const noexcept;
  /// How many keys are below `key`.
  [[nodiscard]] std::uint64_t rank(Bytes key) const noexcept;
  /// At the element of rank `rank`, or behind the last.
  [[nodiscard]] TreeCursor at(std::uint64_t rank) const noexcept;
  /// At the first element whose key is not below `key`, or behind the last.
  [[nodiscard]] TreeCursor lower_bound(Bytes key) const noexcept;
  /// Behind the last element.
  [[nodiscard]] TreeCursor end() const noexcept;

  /// Looks at order, bounds, counts, levels and room of all nodes; of one without keys not at order
  /// and bounds. Returns the name of an invariant that is broken, or null.
  [[nodiscard]] const char* check_invariants(bool has_keys = true) const;

 private:
  const NodeMemory* memory_;
  Handle root_;
};

/// Frees the nodes and runs of a subtree whose stamp is larger than `floor`. Below a node that is
/// not, there is none that is.
void free_newer(NodeMemory& memory, Handle node, std::uint64_t floor) noexcept;

}  // namespace semel::engine
