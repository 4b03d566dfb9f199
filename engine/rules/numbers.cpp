#include "engine/rules/numbers.hpp"

#include <cerrno>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <locale.h>

#include "base/ascii.hpp"

namespace semel::engine {

namespace {

/// strtold in the C locale, whatever the process has set: with a decimal comma "1.5" must not
/// become 1. glibc hands out its built-in C locale here, so nothing is allocated.
long double read_in_c_locale(const char* text, char** end) noexcept {
  const locale_t c_locale = ::newlocale(LC_ALL_MASK, "C", locale_t{});
  if (c_locale == locale_t{}) return std::strtold(text, end);
  const long double value = ::strtold_l(text, end, c_locale);
  const int saved = errno;
  ::freelocale(c_locale);
  errno = saved;
  return value;
}

}  // namespace

bool parse_integer(Bytes text, std::int64_t& value) noexcept {
  if (text.empty()) return false;
  const bool negative = text.front() == '-';
  const char* const first = text.data() + (negative ? 1 : 0);
  const char* const last = text.data() + text.size();
  if (first == last || !base::is_digit(*first)) return false;
  if (*first == '0' && text.size() != 1) return false;  // leading zero, or "-0"

  std::int64_t parsed = 0;
  const auto result = std::from_chars(text.data(), last, parsed);
  if (result.ec != std::errc{} || result.ptr != last) return false;
  value = parsed;
  return true;
}

void format_integer(std::int64_t value, std::string& text) {
  char buffer[std::numeric_limits<std::int64_t>::digits10 + 3];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  text.assign(buffer, result.ptr);
}

bool parse_float(Bytes text, long double& value) noexcept {
  if (text.empty() || text.size() >= float_text_bytes_max) return false;
  // strtold would skip these silently.
  if (text.front() == ' ' || (text.front() >= '\t' && text.front() <= '\r')) return false;

  char buffer[float_text_bytes_max];
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';

  char* end = nullptr;
  errno = 0;
  const long double parsed = read_in_c_locale(buffer, &end);
  if (end != buffer + text.size()) return false;  // also a zero byte inside the text
  if (errno == ERANGE && (std::isinf(parsed) || parsed == 0.0L)) return false;
  if (errno == EINVAL || std::isnan(parsed)) return false;
  value = parsed;
  return true;
}

void append_float(long double value, std::string& text) {
  if (std::isinf(value)) {
    text.append(value > 0 ? "inf" : "-inf");
    return;
  }
  constexpr std::size_t decimals = 17;
  char buffer[float_text_bytes_max];
  const int printed = std::snprintf(buffer, sizeof(buffer), "%.17Lf", value);
  if (printed <= 0) return;  // cannot happen: the largest long double takes 4,952 bytes

  // Between the whole digits and the 17 decimals stands the locale's point, of any length.
  const Bytes all{buffer, static_cast<std::size_t>(printed)};
  std::size_t whole = all.front() == '-' ? 1 : 0;
  while (whole < all.size() && base::is_digit(all[whole])) ++whole;
  Bytes fraction = all.substr(all.size() - decimals);
  const std::size_t last = fraction.find_last_not_of('0');
  fraction = fraction.substr(0, last == Bytes::npos ? 0 : last + 1);

  const Bytes whole_text = all.substr(0, whole);
  if (fraction.empty()) {
    text.append(whole_text == "-0" ? Bytes{"0"} : whole_text);
  } else {
    text.append(whole_text).append(1, '.').append(fraction);
  }
}

}  // namespace semel::engine
