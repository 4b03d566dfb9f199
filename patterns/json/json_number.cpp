#include "patterns/json/json_number.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/assert.hpp"
#include "semel/limits.hpp"

namespace semel::patterns {

namespace {

// A text has at most json_bytes_max digits, so beyond this no exponent brings a number into range.
constexpr std::int64_t exponent_max = 1'000'000'000;
static_assert(exponent_max > 2 * static_cast<std::int64_t>(limits::json_bytes_max));

/// Where the first digit that counts stands: 1 for 1 to 9, 0 for tenths. 0 for zero.
std::int64_t magnitude_of(Bytes text) noexcept {
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t exponent_at = text.find_first_of("eE");
  std::int64_t magnitude = 0;
  bool counts = false;
  bool is_fraction = false;
  for (const char c : text.substr(0, exponent_at)) {
    if (c == '.') {
      is_fraction = true;
    } else if (counts || c != '0') {
      counts = true;
      if (!is_fraction) ++magnitude;
    } else if (is_fraction) {
      --magnitude;
    }
  }
  if (!counts) return 0;
  if (exponent_at != Bytes::npos) {
    Bytes digits = text.substr(exponent_at + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    std::int32_t exponent = 0;  // the parser of JSON takes no larger one
    std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    magnitude += exponent;
  }
  return magnitude;
}

/// Of "", "e5", "E-007". None: so large that no number of a text within the limits is near to one.
std::optional<std::int64_t> exponent_of(Bytes text) noexcept {
  if (text.empty()) return 0;
  text.remove_prefix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc{} || exponent > exponent_max || exponent < -exponent_max) return {};
  return exponent;
}

/// `digits` without zeros at either end, with `point` of them in front of the point, as ECMAScript
/// places them.
void append_digits(const std::string& digits, int point, std::string& text) {
  SEMEL_ASSERT(!digits.empty() && digits.front() != '0' && digits.back() != '0');
  const int count = static_cast<int>(digits.size());
  if (point > 21 || point <= -6) {
    const int exponent = point - 1;
    text += digits[0];
    if (count > 1) text.append(1, '.').append(digits, 1);
    text.append(exponent < 0 ? "e-" : "e+")
        .append(std::to_string(exponent < 0 ? -exponent : exponent));
  } else if (point <= 0) {
    text.append("0.").append(static_cast<std::size_t>(-point), '0').append(digits);
  } else if (point >= count) {
    text.append(digits).append(static_cast<std::size_t>(point - count), '0');
  } else {
    const auto whole = static_cast<std::size_t>(point);
    text.append(digits, 0, whole).append(1, '.').append(digits, whole);
  }
}

}  // namespace

std::optional<double> read_json_number(Bytes text) noexcept {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    if (magnitude_of(text) > 0) return std::nullopt;
    return 0.0;  // nearer to zero than to the smallest double
  }
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void append_json_number(double value, std::string& text) {
  if (value == 0) {
    text += '0';  // -0 as well
    return;
  }
  // Shortest digits that read back as the same double, d.ddde+xx; ECMAScript asks for the same ones
  // and differs in where it puts the point.
  char buffer[32];
  const auto printed =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  Bytes form{buffer, static_cast<std::size_t>(printed.ptr - buffer)};
  if (form.front() == '-') {
    text += '-';
    form.remove_prefix(1);
  }
  const std::size_t e = form.find('e');
  int exponent = 0;
  const char* const exponent_text = form.data() + e + (form[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_text, form.data() + form.size(), exponent);
  std::string digits{form.substr(0, 1)};
  if (e > 1) digits.append(form.substr(2, e - 2));
  append_digits(digits, exponent + 1, text);
}

bool append_exact_number(Bytes literal, std::string& text) {
  Bytes rest = literal;
  const bool is_negative = rest.starts_with('-');
  if (is_negative) rest.remove_prefix(1);
  const std::size_t exponent_at = std::min(rest.find_first_of("eE"), rest.size());
  std::string digits;
  std::int64_t point = 0;  // digits in front of the point; below 0: zeros behind it
  bool is_fraction = false;
  for (const char c : rest.substr(0, exponent_at)) {
    if (c == '.') {
      is_fraction = true;
      continue;
    }
    const bool counts = !digits.empty() || c != '0';
    if (counts) digits += c;
    if (counts != is_fraction) point += counts ? 1 : -1;
  }
  digits.resize(digits.find_last_not_of('0') + 1);
  if (digits.empty()) {
    text += '0';  // -0 as well
    return true;
  }
  const std::optional<std::int64_t> exponent = exponent_of(rest.substr(exponent_at));
  if (!exponent) return false;
  point += *exponent;
  constexpr auto places = static_cast<std::int64_t>(limits::json_places_max);
  if (point > places || point - static_cast<std::int64_t>(digits.size()) < -places) return false;
  if (is_negative) text += '-';
  append_digits(digits, static_cast<int>(point), text);
  return true;
}

}  // namespace semel::patterns
