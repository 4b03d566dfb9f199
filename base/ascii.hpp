// Letters and digits of ASCII. <cctype> asks the locale and is undefined for negative chars.
#pragma once

#include <string>
#include <string_view>

namespace semel::base {

[[nodiscard]] constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
[[nodiscard]] constexpr bool is_lower(char c) noexcept {
  return c >= 'a' && c <= 'z';
}
[[nodiscard]] constexpr bool is_upper(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}
[[nodiscard]] constexpr bool is_letter(char c) noexcept {
  return is_lower(c) || is_upper(c);
}

/// Other characters stay as they are.
[[nodiscard]] constexpr char to_lower(char c) noexcept {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
[[nodiscard]] constexpr char to_upper(char c) noexcept {
  return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
}

[[nodiscard]] inline std::string lower_of(std::string_view text) {
  std::string lower{text};
  for (char& c : lower) c = to_lower(c);
  return lower;
}
[[nodiscard]] inline std::string upper_of(std::string_view text) {
  std::string upper{text};
  for (char& c : upper) c = to_upper(c);
  return upper;
}

}  // namespace semel::base
