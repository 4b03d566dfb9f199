// Reads the settings of a gateway from TOML. See docs/gateway.md#settings for an example.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/settings.hpp"

namespace semel::gateway {

/// Changes `settings` by what `content` says. Returns one line for each error, with `path` and the
/// line of the file; none: it is right. `settings` is of no use after an error.
[[nodiscard]] std::vector<std::string> read_policies(std::string_view content,
                                                     const std::string& path, Settings& settings);

/// The same for a file. An error of the file system is a line, too.
[[nodiscard]] std::vector<std::string> load_policies(const std::string& path, Settings& settings);

}  // namespace semel::gateway
