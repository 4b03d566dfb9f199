// A tree that is being changed: its root so far, and the nodes of the tree as it was that the next
// version does without.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <vector>

#include "base/assert.hpp"
#include "engine/objects/node_memory.hpp"

namespace semel::engine {

enum class TreeChange : std::uint8_t { nothing, added, replaced, erased, no_memory };

class TreeDraft {
 public:
  /// `lists`: for the lists of handles.
  TreeDraft(NodeMemory& nodes, Handle old_root, std::uint64_t own_stamp,
            std::pmr::memory_resource* lists) noexcept
      : memory(nodes), root(old_root), stamp(own_stamp), dropped_(lists) {}

  NodeMemory& memory;
  Handle root;
  const std::uint64_t stamp;

  /// Of a node or run, both of which begin with their stamp: no other thread has seen it.
  [[nodiscard]] bool is_fresh(Handle handle) const noexcept {
    std::uint64_t of;
    std::memcpy(&of, memory.at(handle), sizeof of);
    return of == stamp;
  }

  /// Room for so many more calls of drop(). False: there is no memory.
  [[nodiscard]] bool reserve(std::size_t count) {
    const std::size_t wanted = dropped_.size() + count;
    try {
      if (dropped_.capacity() < wanted) dropped_.reserve(std::max(wanted, dropped_.size() * 2));
    } catch (const std::bad_alloc&) {
      return false;
    }
    return memory.reserve_retired(wanted);
  }
  /// Frees a fresh one; the others are retired when the new root has been published.
  void drop(Handle handle) noexcept {
    if (is_fresh(handle)) return memory.free(handle);
    SEMEL_ASSERT(dropped_.size() < dropped_.capacity());
    dropped_.push_back(handle);
  }
  void retire_dropped() noexcept {
    for (const Handle handle : dropped_) memory.retire(handle);
    dropped_.clear();
  }

 private:
  std::pmr::vector<Handle> dropped_;
};

}  // namespace semel::engine
