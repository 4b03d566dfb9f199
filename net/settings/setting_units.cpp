#include "net/settings/setting_units.hpp"

#include <array>
#include <charconv>

#include "base/checked.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t size;
};
// Larger ones first: the first that a value is a whole number of is the one it is written in.
constexpr std::array byte_units{Unit{"gb", std::int64_t{1} << 30},
                                Unit{"mb", 1 << 20},
                                Unit{"kb", 1 << 10},
                                Unit{"g", 1'000'000'000},
                                Unit{"m", 1'000'000},
                                Unit{"k", 1'000},
                                Unit{"b", 1}};
constexpr std::array time_units{Unit{"d", 86'400'000'000}, Unit{"h", 3'600'000'000},
                                Unit{"m", 60'000'000},     Unit{"s", 1'000'000},
                                Unit{"ms", 1'000},         Unit{"us", 1}};

/// None: no such unit.
template <std::size_t count>
std::optional<std::int64_t> size_of(const std::array<Unit, count>& units, std::string_view name) {
  for (const Unit& unit : units) {
    if (is_word(name, unit.name)) return unit.size;
  }
  return std::nullopt;
}

/// A number that is not negative, and the unit behind it.
struct Amount {
  std::int64_t number;
  std::string_view unit;
};
std::optional<Amount> amount_of(std::string_view text) {
  std::int64_t number = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  return Amount{number, text.substr(static_cast<std::size_t>(end - text.data()))};
}

}  // namespace

std::optional<std::int64_t> bytes_of(std::string_view text) {
  const auto amount = amount_of(text);
  if (!amount) return std::nullopt;
  const auto size = amount->unit.empty() ? 1 : size_of(byte_units, amount->unit);
  return size ? base::checked_mul(amount->number, *size) : std::nullopt;
}

std::optional<std::int64_t> duration_of(std::string_view text, std::string_view unit) {
  const auto amount = amount_of(text);
  // A plain number is read as redis-server reads it: "-1" may mean something, "007" is none.
  if (!amount || amount->unit.empty()) return integer_of(text);
  const auto size = size_of(time_units, amount->unit);
  const auto count = size_of(time_units, unit);
  if (!size || !count) return std::nullopt;
  // Of two units the larger is a multiple of the smaller.
  if (*size >= *count) return base::checked_mul(amount->number, *size / *count);
  const std::int64_t parts = *count / *size;
  if (amount->number % parts != 0) return std::nullopt;
  return amount->number / parts;
}

std::optional<std::string> bytes_text(std::int64_t bytes) {
  for (const Unit& unit : byte_units) {
    if (unit.size > 1 && bytes % unit.size == 0) {
      return std::to_string(bytes / unit.size).append(unit.name);
    }
  }
  return std::nullopt;
}

}  // namespace semel::net
