// Short runs of bytes compared and copied without calling into the C library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace semel::engine {

/// Compares without calling into the C library: keys are short, and the call costs as much. Whole
/// words and then one that overlaps, with no branch on what the bytes are.
[[nodiscard]] inline bool same_bytes(const char* a, const char* b, std::size_t count) noexcept {
  const auto word = [](const char* at) {
    std::uint64_t value;
    std::memcpy(&value, at, 8);
    return value;
  };
  const auto differ = [&](std::size_t at) { return word(a + at) ^ word(b + at); };
  if (count - 8 > 32) [[unlikely]]
    return std::memcmp(a, b, count) == 0;  // 0..7 or above 40
#if defined(__SSE2__)
  if (count - 16 <= 16) {
    const auto half = [](const char* at) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    };
    const __m128i first = _mm_cmpeq_epi8(half(a), half(b));
    const __m128i last = _mm_cmpeq_epi8(half(a + count - 16), half(b + count - 16));
    return _mm_movemask_epi8(_mm_and_si128(first, last)) == 0xffff;
  }
#endif
  std::uint64_t difference = differ(0) | differ(count - 8);
  if (count > 16) difference |= differ(8) | differ(count - 16);
  if (count > 32) difference |= differ(16);
  return difference == 0;
}

/// The same for copying: `to` and `from` do not overlap.
inline void copy_bytes(char* to, const char* from, std::size_t count) noexcept {
  if (count - 8 > 32) [[unlikely]] {  // 0..7 or above 40
    if (count != 0) std::memcpy(to, from, count);
    return;
  }
  const auto word = [&](std::size_t at) { std::memcpy(to + at, from + at, 8); };
  word(0);
  if (count > 16) {
    word(8);
    word(count - 16);
  }
  if (count > 32) word(16);
  word(count - 8);
}

}  // namespace semel::engine
