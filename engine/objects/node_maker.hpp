// Makes the nodes and runs of one put or erase, and frees them again if it fails.
#pragma once

#include "engine/objects/tree_pieces.hpp"

namespace semel::engine {

/// An entry that is written into a node.
class RawEntry {
 public:
  Bytes write(const TreePart& key, const TreePart& value) noexcept {
    base::ByteWriter to{bytes_.data()};
    to.varint(key.bytes.size());
    to.varint(value.bytes.size());
    write(to, key);
    write(to, value);
    return {bytes_.data(), static_cast<std::size_t>(to.end() - bytes_.data())};
  }

 private:
  static void write(base::ByteWriter& to, const TreePart& part) noexcept {
    if (part.run != 0) return to.fixed(part.run);
    SEMEL_ASSERT(part.bytes.size() < tree_apart_min);
    to.bytes(part.bytes);
  }
  std::array<char, raw_bytes_max> bytes_;
};

/// After a failure it makes nothing, so that a step asks once, in the end.
class NodeMaker {
 public:
  struct Made {
    Handle node = 0;
    TreeSize size;
  };

  NodeMaker(NodeMemory& memory, std::uint64_t stamp) noexcept : memory_(memory), stamp_(stamp) {}
  NodeMaker(const NodeMaker&) = delete;
  NodeMaker& operator=(const NodeMaker&) = delete;

  [[nodiscard]] bool failed() const noexcept { return failed_; }
  void free_all() noexcept {
    for (unsigned i = 0; i < made_count_; ++i) memory_.free(made_[i]);
  }

  /// `with_room`: for a node that this edit changes again and again.
  [[nodiscard]] Made node(std::uint8_t height, std::span<const Piece> pieces, bool with_room);
  /// A node with the entries of `from` and the change.
  [[nodiscard]] Made copy(Handle from, const NodeChange& change, bool with_room);
  /// A leaf of a stream, in the form of entry_leaf.hpp if it has entries alone and is shorter so.
  [[nodiscard]] Made entries(std::span<const Piece> pieces);
  /// A copy of such a leaf, without entry `gone`, whose size differs by `delta`.
  [[nodiscard]] Made copy_entries(Handle from, unsigned gone, const TreeSize& delta);
  /// A copy of `from` in which `bytes` take the place of as many from `offset` on, and whose size
  /// differs by `delta`.
  [[nodiscard]] Made copy_with(Handle from, std::size_t offset, Bytes bytes, const TreeSize& delta);
  /// A list's leaf. `known`: its size, for a caller that knows it; else each run is looked at.
  [[nodiscard]] Made leaf(const ListValues& values, const TreeSize* known = nullptr);
  /// A copy of `bytes`, in a run of its own if they are `apart_min` at least; else `bytes`
  /// themselves.
  [[nodiscard]] TreePart part(Bytes bytes, std::size_t apart_min = tree_apart_min);
  /// An entry, whose bytes are the maker's.
  [[nodiscard]] Piece piece(const TreePart& key, const TreePart& value,
                            const TreeSize& size) noexcept;
  [[nodiscard]] Piece child_piece(const TreePart& bound, const Made& made) noexcept;
  /// Writes an entry behind the others, and its place at `index`.
  static void append(char* node, unsigned index, Bytes raw) noexcept;
  /// Makes `node` a list's leaf of `values`, which are elsewhere; not its stamp, room and size.
  static void write_leaf(const ListValues& values, char* node) noexcept;

 private:
  [[nodiscard]] Handle make(std::size_t bytes);
  [[nodiscard]] Handle make_empty(std::uint8_t height, unsigned entries, std::size_t bytes,
                                  bool with_room);

  NodeMemory& memory_;
  std::uint64_t stamp_;
  bool failed_ = false;
  std::array<Handle, tree_levels_max * 4> made_;
  unsigned made_count_ = 0;
  std::array<RawEntry, tree_levels_max * 4> raws_;
  unsigned raw_count_ = 0;
};

}  // namespace semel::engine
