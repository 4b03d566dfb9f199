// Short runs of bytes compared and copied without calling into the C library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace semel::engine {

#if defined(__SSE2__)
[[nodiscard]] inline __m128i read_half(const char* at) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
inline void copy_half(char* to, const char* from) noexcept {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), read_half(from));
}
#endif

/// Compares without calling into the C library: keys are short, and the call costs as much. Whole
/// words and then one that overlaps, with no branch on what the bytes are.
[[nodiscard, gnu::always_inline]] inline bool same_bytes(const char* a, const char* b,
                                                         std::size_t count) noexcept {
#if defined(__SSE2__)
  if (count - 16 <= 32) [[likely]] {  // 16..48
    const auto same = [&](std::size_t at) {
      return _mm_cmpeq_epi8(read_half(a + at), read_half(b + at));
    };
    __m128i all = _mm_and_si128(same(0), same(count - 16));
    if (count > 32) all = _mm_and_si128(all, same(16));
    return _mm_movemask_epi8(all) == 0xffff;
  }
#endif
  const auto word = [](const char* at) {
    std::uint64_t value;
    std::memcpy(&value, at, 8);
    return value;
  };
  const auto differ = [&](std::size_t at) { return word(a + at) ^ word(b + at); };
  if (count - 8 > 32) [[unlikely]]
    return std::memcmp(a, b, count) == 0;  // 0..7 or above 40
  std::uint64_t difference = differ(0) | differ(count - 8);
  if (count > 16) difference |= differ(8) | differ(count - 16);
  if (count > 32) difference |= differ(16);
  return difference == 0;
}

/// The same for copying: `to` and `from` do not overlap.
inline void copy_bytes(char* to, const char* from, std::size_t count) noexcept {
#if defined(__SSE2__)
  if (count - 16 <= 32) {  // 16..48
    copy_half(to, from);
    if (count > 32) copy_half(to + 16, from + 16);
    copy_half(to + count - 16, from + count - 16);
    return;
  }
#endif
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

/// A string that is made where it will stay, of 4..15 bytes: these the library keeps inside of the
/// object, so that making one takes no call.
class ShortCopy {
 public:
  explicit ShortCopy(std::string_view bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] static bool fits(std::size_t size) noexcept { return size - least <= most - least; }

  [[gnu::always_inline]] operator std::string() const {  // implicit: it stands for the string
    static constexpr char zeros[most]{};
    std::string text(zeros, most);
    text.erase(bytes_.size());  // unlike resize() it is always inline
    if (bytes_.size() >= 8) {
      std::memcpy(text.data(), bytes_.data(), 8);
      std::memcpy(text.data() + bytes_.size() - 8, bytes_.data() + bytes_.size() - 8, 8);
    } else {
      std::memcpy(text.data(), bytes_.data(), least);
      std::memcpy(text.data() + bytes_.size() - least, bytes_.data() + bytes_.size() - least,
                  least);
    }
    return text;
  }

 private:
  static constexpr std::size_t least = 4, most = 15;

  std::string_view bytes_;
};
/// The same of any length.
class Copy {
 public:
  explicit Copy(std::string_view bytes) noexcept : bytes_(bytes) {}

  [[gnu::always_inline]] operator std::string() const {  // implicit: it stands for the string
    if (ShortCopy::fits(bytes_.size())) [[likely]]
      return ShortCopy{bytes_};
    return std::string(bytes_);
  }

 private:
  std::string_view bytes_;
};

}  // namespace semel::engine
