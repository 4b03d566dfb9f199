// What an edit of one value needs to know about a TOML file.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "net/settings/setting_table.hpp"

namespace semel::net {

/// The position of the value of a setting in a file.
struct TomlLocation {
  bool is_toml = true;
  bool has_section = false;
  bool has_value = false;
  std::size_t begin = 0;  ///< offsets of the value, if there is one
  std::size_t end = 0;
};
[[nodiscard]] TomlLocation find_in_toml(std::string_view content, const SettingRow& row);

/// Whether both files are equal, apart from the settings `except`.
[[nodiscard]] bool is_same_toml(std::string_view one, std::string_view other,
                                const std::vector<const SettingRow*>& except);

}  // namespace semel::net
