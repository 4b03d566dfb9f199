// Reads the settings of a gateway from TOML. See docs/gateway.md#settings for an example.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/settings.hpp"

namespace semel::gateway {

/// Applies `content` to `settings`. Returns one line for each error, with `path` and the line of
/// the file; empty on success. After an error `settings` must not be used.
[[nodiscard]] std::vector<std::string> read_policies(std::string_view content,
                                                     const std::string& path, Settings& settings);

/// The same for a file. An error of the file system is one of the lines.
[[nodiscard]] std::vector<std::string> load_policies(const std::string& path, Settings& settings);

}  // namespace semel::gateway
