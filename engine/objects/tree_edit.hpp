// A change of a tree: several puts and erases that become visible as one new root.
//
//   TreeEdit edit{memory, root, stamp};
//   edit.put(key, value), edit.erase(key), ..
//   .. publish edit.root() in the object's record ..
//   edit.commit();    or nothing: the tree stays as it was
//
// A change copies the path from the root to a leaf. Nodes that the edit has made it changes in
// place, so a thousand puts do not copy a thousand paths.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/objects/tree.hpp"
#include "engine/objects/tree_draft.hpp"
#include "engine/objects/tree_step.hpp"

namespace semel::engine {

/// Belongs to one thread. Each call is done or, with no_memory, has changed nothing.
class TreeEdit {
 public:
  /// `stamp`: of no other edit whose nodes this tree may have. `lists` outlives it: for what it
  /// notes down. `is_stream`: entries that no other one comes to lie as entry_leaf.hpp says.
  TreeEdit(NodeMemory& memory, Handle root, std::uint64_t stamp,
           std::pmr::memory_resource* lists = std::pmr::get_default_resource(),
           bool is_stream = false) noexcept
      : draft_(memory, root, stamp, lists, is_stream) {}
  /// Without commit(), frees what it has made.
  ~TreeEdit();
  TreeEdit(const TreeEdit&) = delete;
  TreeEdit& operator=(const TreeEdit&) = delete;

  /// added, replaced, nothing (it has this value) or no_memory.
  [[nodiscard]] TreeChange put(Bytes key, Bytes value);
  /// erased, nothing (there is no such key) or no_memory.
  [[nodiscard]] TreeChange erase(Bytes key) {
    TreeElementBytes bytes;
    return erase(key, bytes);
  }
  /// The same, and how long the element was.
  [[nodiscard]] TreeChange erase(Bytes key, TreeElementBytes& bytes);
  /// The same if it has this value; else nothing.
  [[nodiscard]] TreeChange erase_if(Bytes key, Bytes value);
  // By ranks, which an element keeps where keys say nothing (a list).

  /// Puts an element without a key before that of `rank`, or behind the last: added or no_memory.
  [[nodiscard]] TreeChange insert_at(std::uint64_t rank, Bytes value);
  /// Of the element of `rank`, which is there: replaced, nothing or no_memory.
  [[nodiscard]] TreeChange set_at(std::uint64_t rank, Bytes value);
  /// erased or no_memory.
  [[nodiscard]] TreeChange erase_at(std::uint64_t rank) {
    TreeElementBytes bytes;
    return erase_at(rank, bytes);
  }
  /// The same, and how long the element was.
  [[nodiscard]] TreeChange erase_at(std::uint64_t rank, TreeElementBytes& bytes);

  /// Puts elements of a list, those of an end at most, in front of all or behind all: added or
  /// no_memory.
  [[nodiscard]] TreeChange insert_values(const ListValues& values, TreeEnd end);
  /// How many elements the first or last leaf has; 0: there is none.
  [[nodiscard]] unsigned leaf_entries(TreeEnd end) const noexcept;
  /// So many elements of that leaf of a list go, at the end of the list; none of them is long:
  /// erased or no_memory.
  [[nodiscard]] TreeChange erase_values(unsigned count, TreeEnd end);

  /// Everything goes, at commit(). False: no memory, and nothing was changed.
  [[nodiscard]] bool clear();

  /// Before commit(), after many changes: nodes get rid of the room that they had for more. Does
  /// what it has memory for.
  void trim() noexcept;

  /// With the changes so far.
  [[nodiscard]] Tree tree() const noexcept { return {draft_.memory, draft_.root}; }
  [[nodiscard]] Handle root() const noexcept { return draft_.root; }
  /// After the root was published: retires the nodes that it took the place of.
  void commit() noexcept;

 private:
  /// Frees the fresh nodes of a subtree; the others belong to the tree as it was.
  void free_fresh(Handle node) noexcept;
  /// The node in place of a fresh one, without what it does not need.
  [[nodiscard]] Handle trimmed(Handle node) noexcept;
  /// The nodes and runs of a subtree that are not fresh.
  void collect(Handle node, std::vector<Handle>& to) const;

  TreeDraft draft_;
  bool committed_ = false;
};

}  // namespace semel::engine
