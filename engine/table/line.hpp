// One line of eight slots, looked at without a branch per slot: a mispredicted branch here would
// wait for the cache miss and keep the next operation from starting its own.
//
// The order in which the eight words are read does not matter. A slot never changes its key, so a
// slot seen full with another key stays so; and no key lies behind an empty slot of its sequence.
// So the lowest slot seen empty proves the key absent at the moment that slot was read, and the
// compare-and-set on it decides for a writer.
//
// Two ways to read. The portable one is eight relaxed loads. On x86-64 four aligned vector loads
// take a quarter of the instructions; each 8-byte half of such a load is indivisible there. They
// are written in assembly, for the language knows no vector load that may race with a store.
#pragma once

#include <array>
#include <atomic>

#include "engine/table/slot.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace semel::engine {

#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
inline constexpr bool has_vector_lines = true;
#else
inline constexpr bool has_vector_lines = false;
#endif

// Always inlined: nearly all calls begin with this look, and in a large unit the compiler stops
// inlining even short functions.

/// Whether slots match `prefix` (slot.hpp), are empty, or hold tombstones; bit i for slot i.
template <class Word, bool vector>
class Line {
 public:
  [[gnu::always_inline]] Line(const Word* slots, SlotWord prefix) noexcept : prefix_(prefix) {
    for (unsigned i = 0; i < slots_per_line; ++i) {
      // mo: relaxed: see the head of the file; a word that matters is read again with acquire.
      words_[i] = slots[i].load(std::memory_order_relaxed);
    }
  }
  [[nodiscard, gnu::always_inline]] unsigned candidates() const noexcept {
    unsigned bits = 0;
    for (unsigned i = 0; i < slots_per_line; ++i) {
      bits |= static_cast<unsigned>(((words_[i] ^ prefix_) & slot::match_mask) == 0) << i;
    }
    return bits;
  }
  [[nodiscard, gnu::always_inline]] unsigned empties() const noexcept {
    unsigned bits = 0;
    for (unsigned i = 0; i < slots_per_line; ++i) {
      bits |= static_cast<unsigned>(slot::is_empty(words_[i])) << i;
    }
    return bits;
  }
  [[nodiscard, gnu::always_inline]] bool has_tombstones() const noexcept {
    SlotWord all = 0;
    for (const SlotWord word : words_) all |= word;
    return slot::is_tombstone(all);
  }

 private:
  SlotWord prefix_;
  std::array<SlotWord, slots_per_line> words_;
};

#if defined(__SSE2__)
/// The same from the upper halves of the words, where tag, distance and flags are. The half of a
/// record is never zero (slot.hpp).
template <class Word>
class Line<Word, true> {
 public:
  [[gnu::always_inline]] Line(const Word* slots, SlotWord prefix) noexcept {
    __m128i part[4];
    for (unsigned i = 0; i < 4; ++i) {
      asm volatile("movdqa %1, %0" : "=x"(part[i]) : "m"(slots[i * 2]), "m"(slots[i * 2 + 1]));
    }
    low_ = upper_halves(part[0], part[1]);
    high_ = upper_halves(part[2], part[3]);
    const auto upper = static_cast<int>((prefix & slot::match_mask) >> 32);
    wanted_ = _mm_set1_epi32(upper);
  }
  [[nodiscard, gnu::always_inline]] unsigned candidates() const noexcept {
    const __m128i mask = _mm_set1_epi32(static_cast<int>(slot::match_mask >> 32));
    return bits(_mm_cmpeq_epi32(_mm_and_si128(low_, mask), wanted_),
                _mm_cmpeq_epi32(_mm_and_si128(high_, mask), wanted_));
  }
  [[nodiscard, gnu::always_inline]] unsigned empties() const noexcept {
    const __m128i zero = _mm_setzero_si128();
    return bits(_mm_cmpeq_epi32(_mm_slli_epi32(low_, 1), zero),
                _mm_cmpeq_epi32(_mm_slli_epi32(high_, 1), zero));
  }
  [[nodiscard, gnu::always_inline]] bool has_tombstones() const noexcept {
    const __m128i all = _mm_or_si128(low_, high_);
    return _mm_movemask_ps(_mm_castsi128_ps(_mm_slli_epi32(all, 1))) != 0;
  }

 private:
  [[nodiscard, gnu::always_inline]] static __m128i upper_halves(__m128i a, __m128i b) noexcept {
    return _mm_castps_si128(
        _mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), _MM_SHUFFLE(3, 1, 3, 1)));
  }
  [[nodiscard, gnu::always_inline]] static unsigned bits(__m128i low, __m128i high) noexcept {
    const __m128i words = _mm_packs_epi32(low, high);
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(words, words))) & 0xffU;
  }
  __m128i low_;
  __m128i high_;
  __m128i wanted_;
};
#endif

}  // namespace semel::engine
