// Makes a tree of elements that come in order: nodes are filled from the leaves up, and no path is
// copied.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/objects/node_maker.hpp"
#include "engine/objects/tree.hpp"

namespace semel::engine {

/// Of one thread. std::bad_alloc.
class TreeBuilder {
 public:
  enum class Of : std::uint8_t { keys, list, stream };

  TreeBuilder(NodeMemory& memory, std::uint64_t stamp, Of of = Of::keys) noexcept
      : memory_(memory), stamp_(stamp), of_(of) {}
  /// Frees what it has made, unless that was given away.
  ~TreeBuilder();
  TreeBuilder(const TreeBuilder&) = delete;
  TreeBuilder& operator=(const TreeBuilder&) = delete;

  /// `key` is above the key before; of a list it is empty. False: there is no memory, and the
  /// builder is to be dropped.
  [[nodiscard]] bool add(Bytes key, Bytes value);
  /// Gives the tree away. False: there is no memory. `root` 0: nothing was added.
  [[nodiscard]] bool finish(Handle& root);

 private:
  struct Level {
    unsigned count = 0;
    std::size_t bytes = 0;
    TreePart bound;           // of the node that it becomes
    std::string bound_bytes;  // of the bound, unless that is a run
    std::array<RawEntry, tree_entries_max> raws;
    std::array<Piece, tree_entries_max> pieces;
  };
  [[nodiscard]] Level& level(std::size_t height);
  [[nodiscard]] static bool has_room(const Level& level, const TreePart& key,
                                     const TreePart& value) noexcept;
  static void append(Level& level, const TreePart& key, const TreePart& value,
                     const TreeSize& size) noexcept;
  /// Makes the level a node, and that an entry of the level above. `is_full`: no entry comes to
  /// a stream's leaf any more.
  [[nodiscard]] bool flush(std::size_t height, bool is_full = false);
  /// Of a stream: whether `key` is no entry's and the leaf has entries, or the reverse.
  [[nodiscard]] bool begins_section(const Level& leaf, Bytes key) const noexcept {
    return of_ == Of::stream && leaf.count != 0 &&
           is_entry_key(leaf.pieces[0].key.bytes) != is_entry_key(key);
  }
  [[nodiscard]] bool add_child(std::size_t height, const TreePart& bound,
                               const NodeMaker::Made& made);
  [[nodiscard]] bool add_value(Bytes value);
  [[nodiscard]] bool flush_values();

  NodeMemory& memory_;
  const std::uint64_t stamp_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::string last_key_;  // of the leaf before
  bool is_first_leaf_ = true;
  const Of of_;
  std::unique_ptr<ListLeafDraft> values_;  // of a list: the next leaf
};

}  // namespace semel::engine
