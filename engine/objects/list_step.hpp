// One change of a list's tree.
#pragma once

#include "engine/kinds/list_leaf.hpp"
#include "engine/objects/tree_step.hpp"

namespace semel::engine {

/// Of the values that TreeStep::find_at() has found, of a tree without keys. The leaf is written
/// anew, as one or two or none; above it a change is as that of any tree.
class ListStep : public TreeStep {
 public:
  using TreeStep::TreeStep;

  /// Whether a leaf of a list was found.
  [[nodiscard]] bool is_list() const noexcept { return depth_ != 0 && leaf_node().is_list(); }
  /// Before the element that was found, or behind the last: added or no_memory.
  TreeChange insert_value(Bytes value);
  TreeChange insert_values(const ListValues& values);
  /// replaced, nothing or no_memory.
  TreeChange replace_value(Bytes value);
  /// The element that was found: erased or no_memory.
  TreeChange erase_value();
  /// The same of `count` elements of its leaf, none of which lies in a run.
  TreeChange erase_values(unsigned count);

 private:
  struct Splice {
    unsigned removed = 0;
    ListValues added{};
    TreeSize delta{};
    bool joins = false;  // a small leaf joins its neighbour
  };
  struct Value {
    std::uint8_t length;
    const char* stored;
    [[nodiscard]] ListValues values() const noexcept {
      return {&length, stored, 1, list_stored_bytes(length), length == list_run_length};
    }
  };
  [[nodiscard]] TreeNode leaf_node() const noexcept { return node(depth_ - 1); }
  [[nodiscard]] Value stored(const TreePart& part) noexcept;
  /// Of the leaf's neighbour, if the leaf is so small that it joins it; `change` has both then.
  [[nodiscard]] Handle join(const Splice& splice, NodeChange& change, bool& is_right) noexcept;
  [[nodiscard]] bool write(const Splice& splice);
  /// Of the list, not of the leaf alone.
  [[nodiscard]] bool is_at_begin() const noexcept;
  /// As one leaf, or as two, the first of `split` values; `total` is the size of all.
  [[nodiscard]] std::array<NodeMaker::Made, 2> make_leaves(const ListLeafDraft& draft,
                                                           unsigned split, const TreeSize& total);
  [[nodiscard]] bool shrink_in_place(const Splice& splice, const ListLeafDraft& draft) noexcept;

  Handle run_ = 0;  // of the new value
};

}  // namespace semel::engine
