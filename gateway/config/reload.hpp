// What a gateway takes anew while it runs, and what needs a restart.
#pragma once

#include <string>
#include <vector>

#include "gateway/config/settings.hpp"

namespace semel::gateway {

/// Of the settings that need a restart, the names of those that differ. Routes, keys, `default` and
/// the files of certificates do not.
[[nodiscard]] std::vector<std::string> fixed_differences(const Settings& used,
                                                         const Settings& fresh);

}  // namespace semel::gateway
