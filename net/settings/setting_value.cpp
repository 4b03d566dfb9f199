#include "net/settings/setting_value.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <utility>

#include "base/ascii.hpp"
#include "net/resp/text.hpp"
#include "net/settings/setting_forms.hpp"
#include "net/settings/setting_units.hpp"

namespace semel::net {
namespace {

std::string words_text(std::string_view words) {
  std::string text;
  for (const std::string_view word : words_of(words)) {
    text.append(text.empty() ? "" : ", ").append(word);
  }
  return "argument(s) must be one of the following: " + text;
}

/// The position of `word` among `words`, and how it is written there.
struct Position {
  std::size_t index;
  std::string_view word;
};
std::optional<Position> position_of(std::string_view words, std::string_view word) {
  const std::string small = base::lower_of(word);
  const auto all = words_of(words);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (base::lower_of(all[i]) == small) return Position{i, all[i]};
  }
  return std::nullopt;
}

Error fail(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

std::string octal_text(std::int64_t number) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 8).ptr;
  return {digits.data(), end};
}

Result<SettingValue> within(const SettingRow& row, std::int64_t number) {
  if (number < row.low || number > row.high) {
    const bool is_octal = row.detail == "octal";
    const auto text = [&](std::int64_t n) { return is_octal ? octal_text(n) : std::to_string(n); };
    return fail("argument must be between " + text(row.low) + " and " + text(row.high) +
                " inclusive");
  }
  return SettingValue{.number = number};
}

Result<SettingValue> parse_integer(const SettingRow& row, std::string_view text) {
  if (row.detail == "octal") {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 8);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
      return fail("argument couldn't be parsed as an octal number");
    }
    return within(row, number);
  }
  const auto number =
      row.type == SettingType::duration ? duration_of(text, row.detail) : integer_of(text);
  if (!number) return fail("argument couldn't be parsed into an integer");
  SEMEL_TRY(value, within(row, *number));
  if (row.detail == "power-of-two" && !std::has_single_bit(static_cast<std::uint64_t>(*number))) {
    return fail("argument must be a power of two");
  }
  return value;
}

/// Flags of redis-server's come in the order of their row, each of them once.
void order_flags(std::string_view flags, std::string& text) {
  std::string ordered;
  const auto given = words_of(text);
  for (const std::string_view flag : words_of(flags)) {
    if (std::find(given.begin(), given.end(), flag) == given.end()) continue;
    ordered.append(ordered.empty() ? "" : " ").append(flag);
  }
  text = std::move(ordered);
}

Result<SettingValue> parse_list(const SettingRow& row, std::string_view text) {
  SettingValue value;
  std::int64_t count = 0;
  for (std::string_view word : words_of(text)) {
    if (!row.detail.empty()) {
      const auto position = position_of(row.detail, word);
      if (!position) return fail(words_text(row.detail));
      word = position->word;
    }
    value.text.append(count == 0 ? "" : " ").append(word);
    ++count;
  }
  if (count < row.low && !row.detail.empty()) return fail(words_text(row.detail));
  if (count < row.low || count > row.high) {
    return fail("argument must have between " + std::to_string(row.low) + " and " +
                std::to_string(row.high) + " words");
  }
  if (row.section == "redis" && !row.detail.empty()) order_flags(row.detail, value.text);
  return value;
}

Result<SettingValue> parse_text(const SettingRow& row, std::string_view text,
                                std::string_view present) {
  if (static_cast<std::int64_t>(text.size()) > row.high) {
    return fail("argument must have at most " + std::to_string(row.high) + " bytes");
  }
  SEMEL_TRY(formed, formed_text(row.detail, text, present));
  return SettingValue{.text = std::move(formed)};
}

}  // namespace

Result<SettingValue> parse_setting(const SettingRow& row, std::string_view text,
                                   std::string_view present) {
  constexpr std::size_t text_bytes_max = 64 * 1024;
  if (text.size() > text_bytes_max) {
    return fail("argument must have at most " + std::to_string(text_bytes_max) + " bytes");
  }
  const bool is_password = row.name == "requirepass";  // of any bytes, as in redis-server
  if (!is_password && text.find('\0') != std::string_view::npos) {
    return fail("argument must not have a zero byte");
  }
  switch (row.type) {
    case SettingType::boolean:
      if (is_word(text, "yes")) return SettingValue{.number = 1};
      if (is_word(text, "no")) return SettingValue{.number = 0};
      return fail("argument must be 'yes' or 'no'");
    case SettingType::bytes: {
      const auto bytes = bytes_of(text);
      if (!bytes) return fail("argument must be a memory value");
      return within(row, *bytes);
    }
    case SettingType::choice: {
      const auto position = position_of(row.detail, text);
      if (!position) return fail(words_text(row.detail));
      return SettingValue{.number = static_cast<std::int64_t>(position->index)};
    }
    case SettingType::list:
      return parse_list(row, text);
    case SettingType::text:
      return parse_text(row, text, present);
    case SettingType::integer:
    case SettingType::duration:
      break;
  }
  return parse_integer(row, text);
}

std::string shown_value(const SettingRow& row, std::string_view text) {
  constexpr std::size_t shown_max = 64;
  if (row.is_secret()) return "<hidden>";
  std::string value =
      "'" + std::string{text.substr(0, shown_max)} + (text.size() > shown_max ? ".." : "") + "'";
  for (char& c : value) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return value;
}

std::string show_setting(const SettingRow& row, const SettingValue& value) {
  switch (row.type) {
    case SettingType::boolean:
      return value.number != 0 ? "yes" : "no";
    case SettingType::choice:
      return std::string{words_of(row.detail)[static_cast<std::size_t>(value.number)]};
    case SettingType::text:
    case SettingType::list:
      return value.text;
    case SettingType::integer:
      if (row.detail == "octal") return octal_text(value.number);
      break;
    case SettingType::bytes:
    case SettingType::duration:
      break;
  }
  return std::to_string(value.number);
}

std::string write_setting(const SettingRow& row, const SettingValue& value) {
  if (value.number > 0 && row.type == SettingType::bytes) {
    if (auto text = bytes_text(value.number)) return *std::move(text);
  }
  if (value.number > 0 && row.type == SettingType::duration) {
    // Whole seconds: 86400000ms is hard to read, and "m" for minutes looks like megabytes.
    std::int64_t number = value.number;
    std::string_view unit = row.detail;
    for (const auto& [small, large] : {std::pair{"us", "ms"}, std::pair{"ms", "s"}}) {
      if (unit == small && number % 1'000 == 0) number /= 1'000, unit = large;
    }
    return std::to_string(number).append(unit);
  }
  return show_setting(row, value);
}

}  // namespace semel::net
