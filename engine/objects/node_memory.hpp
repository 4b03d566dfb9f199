// Where the nodes of a tree lie. The engine's is the arena: a node is charged to the limit as a
// record is, and is given back by epochs. A test's is the heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/table/slot.hpp"

namespace semel::engine {

/// Used by one thread at a time, but for at(), which any thread calls for a node it may read.
class NodeMemory {
 public:
  /// Where a node or run has 8 bytes that are the memory's own, from allocate() on.
  static constexpr std::size_t link_offset = 8;

  /// Handles count 8 bytes from `base`.
  explicit NodeMemory(const void* base) noexcept : base_(reinterpret_cast<std::uintptr_t>(base)) {}
  /// Handles are addresses.
  explicit constexpr NodeMemory(std::nullptr_t) noexcept : base_(0) {}
  virtual ~NodeMemory() = default;
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// Aligned to 8 bytes. 0: the memory limit is reached.
  [[nodiscard]] virtual Handle allocate(std::size_t bytes) noexcept = 0;
  /// Of one that no other thread has seen.
  virtual void free(Handle handle) noexcept = 0;
  /// Makes room for so many more calls of retire(). False: there is no memory.
  [[nodiscard]] virtual bool reserve_retired(std::size_t count) noexcept = 0;
  /// Of one that others may still read. Freed when all of them have left.
  virtual void retire(Handle handle) noexcept = 0;

  [[nodiscard]] const char* at(Handle handle) const noexcept {
    return reinterpret_cast<const char*>(base_ + handle * 8);
  }
  [[nodiscard]] std::uint64_t link(Handle handle) const noexcept {
    std::uint64_t link;
    std::memcpy(&link, at(handle) + link_offset, sizeof link);
    return link;
  }
  void set_link(Handle handle, std::uint64_t link) const noexcept {
    std::memcpy(writable(handle) + link_offset, &link, sizeof link);
  }
  [[nodiscard]] std::uint64_t stamp(Handle handle) const noexcept {
    std::uint64_t stamp;
    std::memcpy(&stamp, at(handle), sizeof stamp);
    return stamp;
  }
  [[nodiscard]] char* writable(Handle handle) const noexcept {
    return const_cast<char*>(at(handle));
  }

 private:
  const std::uintptr_t base_;  // a number: that of a test is zero
};

/// Brings a node into the cache before it is searched.
/// A search looks at five entries, which lie anywhere in the node, and would wait for one line of
/// the cache after the other. In a tree that is larger than the cache this is most of its time.
inline void fetch_node(const NodeMemory& memory, Handle node) noexcept {
  constexpr std::size_t line_bytes = 64;
  constexpr std::size_t fetched_bytes = 12 * line_bytes;  // what 22 short entries take
  const char* const at = memory.at(node);
  for (std::size_t i = 0; i < fetched_bytes; i += line_bytes) __builtin_prefetch(at + i);
}

}  // namespace semel::engine
