// A tree that is being changed: its root so far, and the nodes of the tree as it was that the next
// version does without.
#pragma once

#include <algorithm>
#include <array>
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
  /// `lists`: for the lists of handles. `of_stream`: its elements are a stream's.
  TreeDraft(NodeMemory& nodes, Handle old_root, std::uint64_t own_stamp,
            std::pmr::memory_resource* lists, bool of_stream) noexcept
      : memory(nodes), root(old_root), stamp(own_stamp), is_stream(of_stream), many_(lists) {}

  NodeMemory& memory;
  Handle root;
  const std::uint64_t stamp;
  const bool is_stream;

  /// Of a node or run, both of which begin with their stamp: no other thread has seen it.
  [[nodiscard]] bool is_fresh(Handle handle) const noexcept {
    std::uint64_t of;
    std::memcpy(&of, memory.at(handle), sizeof of);
    return of == stamp;
  }

  /// Room for so many more calls of drop(). False: there is no memory.
  [[nodiscard]] bool reserve(std::size_t count) {
    const std::size_t wanted = count_ + count;
    if (wanted > few_.size() && !reserve_many(wanted)) return false;
    return memory.reserve_retired(wanted);
  }
  /// Frees a fresh one; the others are retired when the new root has been published.
  void drop(Handle handle) noexcept {
    if (is_fresh(handle)) return memory.free(handle);
    if (count_ < few_.size()) {
      few_[count_] = handle;
    } else {
      SEMEL_ASSERT(many_.size() < many_.capacity());
      many_.push_back(handle);
    }
    ++count_;
  }
  void retire_dropped() noexcept {
    for (std::size_t i = 0; i < std::min(count_, few_.size()); ++i) memory.retire(few_[i]);
    for (const Handle handle : many_) memory.retire(handle);
    many_.clear();
    count_ = 0;
  }

 private:
  [[nodiscard]] bool reserve_many(std::size_t wanted) noexcept {
    try {
      const std::size_t more = wanted - few_.size();
      if (many_.capacity() < more) many_.reserve(std::max(more, many_.size() * 2));
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  // A change of one element drops few nodes, and takes no memory for their list.
  std::size_t count_ = 0;
  std::array<Handle, 24> few_;
  std::pmr::vector<Handle> many_;
};

}  // namespace semel::engine
