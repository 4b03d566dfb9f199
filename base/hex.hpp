// Bytes as hexadecimal digits, in lower case, and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace semel::base {

inline constexpr std::string_view hex_digits = "0123456789abcdef";

/// 0..15, in any case of letters; -1: `c` is not a hexadecimal digit.
[[nodiscard]] constexpr int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// Two digits.
inline void append_hex(std::string& text, std::uint8_t byte) {
  text += hex_digits[byte >> 4U];
  text += hex_digits[byte & 15U];
}

/// Two digits for each byte.
[[nodiscard]] inline std::string hex_of(std::span<const std::uint8_t> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) append_hex(text, byte);
  return text;
}

}  // namespace semel::base
