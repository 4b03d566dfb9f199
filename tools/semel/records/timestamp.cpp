#include "tools/semel/records/timestamp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ctime>

#include "base/ascii.hpp"

namespace semel::tool {
namespace {

using Reading = TimeFormat::Reading;

constexpr std::int64_t ms_min = -62'167'219'200'000;  ///< 0000-01-01
constexpr std::int64_t ms_max = 253'402'300'799'999;  ///< 9999-12-31

constexpr std::optional<Reading> in_range(std::int64_t unix_ms, std::size_t size) {
  if (unix_ms < ms_min || unix_ms > ms_max) return std::nullopt;
  return Reading{unix_ms, size};
}

/// A moment as written, before it is checked.
struct Written {
  unsigned year = 0;
  unsigned month = 1;
  unsigned day = 1;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  unsigned ms = 0;
  int zone_minutes = 0;
};

/// Walks over a text; once something did not match, everything after fails as well.
class Scanner {
 public:
  explicit Scanner(Bytes text) : text_(text) {}

  /// Exactly `digits` digits.
  unsigned number(std::size_t digits) {
    if (text_.size() - at_ < digits) return fail();
    unsigned value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char byte = text_[at_ + i];
      if (!base::is_digit(byte)) return fail();
      value = value * 10 + static_cast<unsigned>(byte - '0');
    }
    at_ += digits;
    return value;
  }

  /// One byte out of `any`.
  void expect(Bytes any) {
    if (!accept(any)) fail();
  }

  bool accept(Bytes any) {
    if (!ok_ || at_ == text_.size() || any.find(text_[at_]) == Bytes::npos) return false;
    ++at_;
    return true;
  }

  /// Three letters of a month, in English as every log writes them.
  unsigned month_name() {
    static constexpr Bytes names = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (text_.size() - at_ < 3) return fail();
    const std::size_t found = names.find(text_.substr(at_, 3));
    if (found == Bytes::npos || found % 3 != 0) return fail();
    at_ += 3;
    return static_cast<unsigned>(found / 3) + 1;
  }

  /// Digits after a decimal point, cut to milliseconds.
  unsigned fraction_ms() {
    unsigned ms = 0;
    unsigned place = 100;
    const std::size_t start = at_;
    for (; at_ < text_.size() && base::is_digit(text_[at_]); ++at_) {
      ms += place * static_cast<unsigned>(text_[at_] - '0');
      place /= 10;
    }
    return at_ == start ? fail() : ms;
  }

  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] char peek_next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t at() const { return at_; }

 private:
  unsigned fail() {
    ok_ = false;
    return 0;
  }

  Bytes text_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

constexpr bool is_leap(unsigned year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/// Days since 1970-01-01 in the Gregorian calendar, counted from March so that the leap day ends
/// the year.
constexpr std::int64_t days_since_epoch(unsigned year, unsigned month, unsigned day) {
  const std::int64_t from_march = month > 2 ? month - 3 : month + 9;
  const std::int64_t years = static_cast<std::int64_t>(year) - (month <= 2 ? 1 : 0);
  const std::int64_t cycle = (years >= 0 ? years : years - 399) / 400;
  const std::int64_t year_of_cycle = years - cycle * 400;
  const std::int64_t day_of_year = (153 * from_march + 2) / 5 + day - 1;
  const std::int64_t day_of_cycle =
      year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
  return cycle * 146'097 + day_of_cycle - 719'468;
}
static_assert(days_since_epoch(1970, 1, 1) == 0);
static_assert(days_since_epoch(2000, 3, 1) == 11'017);

std::optional<std::int64_t> to_unix_ms(const Written& when) {
  static constexpr std::array<unsigned, 12> month_days{31, 28, 31, 30, 31, 30,
                                                       31, 31, 30, 31, 30, 31};
  if (when.month < 1 || when.month > 12 || when.day < 1) return std::nullopt;
  const bool leap_day = when.month == 2 && is_leap(when.year);
  if (when.day > month_days[when.month - 1] + (leap_day ? 1U : 0U)) return std::nullopt;
  // A leap second is written as :60; it is the first millisecond of the next minute here.
  if (when.hour > 23 || when.minute > 59 || when.second > 60) return std::nullopt;
  const std::int64_t minutes = std::int64_t{when.hour} * 60 + when.minute - when.zone_minutes;
  const std::int64_t seconds =
      days_since_epoch(when.year, when.month, when.day) * 86'400 + minutes * 60 + when.second;
  return seconds * 1000 + when.ms;
}

/// Z, +02:00, +0200 or +02. Nothing at all is UTC.
int read_zone(Scanner& scanner) {
  if (scanner.accept("Zz")) return 0;
  const bool east = scanner.peek() == '+';
  if (!east && scanner.peek() != '-') return 0;
  scanner.expect("+-");
  const unsigned hours = scanner.number(2);
  unsigned minutes = 0;
  if (scanner.accept(":") || base::is_digit(scanner.peek())) minutes = scanner.number(2);
  const int total = static_cast<int>(hours * 60 + minutes);
  return east ? total : -total;
}

std::optional<Reading> finish(const Scanner& scanner, const Written& when) {
  if (!scanner.ok()) return std::nullopt;
  const std::optional<std::int64_t> unix_ms = to_unix_ms(when);
  return unix_ms ? in_range(*unix_ms, scanner.at()) : std::nullopt;
}

std::optional<Reading> read_iso8601(Bytes text) {
  Scanner scanner{text};
  Written when;
  when.year = scanner.number(4);
  scanner.expect("-");
  when.month = scanner.number(2);
  scanner.expect("-");
  when.day = scanner.number(2);
  // A blank may part date and time, or end a date that stands alone: the digit decides.
  const bool has_time = (scanner.peek() == ' ' && base::is_digit(scanner.peek_next())) ||
                        scanner.peek() == 'T' || scanner.peek() == 't';
  if (scanner.ok() && has_time) {
    scanner.expect("Tt ");
    when.hour = scanner.number(2);
    scanner.expect(":");
    when.minute = scanner.number(2);
    if (scanner.accept(":")) {
      when.second = scanner.number(2);
      if (scanner.accept(".,")) when.ms = scanner.fraction_ms();
    }
    when.zone_minutes = read_zone(scanner);
  }
  return finish(scanner, when);
}

/// [17/May/2015:10:05:03 +0000], the brackets optional together.
std::optional<Reading> read_apache(Bytes text) {
  Scanner scanner{text};
  Written when;
  const bool bracket = scanner.accept("[");
  when.day = scanner.number(2);
  scanner.expect("/");
  when.month = scanner.month_name();
  scanner.expect("/");
  when.year = scanner.number(4);
  scanner.expect(":");
  when.hour = scanner.number(2);
  scanner.expect(":");
  when.minute = scanner.number(2);
  scanner.expect(":");
  when.second = scanner.number(2);
  if (scanner.peek() == ' ' && (scanner.peek_next() == '+' || scanner.peek_next() == '-')) {
    scanner.expect(" ");
    when.zone_minutes = read_zone(scanner);
  }
  if (bracket) scanner.expect("]");
  return finish(scanner, when);
}

/// An integer, for seconds with an optional fraction.
std::optional<Reading> read_unix(Bytes text, std::int64_t factor) {
  std::int64_t number = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, number);
  if (error != std::errc{}) return std::nullopt;
  if (number < ms_min / factor || number > ms_max / factor) return std::nullopt;
  std::int64_t unix_ms = number * factor;
  auto size = static_cast<std::size_t>(end - text.data());
  if (factor > 1 && end != text_end && *end == '.') {
    Scanner scanner{text.substr(size + 1)};
    const unsigned fraction = scanner.fraction_ms();
    if (!scanner.ok()) return std::nullopt;
    unix_ms += text.front() == '-' ? -std::int64_t{fraction} : std::int64_t{fraction};
    size += 1 + scanner.at();
  }
  return in_range(unix_ms, size);
}

}  // namespace

Result<TimeFormat> TimeFormat::parse(Bytes name) {
  if (name == "unix") return TimeFormat{Form::unix_seconds, name};
  if (name == "unix_ms") return TimeFormat{Form::unix_ms, name};
  if (name == "iso8601") return TimeFormat{Form::iso8601, name};
  if (name == "apache") return TimeFormat{Form::apache, name};
  if (name.find('%') != Bytes::npos) return TimeFormat{Form::pattern, name};
  return Error{ErrorCode::bad_option,
               fmt::format("'{}' is not a time format: unix, unix_ms, iso8601, apache, or a "
                           "strptime pattern such as '%Y-%m-%d %H:%M:%S'",
                           name)};
}

std::optional<Reading> TimeFormat::read(Bytes text) const {
  switch (form_) {
    case Form::unix_seconds:
      return read_unix(text, 1000);
    case Form::unix_ms:
      return read_unix(text, 1);
    case Form::iso8601:
      return read_iso8601(text);
    case Form::apache:
      return read_apache(text);
    case Form::pattern:
      return read_pattern(text);
  }
  return std::nullopt;
}

std::optional<Reading> TimeFormat::read_pattern(Bytes text) const {
  // strptime needs a terminator, which a line in a buffer does not have. No time is longer.
  std::array<char, 256> copy{};
  const std::size_t size = std::min(text.size(), copy.size() - 1);
  std::memcpy(copy.data(), text.data(), size);
  std::tm broken_down{};
  broken_down.tm_mday = 1;
  broken_down.tm_year = 70;
  const char* const end = strptime(copy.data(), name_.c_str(), &broken_down);
  if (end == nullptr || end == copy.data()) return std::nullopt;
  const long zone_seconds = broken_down.tm_gmtoff;
  const std::int64_t seconds = std::int64_t{timegm(&broken_down)} - zone_seconds;
  return in_range(seconds * 1000, static_cast<std::size_t>(end - copy.data()));
}

std::optional<std::int64_t> TimeFormat::from_integer(std::int64_t number) const {
  if (form_ != Form::unix_seconds && form_ != Form::unix_ms) return std::nullopt;
  const std::int64_t factor = form_ == Form::unix_seconds ? 1000 : 1;
  if (number < ms_min / factor || number > ms_max / factor) return std::nullopt;
  return number * factor;
}

std::optional<std::int64_t> TimeFormat::from_double(double number) const {
  if (form_ != Form::unix_seconds && form_ != Form::unix_ms) return std::nullopt;
  // Rounded: 1431857103.123 has no exact double and must not become .122.
  const double unix_ms = std::round(form_ == Form::unix_seconds ? number * 1000 : number);
  if (!(unix_ms >= static_cast<double>(ms_min) && unix_ms <= static_cast<double>(ms_max))) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(unix_ms);
}

}  // namespace semel::tool
