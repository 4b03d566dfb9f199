// Settings as text for people: the configuration as it is, and the page about all of it.
#pragma once

#include <string>

#include "net/settings/settings.hpp"

namespace semel::net {

/// A value as TOML has it: true, 12, "100mb", ["a", "b"].
[[nodiscard]] std::string toml_value(const SettingRow& row, const SettingValue& value);

struct PrintOptions {
  bool origins = false;  ///< where each value came from, as a comment behind it
};
/// A TOML file that gives the same settings again. A secret that is set stands in it as a comment,
/// "<hidden>"; settings without effect only where they are not at their default.
[[nodiscard]] std::string print_config(const Settings& settings, const PrintOptions& options);

/// The part of docs/operations.md that is made from settings.def.
[[nodiscard]] std::string settings_table();

}  // namespace semel::net
