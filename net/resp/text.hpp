// Parses the arguments of commands: numbers and keywords.
#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/ascii.hpp"

namespace semel::net {

/// An integer as redis-server accepts it: no sign but '-', no leading zeros, nothing around it.
[[nodiscard]] inline std::optional<std::int64_t> integer_of(std::string_view text) noexcept {
  if (text == "0") return 0;
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.front() < '1' || digits.front() > '9') return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// A number as strtold reads it in the C locale, finite or not. All of `text` must be part of it,
/// without blanks around it.
[[nodiscard]] inline std::optional<long double> float_of(std::string_view text) {
  constexpr std::size_t bytes_max = 256;
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

/// Whether both are equal but for the case of letters. `small` has no capital letters.
[[nodiscard]] inline bool is_word(std::string_view text, std::string_view small) noexcept {
  return std::equal(text.begin(), text.end(), small.begin(), small.end(),
                    [](char a, char b) { return base::to_lower(a) == b; });
}

}  // namespace semel::net
