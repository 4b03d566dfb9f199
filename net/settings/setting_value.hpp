// Values of settings: out of what people write, and back into text. Every door (file, flag,
// environment, CONFIG SET) comes through parse_setting, so all take the same forms and answer the
// same sentences, which are those of redis-server 7.0 where it has one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/settings/setting_table.hpp"

namespace semel::net {

struct SettingValue {
  /// Of a boolean 0 or 1, of a choice the place of its word, of a duration its unit's count.
  std::int64_t number = 0;
  std::string text{};  ///< of a text or list; a list's words with one blank between them

  [[nodiscard]] bool operator==(const SettingValue&) const = default;
};

/// `text` as a value for `row`; or what is wrong with it, in the words of CONFIG SET. `present`:
/// the text so far, of which some may change a part only.
struct ParsedSetting {
  SettingValue value{};
  std::optional<std::string> error{};
};
[[nodiscard]] ParsedSetting parse_setting(const SettingRow& row, std::string_view text,
                                          std::string_view present);

/// As CONFIG GET shows it: numbers without a unit. Parses back to the same value.
[[nodiscard]] std::string show_setting(const SettingRow& row, const SettingValue& value);
/// As people write it: "30s", "100mb". Parses back to the same value.
[[nodiscard]] std::string write_setting(const SettingRow& row, const SettingValue& value);

/// "100mb", "64k", "12": 1000 for k, m and g, 1024 for kb, mb and gb, in any case of letters. None:
/// not such a text, or more than 2^63 - 1.
[[nodiscard]] std::optional<std::int64_t> bytes_of(std::string_view text);
/// "250ms", "30s", "5m", "2h", "10us" in a `unit` of "s", "ms" or "us"; a plain number counts
/// units. None: not such a text, too large, or no whole number of units.
[[nodiscard]] std::optional<std::int64_t> duration_of(std::string_view text, std::string_view unit);

}  // namespace semel::net
