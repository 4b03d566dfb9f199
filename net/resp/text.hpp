// Parses the arguments of commands: numbers and keywords.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace semel::net {

/// An integer as redis-server accepts it: no sign but '-', no leading zeros, nothing around it.
[[nodiscard]] inline std::optional<std::int64_t> integer_of(std::string_view text) noexcept {
  const bool is_negative = text.starts_with('-');
  const std::string_view digits = text.substr(is_negative ? 1 : 0);
  constexpr std::size_t digits_max = 19;  // of 2^63
  if (digits.empty() || digits.size() > digits_max) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : digits) {
    const unsigned digit = static_cast<unsigned char>(c) - unsigned{'0'};
    if (digit > 9) return std::nullopt;
    number = number * 10 + digit;  // below 10^19, which fits
  }
  if (digits.front() == '0' && text.size() != 1) return std::nullopt;
  constexpr std::uint64_t most = std::uint64_t{1} << 63;
  if (number > most - (is_negative ? 0 : 1)) return std::nullopt;
  return static_cast<std::int64_t>(is_negative ? 0 - number : number);
}

/// A number as strtold reads it in the C locale, finite or not. All of `text` must be part of it,
/// without blanks around it.
[[nodiscard]] inline std::optional<long double> float_of(std::string_view text) {
  constexpr std::size_t bytes_max = 256;
  // Digits alone, as most timeouts are: such a number is the same without strtold().
  constexpr std::size_t digits_max = 18;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!text.empty() && text.size() <= digits_max &&
      std::all_of(text.begin(), text.end(), is_digit)) {
    std::int64_t number = 0;
    for (const char digit : text) number = number * 10 + (digit - '0');
    return static_cast<long double>(number);
  }
  if (text.empty() || text.size() > bytes_max || text.front() == ' ' ||
      (text.front() >= '\t' && text.front() <= '\r')) {
    return std::nullopt;
  }
  const std::string copy{text};
  char* end = nullptr;
  errno = 0;
  const long double value = std::strtold(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
  return value;
}

/// A cursor of SCAN and its like, as strtoul reads it, up to a zero byte: a sign counts, no digits
/// are 0.
[[nodiscard]] inline std::optional<std::uint64_t> cursor_of(std::string_view word) {
  const std::string text{word};
  char* end = nullptr;
  errno = 0;
  const std::uint64_t cursor = std::strtoull(text.c_str(), &end, 10);
  const bool is_blank = text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r');
  if (is_blank || *end != '\0' || errno == ERANGE) return std::nullopt;
  return cursor;
}

namespace detail {

/// All of 1 to 8 bytes; parts may be there twice.
[[nodiscard]] inline std::uint64_t bytes_of(const char* at, std::size_t size) noexcept {
  if (size < 4) {
    const auto byte = [at](std::size_t i) {
      return std::uint64_t{static_cast<unsigned char>(at[i])};
    };
    return byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16;
  }
  std::uint32_t first, last;
  std::memcpy(&first, at, 4);
  std::memcpy(&last, at + size - 4, 4);
  return first | std::uint64_t{last} << 32;
}

/// Whether the bytes of `text` are those of `small`, or capital letters of its letters.
[[nodiscard]] inline bool is_folded(std::uint64_t text, std::uint64_t small) noexcept {
  constexpr std::uint64_t each = 0x0101'0101'0101'0101;
  // In ASCII. A high bit says that a byte is at least 'a', or beyond 'z'.
  const std::uint64_t from_a = small + each * (0x80 - 'a');
  const std::uint64_t beyond_z = small + each * (0x80 - 'z' - 1);
  const std::uint64_t letters = from_a & ~beyond_z & each * 0x80;
  return (text | letters >> 2) == small;  // 0x20 makes a capital letter small
}

}  // namespace detail

/// Whether both are equal but for the case of letters. `small` is ASCII without capital letters.
[[nodiscard]] inline bool is_word(std::string_view text, std::string_view small) noexcept {
  constexpr std::size_t step = 8;
  const std::size_t size = small.size();
  if (text.size() != size) return false;
  if (size == 0) return true;
  const auto is_same = [&](std::size_t from, std::size_t bytes) {
    return detail::is_folded(detail::bytes_of(text.data() + from, bytes),
                             detail::bytes_of(small.data() + from, bytes));
  };
  if (size <= step) return is_same(0, size);
  std::size_t at = 0;
  for (; at + step < size; at += step) {
    if (!is_same(at, step)) return false;
  }
  return is_same(size - step, step);
}

}  // namespace semel::net
