// The words of requests as numbers, so that a word is found by one comparison, or by a switch.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

namespace semel::net {

static_assert(std::endian::native == std::endian::little, "codes are loaded, not put together");
inline constexpr std::size_t word_code_bytes_max = 8;

namespace detail {

template <class Word>
[[nodiscard]] inline std::uint64_t load(const char* at) noexcept {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace detail

/// The first bytes of `text`, at most eight, the first lowest; 0 beyond its end.
[[nodiscard]] constexpr std::uint64_t packed_bytes(std::string_view text) noexcept {
  const char* const at = text.data();
  const std::size_t size = text.size();
  if (std::is_constant_evaluated()) {
    std::uint64_t packed = 0;
    for (std::size_t i = 0; i < size && i < word_code_bytes_max; ++i) {
      packed |= std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
    }
    return packed;
  }
  // Two loads that overlap: the bytes that both have are the same ones.
  using detail::load;
  if (size >= 8) return load<std::uint64_t>(at);
  if (size >= 4) {
    return load<std::uint32_t>(at) | load<std::uint32_t>(at + size - 4) << (8 * (size - 4));
  }
  if (size >= 2) {
    return load<std::uint16_t>(at) | load<std::uint16_t>(at + size - 2) << (8 * (size - 2));
  }
  return size == 0 ? 0 : static_cast<unsigned char>(*at);
}

/// Bit 0x20 of each of the first `size` bytes, at most eight: set, it makes a capital letter small.
[[nodiscard]] constexpr std::uint64_t small_bits(std::size_t size) noexcept {
  constexpr std::uint64_t all = 0x2020'2020'2020'2020;
  return size >= word_code_bytes_max ? all : all & ((std::uint64_t{1} << (8 * size)) - 1);
}

/// The code of a word as a client writes it, in any case of letters. A text that is equal to a word
/// of small letters but for their case has its code, and no other text has. 0: nothing, or more
/// than eight bytes.
[[nodiscard]] inline std::uint64_t code_of(std::string_view text) noexcept {
  const std::size_t size = text.size();
  if (size > word_code_bytes_max) return 0;
  return packed_bytes(text) | small_bits(size);
}

/// One to eight digits as a number. None: other bytes, more of them, or a zero in front of others;
/// some of these are numbers all the same (net/resp/text.hpp).
[[nodiscard]] inline std::optional<std::int64_t> short_integer_of(std::string_view text) noexcept {
  const std::size_t size = text.size();
  if (size == 0 || size > word_code_bytes_max || (text.front() == '0' && size != 1)) {
    return std::nullopt;
  }
  // Zeros in front, so that there are eight digits, the highest one in the lowest byte.
  constexpr std::uint64_t zeros = 0x3030'3030'3030'3030;
  constexpr std::uint64_t high_bits = 0x8080'8080'8080'8080;
  const std::uint64_t digits = packed_bytes(text) << (8 * (word_code_bytes_max - size)) |
                               (size == 8 ? 0 : zeros >> (8 * size));
  std::uint64_t sum = digits - zeros;
  // Above '9' an addition sets a byte's high bit, below '0' the subtraction does.
  if ((((digits + 0x4646'4646'4646'4646) | sum) & high_bits) != 0) return std::nullopt;
  sum = sum * 10 + (sum >> 8);  // pairs of digits, in every other byte
  constexpr std::uint64_t pairs = 0x0000'00ff'0000'00ff;
  sum = ((sum & pairs) * 0x000f'4240'0000'0064 + (sum >> 16 & pairs) * 0x0000'2710'0000'0001) >> 32;
  return static_cast<std::int64_t>(sum);
}

/// The code of a word of one to eight small letters. Others do not compile: with bit 0x20 set, two
/// bytes that are no letters may look alike.
[[nodiscard]] consteval std::uint64_t code_of_word(std::string_view small) {
  bool is_valid = !small.empty() && small.size() <= word_code_bytes_max;
  for (const char c : small) is_valid = is_valid && c >= 'a' && c <= 'z';
  return is_valid ? packed_bytes(small) : throw "a word of one to eight small letters";
}

}  // namespace semel::net
