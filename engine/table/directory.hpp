// Which segment of a table holds a hash: 2^16 words in lazily touched memory.
//
// Word i is (segment | depth + 1) or 0. The segment of depth d at index i < 2^d holds the hashes
// whose low d directory bits are i; a zero word means: look at the index without its highest bit.
// So splitting a segment writes two words and copies no directory.
//
// The reach of a directory whose deepest segment has depth d has the bits 1..d+1. Behind the lowest
// two are the bits of an index. And bit (word mod 64) of it says of a word at such an index whether
// the segment there holds the hash: it does if it is not deeper than the index, of which all bits
// were compared then. A zero word asks for bit 0, which is never set.
//
// Concurrency
//   states    a word: 0 -> segment -> successor ..; the reach only grows
//   writers   any thread inside an operation, by compare-and-set only. readers likewise.
//   [table.directory]  release CAS of a word pairs with acquire loads in locate().
//   [table.depth]      the reach is raised before a deeper segment is published, so a reader that
//                      could know of the deeper segment looks there first.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/table/slot.hpp"

namespace semel::engine {

/// `Segment` has the fields depth and index, and 64-byte alignment. `Sync` as in table.hpp.
template <class Sync, class Segment>
class Directory {
 public:
  using Word = typename Sync::template atomic<std::uint64_t>;

  /// `words` points to 2^depth_max zero words that outlive the directory.
  explicit Directory(Word* words) noexcept : words_(words) {}

  /// `first` holds all hashes; before any other call.
  void start(const Segment& first) noexcept {
    // mo: release [table.directory]: the segment's header is read through this word.
    words_[0].store(pack(first), std::memory_order_release);
  }

  /// The segment that holds `hash` now. Progress: lock-free (loops only while a split is
  /// published).
  [[nodiscard, gnu::always_inline]] Segment* locate(HashBits hash) const noexcept {
    // mo: acquire [table.depth]: see the head of the file.
    const std::uint32_t reach = reach_.load(std::memory_order_acquire);
    const std::uint32_t index = static_cast<std::uint32_t>(hash.bits) & index_bits(reach);
    // mo: acquire [table.directory]: the segment's header and slots are read through this word.
    const std::uint64_t word = words_[index].load(std::memory_order_acquire);
    // A split between the two reads may leave us with the wrong half.
    if ((reach >> (word & code_bits) & 1) != 0) [[likely]]
      return unpack(word);
    return search(hash);
  }

  /// Calls `visit(Segment&)` for each segment, in the order of the words. Segments that split
  /// during the walk may be met as a whole or in parts.
  template <class Visit>
  void for_each(Visit&& visit) const {
    // mo: acquire [table.depth]
    const std::uint32_t last = index_bits(reach_.load(std::memory_order_acquire));
    for (std::uint32_t i = 0; i <= last; ++i) {
      // mo: acquire [table.directory]
      const std::uint64_t word = words_[i].load(std::memory_order_acquire);
      if (word != 0) visit(*unpack(word));
    }
  }

  /// Makes the upper half of a split findable. False: another thread's is there. The lower half
  /// goes second, by replace(): a thread that still finds the old segment for a hash of the upper
  /// half cannot change it, and looks here again.
  [[nodiscard]] bool add(const Segment& high) noexcept {
    // mo: acq_rel [table.depth]: raised before the deeper segment can be found.
    std::uint32_t reach = reach_.load(std::memory_order_relaxed);  // mo: relaxed: the CAS decides
    const std::uint32_t wanted = reach_of(high.depth);
    while (reach < wanted && !reach_.compare_exchange_weak(reach, wanted, std::memory_order_acq_rel,
                                                           std::memory_order_relaxed)) {
    }
    std::uint64_t none = 0;
    // mo: release [table.directory]: the copy is complete; failure relaxed: nothing is read.
    return words_[high.index].compare_exchange_strong(none, pack(high), std::memory_order_release,
                                                      std::memory_order_relaxed);
  }

  /// Puts `fresh`, of the same index, in the place of `old`. False: `old` is not there any more.
  [[nodiscard]] bool replace(const Segment& old, const Segment& fresh) noexcept {
    std::uint64_t expected = pack(old);
    // mo: release [table.directory]: the copy is complete; failure relaxed: nothing is read.
    return words_[old.index].compare_exchange_strong(
        expected, pack(fresh), std::memory_order_release, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t address_bits = ~std::uint64_t{63};  // segments are aligned so
  static constexpr std::uint64_t code_bits = 31;
  static_assert(depth_max + 1 <= code_bits);

  static constexpr std::uint32_t low_bits(std::uint64_t depth) noexcept {
    return (1U << depth) - 1U;
  }
  static constexpr std::uint32_t reach_of(std::uint32_t depth) noexcept {
    return (4U << depth) - 2U;
  }
  static constexpr std::uint32_t index_bits(std::uint32_t reach) noexcept { return reach >> 2; }
  static constexpr std::uint32_t highest_bit(std::uint32_t value) noexcept {
    return value == 0 ? 0 : 1U << (31 - __builtin_clz(value));
  }
  [[nodiscard]] static std::uint64_t pack(const Segment& segment) noexcept {
    return reinterpret_cast<std::uintptr_t>(&segment) | (segment.depth + 1);
  }
  [[nodiscard]] static Segment* unpack(std::uint64_t word) noexcept {
    return reinterpret_cast<Segment*>(word & address_bits);
  }
  /// Of a word that is not zero.
  [[nodiscard]] static bool holds(std::uint64_t word, std::uint32_t index, HashBits hash) noexcept {
    return (hash.directory() & low_bits((word & code_bits) - 1)) == index;
  }
  /// locate() where a segment is less deep than the table, and where a split came in between.
  [[nodiscard, gnu::noinline]] Segment* search(HashBits hash) const noexcept {
    for (;;) {
      // mo: acquire [table.depth]: see the head of the file.
      std::uint32_t index = hash.directory() & index_bits(reach_.load(std::memory_order_acquire));
      // mo: acquire [table.directory]: as in locate().
      std::uint64_t word = words_[index].load(std::memory_order_acquire);
      while (word == 0) {
        index &= ~highest_bit(index);
        word = words_[index].load(std::memory_order_acquire);  // mo: [table.directory]
      }
      if (holds(word, index, hash)) [[likely]]
        return unpack(word);
    }
  }

  Word* const words_;
  typename Sync::template atomic<std::uint32_t> reach_{reach_of(0)};
};

}  // namespace semel::engine
