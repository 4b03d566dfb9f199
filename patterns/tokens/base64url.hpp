// RFC 4648's base64url, without padding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "semel/types.hpp"

namespace semel::patterns {

inline constexpr Bytes base64url_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

[[nodiscard]] inline std::string base64url(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8U | (j < count ? bytes[i + j] : 0U);
    for (std::size_t j = 0; j <= count; ++j) {
      text += base64url_digits[group >> (18 - 6 * j) & 63U];
    }
  }
  return text;
}

}  // namespace semel::patterns
