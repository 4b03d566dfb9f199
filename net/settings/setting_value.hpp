// Parses and writes the values of settings. Every source (file, flag, environment, CONFIG SET)
// calls parse_setting, so all accept the same forms and have the same error texts: those of
// redis-server 7.0 where it has one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/settings/setting_table.hpp"
#include "net/settings/setting_units.hpp"
#include "semel/result.hpp"

namespace semel::net {

struct SettingValue {
  /// Of a boolean 0 or 1, of a choice the index of its word, of a duration its unit's count.
  std::int64_t number = 0;
  std::string text{};  ///< of a text or list; a list's words with one blank between them

  [[nodiscard]] bool operator==(const SettingValue&) const = default;
};

/// `text` as a value for `row`. `present`: the text so far; some settings can be changed in part.
/// The detail of an error is the text of CONFIG SET.
[[nodiscard]] Result<SettingValue> parse_setting(const SettingRow& row, std::string_view text,
                                                 std::string_view present);

/// A value that a message names, in quotes: cut, on one line, hidden if it is a secret.
[[nodiscard]] std::string shown_value(const SettingRow& row, std::string_view text);

/// As CONFIG GET shows it: numbers without a unit. Parses back to the same value.
[[nodiscard]] std::string show_setting(const SettingRow& row, const SettingValue& value);
/// As people write it: "30s", "100mb". Parses back to the same value.
[[nodiscard]] std::string write_setting(const SettingRow& row, const SettingValue& value);

}  // namespace semel::net
