// A node of an object's tree: sorted entries, each a key and a value.
//
//   head      u64 stamp | u64 link | u64 elements | u64 payload | u32 room | u32 used |
//             u16 entries | u16 places | u16 dead | u8 level | u8 form
//   places    u16 of each entry, from the node's begin, in the order of the keys
//   entries   varint key bytes | varint value bytes | key | value
//
// A key or value longer than 256 bytes lies in a run (u64 stamp | u64 link | u64 bytes | bytes),
// and the entry has the run's handle, 8 bytes, instead. A run belongs to one entry of the newest
// tree. (In a leaf of a list it is a value longer than 254 bytes.)
//
// Level 0 is a leaf: its entries are the elements. Above it an entry is a child: the key is a bound
// (not above any key of the child, above all keys of the child before) and the value says which
// node it is and what lies below it. The first entry's key is empty: it has no lower bound.
//
// The elements of a list have no keys: its tree is found by ranks alone, its bounds are empty, and
// its leaves have a form of their own (list_leaf.hpp). Of a stream, leaves of entries have one as
// well (entry_leaf.hpp), but for those that are still changed at their end: an element of such a
// leaf is put together where it is read.
//
// Nodes are in memory only: disks and peers get the elements packed (large_object.hpp).
//
// A node is immutable once its tree is published, but for its link: that is the memory's, which
// chains with it the nodes that wait to be freed. No reader looks at it. Until then the edit whose
// stamp it has may write behind `used` and move the places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/assert.hpp"
#include "base/coding.hpp"
#include "engine/kinds/entry_leaf.hpp"
#include "engine/kinds/list_leaf.hpp"
#include "engine/kinds/sought_key.hpp"
#include "engine/objects/node_memory.hpp"
#include "semel/types.hpp"

namespace semel::engine {

inline constexpr unsigned tree_entries_max = 64;
/// A node with more bytes than this is split, if it has two entries.
inline constexpr std::size_t tree_node_bytes = 4096;
inline constexpr std::size_t tree_apart_min = 257;
inline constexpr unsigned tree_levels_max = 16;

/// What lies below a node or an entry.
struct TreeSize {
  std::uint64_t elements = 0;
  std::uint64_t payload = 0;  ///< bytes of keys and values

  constexpr TreeSize& operator+=(const TreeSize& other) noexcept {
    elements += other.elements;
    payload += other.payload;
    return *this;
  }
  constexpr TreeSize& operator-=(const TreeSize& other) noexcept {
    elements -= other.elements;
    payload -= other.payload;
    return *this;
  }
  friend constexpr bool operator==(const TreeSize&, const TreeSize&) noexcept = default;
};

/// The value of an entry above the leaves.
struct TreeChild {
  Handle node = 0;
  TreeSize size;
};
static_assert(sizeof(TreeChild) == 24);

enum class NodeForm : std::uint8_t { entries, list, stream };

struct TreeNodeHead {
  std::uint64_t stamp;
  std::uint64_t link;  ///< the memory's
  TreeSize size;
  std::uint32_t room;  ///< bytes of the node, with this head
  std::uint32_t used;
  std::uint16_t entries;
  std::uint16_t places;  ///< entries that the node has room for, as far as places go; of a leaf of
                         ///< a form of its own: its values in runs
  std::uint16_t dead;    ///< bytes before `used` that belong to no entry any more
  std::uint8_t level;
  NodeForm form;
};
static_assert(sizeof(TreeNodeHead) == list_leaf_head_bytes && sizeof(Handle) == list_handle_bytes);
static_assert(tree_entries_max == entry_leaf_entries_max);
static_assert(tree_apart_min == entry_value_bytes_max + 1);

struct TreeRun {
  std::uint64_t stamp;
  std::uint64_t link;  ///< the memory's
  std::uint64_t bytes;
};
static_assert(offsetof(TreeNodeHead, link) == NodeMemory::link_offset);
static_assert(offsetof(TreeRun, link) == NodeMemory::link_offset);

/// A key or value as an entry has it.
struct TreePart {
  Bytes bytes;     ///< of the key or value itself, wherever it lies
  Handle run = 0;  ///< 0: in the entry

  [[nodiscard]] std::size_t stored_bytes() const noexcept {
    return run != 0 ? sizeof(Handle) : bytes.size();
  }
};

struct TreeEntry {
  TreePart key;
  TreePart value;
  Bytes raw;  ///< as it lies in the node
};

/// Reads a node. Cheap to copy; valid as long as the node is.
class TreeNode {
 public:
  TreeNode(const NodeMemory& memory, Handle handle) noexcept
      : memory_(&memory), at_(memory.at(handle)) {
    SEMEL_ASSERT(handle != 0);
  }

  [[nodiscard]] const TreeNodeHead& head() const noexcept {
    return *reinterpret_cast<const TreeNodeHead*>(at_);
  }
  [[nodiscard]] unsigned entries() const noexcept { return head().entries; }
  [[nodiscard]] bool is_leaf() const noexcept { return head().level == 0; }
  [[nodiscard]] bool is_list() const noexcept { return head().form == NodeForm::list; }
  /// Of a node that is_list().
  [[nodiscard]] ListLeaf list() const noexcept {
    SEMEL_ASSERT(is_list());
    return {at_ + sizeof(TreeNodeHead), entries(), head().places != 0};
  }

  [[nodiscard]] bool is_entry_leaf() const noexcept { return head().form == NodeForm::stream; }
  /// Of a node that is_entry_leaf().
  [[nodiscard]] EntryLeaf entry_leaf() const noexcept {
    SEMEL_ASSERT_SLOW(is_entry_leaf());
    return {at_, sizeof(TreeNodeHead), entries(), head().used};
  }

  /// Calls `visit(Bytes)` for the values `from` .. `to` - 1 of a list's leaf until it returns
  /// false: then it returns false.
  template <class Visit>
  bool each_value(unsigned from, unsigned to, Visit&& visit) const {
    const ListLeaf leaf = list();
    if (from == to) return true;
    for (const char* at = leaf.at(from); from < to; ++from) {
      const std::uint8_t length = leaf.length(from);
      if (!visit(value(length, at).bytes)) return false;
      at += list_stored_bytes(length);
    }
    return true;
  }

  /// `room` is used where is_entry_leaf(); such an entry has no `raw`.
  [[nodiscard]] TreeEntry entry(unsigned index, EntryRoom& room) const noexcept {
    if (!is_entry_leaf()) [[likely]]
      return entry(index);
    SEMEL_ASSERT(index < entries());
    const EntryLeaf::Value value = entry_leaf().element(index, room);
    const TreePart key{{room.key.data(), room.key.size()}, 0};
    return {key, value.is_run ? in_run(value.bytes.data()) : TreePart{value.bytes, 0}, {}};
  }
  [[nodiscard]] TreeEntry entry(unsigned index) const noexcept {
    SEMEL_ASSERT(index < entries() && !is_entry_leaf());
    if (is_list()) return {{}, value(index), {}};
    const char* const begin = at_ + place(index);
    const char* at = begin;
    TreeEntry entry;
    if (has_short_lengths(begin)) [[likely]] {
      const std::size_t key = static_cast<std::uint8_t>(begin[0]);
      const std::size_t value = static_cast<std::uint8_t>(begin[1]);
      entry.key = {{begin + 2, key}, 0};
      entry.value = {{begin + 2 + key, value}, 0};
      entry.raw = {begin, 2 + key + value};
      return entry;
    }
    const std::uint64_t key_bytes = take_varint(at);
    const std::uint64_t value_bytes = take_varint(at);
    entry.key = part(at, key_bytes);
    entry.value = part(at, value_bytes);
    entry.raw = {begin, static_cast<std::size_t>(at - begin)};
    return entry;
  }
  /// Of a node of entries that lie in it as they are.
  [[nodiscard]] Bytes key(unsigned index) const noexcept {
    SEMEL_ASSERT_SLOW(head().form == NodeForm::entries);
    const char* at = at_ + place(index);
    if (has_short_lengths(at)) [[likely]]
      return {at + 2, static_cast<std::uint8_t>(at[0])};
    const std::uint64_t key_bytes = take_varint(at);
    static_cast<void>(take_varint(at));
    return part(at, key_bytes).bytes;
  }
  /// Of bytes that lie in the node, from its begin.
  [[nodiscard]] std::size_t offset(Bytes inside) const noexcept {
    return static_cast<std::size_t>(inside.data() - at_);
  }
  [[nodiscard]] TreeChild child(unsigned index) const noexcept {
    SEMEL_ASSERT(!is_leaf());
    TreeChild child;
    std::memcpy(&child, entry(index).value.bytes.data(), sizeof child);
    return child;
  }
  /// The first entry whose key is not below `key`.
  [[nodiscard]] unsigned lower_bound(const SoughtKey& key) const noexcept {
    if (is_entry_leaf()) return entry_leaf().lower_bound(key);
    unsigned begin = 0;
    for (unsigned count = entries(); count > 0;) {
      const unsigned half = count / 2;
      if (key.is_above(this->key(begin + half))) {
        begin += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return begin;
  }
  /// The child in which `key` is, if it is anywhere.
  [[nodiscard]] unsigned child_for(const SoughtKey& key) const noexcept {
    unsigned begin = 1;  // the first has no lower bound
    for (unsigned count = entries() - 1; count > 0;) {
      const unsigned half = count / 2;
      if (!key.is_below(this->key(begin + half))) {
        begin += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return begin - 1;
  }
  /// The child in which the element of `rank` is, or the last one; `rank` becomes that within it.
  [[nodiscard]] unsigned child_at(std::uint64_t& rank) const noexcept {
    const std::uint64_t all = head().size.elements;
    if (rank < all / 2) {
      unsigned index = 0;
      for (; index + 1 < entries(); ++index) {
        const std::uint64_t elements = child_elements(index);
        if (rank < elements) break;
        rank -= elements;
      }
      return index;
    }
    unsigned index = entries() - 1;
    std::uint64_t before = all - child_elements(index);
    while (rank < before) before -= child_elements(--index);
    rank -= before;
    return index;
  }
  /// How many elements are in the children before `index`.
  [[nodiscard]] std::uint64_t elements_before(unsigned index) const noexcept {
    std::uint64_t elements = 0;
    if (index < entries() / 2) {
      for (unsigned i = 0; i < index; ++i) elements += child_elements(i);
      return elements;
    }
    for (unsigned i = index; i < entries(); ++i) elements += child_elements(i);
    return head().size.elements - elements;
  }

 private:
  /// Of a list's leaf.
  [[nodiscard]] TreePart value(unsigned index) const noexcept {
    const ListLeaf leaf = list();
    return value(leaf.length(index), leaf.at(index));
  }
  [[nodiscard]] TreePart value(std::uint8_t length, const char* at) const noexcept {
    if (length != list_run_length) return {{at, length}, 0};
    return in_run(at);
  }
  /// As child(index).size.elements, which the walks along children ask of each.
  [[nodiscard]] std::uint64_t child_elements(unsigned index) const noexcept {
    SEMEL_ASSERT_SLOW(!is_leaf());
    const char* at = at_ + place(index);
    const std::uint64_t bound_bytes = take_varint(at);
    at += bound_bytes < tree_apart_min ? bound_bytes : sizeof(Handle);
    static_assert(sizeof(TreeChild) < 128, "its length takes a byte");
    std::uint64_t elements;
    std::memcpy(&elements, at + 1 + offsetof(TreeChild, size) + offsetof(TreeSize, elements),
                sizeof elements);
    return elements;
  }
  [[nodiscard]] std::uint16_t place(unsigned index) const noexcept {
    std::uint16_t place;
    std::memcpy(&place, at_ + sizeof(TreeNodeHead) + index * sizeof place, sizeof place);
    return place;
  }
  /// Of an entry: both take a byte, and neither key nor value has a run. So are nearly all.
  [[nodiscard]] static bool has_short_lengths(const char* at) noexcept {
    static_assert(tree_apart_min > 127);
    return ((at[0] | at[1]) & 0x80) == 0;
  }
  /// Moves `at` behind it.
  [[nodiscard]] TreePart part(const char*& at, std::uint64_t bytes) const noexcept {
    if (bytes < tree_apart_min) {
      const Bytes inside{at, bytes};
      at += bytes;
      return {inside, 0};
    }
    Handle run;
    std::memcpy(&run, at, sizeof run);
    at += sizeof run;
    return {{memory_->at(run) + sizeof(TreeRun), bytes}, run};
  }
  /// Of a handle.
  [[nodiscard]] TreePart in_run(const char* at) const noexcept {
    TreePart apart;
    std::memcpy(&apart.run, at, sizeof apart.run);
    const char* const run = memory_->at(apart.run);
    std::uint64_t bytes;
    std::memcpy(&bytes, run + offsetof(TreeRun, bytes), sizeof bytes);
    apart.bytes = {run + sizeof(TreeRun), bytes};
    return apart;
  }

  const NodeMemory* memory_;
  const char* at_;
};

/// Of a node that is no list's: whether the entry's key is `sought`.
[[nodiscard]] inline bool has_key(const TreeNode& node, unsigned index, Bytes sought) noexcept {
  if (!node.is_entry_leaf()) [[likely]]
    return node.key(index) == sought;
  return is_entry_key(sought) && node.entry_leaf().id(index) == id_of(sought);
}

}  // namespace semel::engine
