// What a node is made of while an edit writes it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include "engine/objects/tree_node.hpp"

namespace semel::engine {

inline constexpr unsigned tree_entries_min = 16;
inline constexpr std::size_t tree_bytes_min =
    1024;  // a node with fewer entries and bytes joins its neighbour
inline constexpr std::size_t place_bytes = sizeof(std::uint16_t);
inline constexpr std::size_t raw_bytes_max =
    std::size_t{2} * base::varint_bytes_max + (tree_apart_min - 1) * 2;
static_assert(sizeof(TreeChild) < tree_apart_min);
static_assert(sizeof(TreeNodeHead) + (tree_entries_max + 1) * (place_bytes + raw_bytes_max) <
                  (1U << 16),
              "places have 16 bits");

/// The shortest prefix of `right` that is above `left`. `left` is below `right`, or both are empty.
[[nodiscard]] inline Bytes bound_between(Bytes left, Bytes right) noexcept {
  const auto at = std::mismatch(left.begin(), left.end(), right.begin(), right.end()).second;
  return right.substr(0, static_cast<std::size_t>(at - right.begin()) + 1);
}

[[nodiscard]] inline TreeSize minus(TreeSize one, const TreeSize& other) noexcept {
  return one -= other;
}

/// An entry that a node is made of.
struct Piece {
  Bytes raw;
  TreePart key;
  TreePart value;
  TreeSize size;  ///< of what lies below it
};

/// A node's pieces, with those that come and those of a neighbour.
class Pieces {
 public:
  // The room is not initialized: it is long, and most nodes fill little of it.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  Pieces() noexcept {}
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  void add(const Piece& piece) noexcept {
    SEMEL_ASSERT(count_ < pieces_max);
    new (all() + count_++) Piece{piece};
    bytes_ += piece.raw.size() + place_bytes;
  }
  [[nodiscard]] unsigned count() const noexcept { return count_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const Piece& operator[](unsigned index) const noexcept { return all()[index]; }
  void replace(unsigned index, const Piece& piece) noexcept {
    bytes_ = bytes_ - all()[index].raw.size() + piece.raw.size();
    all()[index] = piece;
  }
  void assign(const Pieces& from) noexcept {
    count_ = 0;
    bytes_ = 0;
    for (unsigned i = 0; i < from.count(); ++i) add(from[i]);
  }
  [[nodiscard]] std::span<const Piece> part(unsigned begin, unsigned end) const noexcept {
    return {all() + begin, all() + end};
  }

 private:
  static constexpr std::size_t pieces_max = tree_entries_max * 2 + 2;

  [[nodiscard]] Piece* all() noexcept { return reinterpret_cast<Piece*>(room_.data()); }
  [[nodiscard]] const Piece* all() const noexcept {
    return reinterpret_cast<const Piece*>(room_.data());
  }

  alignas(Piece) std::array<std::byte, pieces_max * sizeof(Piece)> room_;
  unsigned count_ = 0;
  std::size_t bytes_ = 0;
};
static_assert(std::is_trivially_destructible_v<Piece>);

/// What happens to the entries of a node: `removed` from `index` on go, and `pieces` come.
struct NodeChange {
  unsigned index = 0;
  unsigned removed = 0;
  unsigned added = 0;
  std::array<Piece, 2> pieces{};
  TreeSize delta{};  ///< may be below zero: it wraps around

  [[nodiscard]] unsigned entries_of(const TreeNodeHead& head) const noexcept {
    return head.entries - removed + added;
  }
  [[nodiscard]] std::size_t added_bytes() const noexcept {
    std::size_t bytes = 0;
    for (unsigned i = 0; i < added; ++i) bytes += pieces[i].raw.size();
    return bytes;
  }
};

[[nodiscard]] inline Piece piece_of(const TreeNode& node, unsigned index) noexcept {
  const TreeEntry entry = node.entry(index);
  const TreeSize size = node.is_leaf()
                            ? TreeSize{1, entry.key.bytes.size() + entry.value.bytes.size()}
                            : node.child(index).size;
  return {entry.raw, entry.key, entry.value, size};
}

/// Entries of one or two leaves of a stream, as a node of any tree has them.
class UnpackedEntries {
 public:
  // The room is not initialized: few changes need it.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  UnpackedEntries() noexcept {}
  UnpackedEntries(const UnpackedEntries&) = delete;
  UnpackedEntries& operator=(const UnpackedEntries&) = delete;

  /// As piece_of(). What it refers to lives as long as this.
  [[nodiscard]] Piece piece_of(const TreeNode& node, unsigned index) noexcept {
    if (!node.is_entry_leaf()) return engine::piece_of(node, index);
    EntryRoom room;
    const TreeEntry entry = node.entry(index, room);
    const TreePart& value = entry.value;
    const std::size_t stored = value.stored_bytes();
    SEMEL_ASSERT(used_ + 2 * base::varint_bytes_max + entry_key_bytes + stored <= bytes_.size());
    char* const begin = bytes_.data() + used_;
    base::ByteWriter to{begin};
    to.varint(entry_key_bytes);
    to.varint(value.bytes.size());
    const Bytes key{to.end(), entry_key_bytes};
    to.bytes(entry.key.bytes);
    const Bytes kept{to.end(), stored};
    value.run != 0 ? to.fixed(value.run) : to.bytes(value.bytes);
    used_ += static_cast<std::size_t>(to.end() - begin);
    return {{begin, static_cast<std::size_t>(to.end() - begin)},
            {key, 0},
            value.run != 0 ? value : TreePart{kept, 0},
            {1, entry_key_bytes + value.bytes.size()}};
  }

 private:
  std::size_t used_ = 0;
  // Of a leaf that is full, and of one with an entry more.
  std::array<char, 2 * (tree_node_bytes + 2 * raw_bytes_max)> bytes_;
};

/// Calls `visit(Handle)` for each run that the node's entries have. `visit` may free it.
template <class Visit>
void each_run(const TreeNode& node, Visit&& visit) {
  const bool counts_runs = node.is_list() || node.is_entry_leaf();
  if (counts_runs && node.head().places == 0) return;
  EntryRoom room;
  for (unsigned i = 0; i < node.entries(); ++i) {
    const TreeEntry entry = node.entry(i, room);
    if (entry.key.run != 0) visit(entry.key.run);
    if (entry.value.run != 0) visit(entry.value.run);
  }
}

}  // namespace semel::engine
