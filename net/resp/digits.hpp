// Integers as text, without a call: most numbers in replies are short.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace semel::net {

/// Of the longest number, with its sign.
inline constexpr std::size_t number_bytes_max = 20;

namespace detail {

/// "00", "01" .. "99", one behind the other.
inline constexpr auto digit_pairs = [] {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < pairs.size() / 2; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

}  // namespace detail

/// Writes `number` to `at`, which has room for number_bytes_max bytes, and returns where it ends.
inline char* put_digits(char* at, std::int64_t number) noexcept {
  if (number >= 0 && number <= 9) {
    *at = static_cast<char>('0' + number);
    return at + 1;
  }
  auto left = static_cast<std::uint64_t>(number);
  if (number < 0) {
    *at++ = '-';
    left = 0 - left;
  }
  std::size_t count = 1;
  // At most 2^63 is below 10^19, which is the last bound.
  for (std::uint64_t bound = 10; left >= bound; bound *= 10) ++count;
  char* const end = at + count;
  char* to = end;
  constexpr std::uint64_t pair = 100;
  for (; left >= pair; left /= pair) {
    to -= 2;
    std::memcpy(to, detail::digit_pairs.data() + 2 * (left % pair), 2);
  }
  if (left >= 10) {
    std::memcpy(at, detail::digit_pairs.data() + 2 * left, 2);
  } else {
    *at = static_cast<char>('0' + left);
  }
  return end;
}

}  // namespace semel::net
