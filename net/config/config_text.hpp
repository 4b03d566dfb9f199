// Settings as text for people: the current configuration, and the documentation of all settings.
#pragma once

#include <string>

#include "net/settings/settings.hpp"

namespace semel::net {

/// A value as TOML: true, 12, "100mb", ["a", "b"].
[[nodiscard]] std::string toml_value(const SettingRow& row, const SettingValue& value);

struct PrintOptions {
  bool origins = false;  ///< the source of each value, as a comment behind it
};
/// A TOML file with the same settings. A secret that is set becomes a comment with "<hidden>".
/// Settings without effect are printed only if they differ from their default.
[[nodiscard]] std::string print_config(const Settings& settings, const PrintOptions& options);

/// The part of docs/operations.md that is generated from settings.def.
[[nodiscard]] std::string settings_table();

}  // namespace semel::net
