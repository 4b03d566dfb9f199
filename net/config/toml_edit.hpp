// What changing a value in a TOML file, and leaving all else as it is, needs to know of it.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "net/settings/setting_table.hpp"

namespace semel::net {

/// Where the value of a setting stands in a file.
struct TomlPlace {
  bool is_toml = true;
  bool has_section = false;
  bool has_value = false;
  std::size_t begin = 0;  ///< bytes of the value, where there is one
  std::size_t end = 0;
};
[[nodiscard]] TomlPlace find_in_toml(std::string_view content, const SettingRow& row);

/// Both say the same about everything but the settings `except`.
[[nodiscard]] bool is_same_toml(std::string_view one, std::string_view other,
                                const std::vector<const SettingRow*>& except);

}  // namespace semel::net
