// One change of one element by an edit.
#pragma once

#include "engine/objects/node_maker.hpp"
#include "engine/objects/tree_draft.hpp"

namespace semel::engine {

enum class TreeEnd : std::uint8_t { begin, end };

/// How long a key and its value are.
struct TreeElementBytes {
  std::size_t key = 0;
  std::size_t value = 0;
};

/// One change of one element. The change of a node leads to the change of its parent. All memory is
/// taken before anything is changed. A list's are ListStep's (list_step.hpp).
class TreeStep {
 public:
  explicit TreeStep(TreeDraft& draft) noexcept
      : draft_(draft), memory_(draft.memory), maker_(draft.memory, draft.stamp) {}
  TreeStep(const TreeStep&) = delete;
  TreeStep& operator=(const TreeStep&) = delete;

  /// Once, before one of the changes. Whether there is such an element.
  [[nodiscard]] bool find(Bytes key) noexcept;
  /// The element of `rank`; of the count of all: none.
  [[nodiscard]] bool find_at(std::uint64_t rank) noexcept;
  /// Of the element that was found.
  [[nodiscard]] TreeEntry entry() noexcept {
    return node(depth_ - 1).entry(path_[depth_ - 1].index, room_);
  }
  /// The same, without its bytes: how long it is.
  [[nodiscard]] TreeElementBytes element_bytes() noexcept;
  /// Where find() has found none.
  TreeChange insert(Bytes key, Bytes value);
  /// Of the element that find() has found.
  TreeChange replace(Bytes value);
  TreeChange erase();

 protected:
  struct Place {
    Handle node;
    unsigned index;
  };
  [[nodiscard]] TreeNode node(unsigned level) const noexcept {
    return {memory_, path_[level].node};
  }
  /// For each level a node, a neighbour and two bounds; and the runs of an element.
  [[nodiscard]] std::size_t dropped_max() const noexcept { return depth_ * 4 + 2; }
  TreeChange finish(TreeChange change, bool done);

  /// Applies `change` to the node above level `level` of the path, `depth_` for the leaf, and to
  /// each node above it the change that it needs then, for which `change` is used again.
  [[nodiscard]] bool apply_above(unsigned level, NodeChange& change);
  [[nodiscard]] bool changes_in_place(unsigned level, const NodeChange& change) const noexcept;
  void change_in_place(unsigned level, const NodeChange& change) noexcept;
  void add_to_parents(unsigned level, const TreeSize& delta) noexcept;
  [[nodiscard]] bool is_plain(unsigned level, const NodeChange& change) const noexcept;
  [[nodiscard]] bool copy(unsigned level, const NodeChange& change);
  [[nodiscard]] bool point_to(NodeMaker::Made made, unsigned level, const TreeSize& delta);
  [[nodiscard]] bool rewrite(unsigned level, NodeChange& change);
  void collect(unsigned level, const NodeChange& change, Pieces& pieces,
               UnpackedEntries& unpacked) noexcept;
  /// Of the node's parent: the child that a node of so few entries joins; its own place: none.
  [[nodiscard]] unsigned neighbour(unsigned level, unsigned count) const noexcept;
  /// Whether it was a leaf of entries.
  bool join(unsigned level, unsigned with, Pieces& pieces, UnpackedEntries& unpacked,
            NodeChange& above) noexcept;
  void drop_root(const Piece& only) noexcept;

  [[nodiscard]] bool set_root(Handle root) noexcept;
  void drop(Handle handle) noexcept {
    if (handle == 0) return;
    SEMEL_ASSERT(gone_count_ < gone_.size());
    gone_[gone_count_++] = handle;
  }

  TreeDraft& draft_;
  NodeMemory& memory_;
  NodeMaker maker_;
  std::array<Place, tree_levels_max> path_;
  unsigned depth_ = 0;
  std::array<Handle, tree_levels_max * 4 + 2> gone_;
  unsigned gone_count_ = 0;
  EntryRoom room_;
};

}  // namespace semel::engine
