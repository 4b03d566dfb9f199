// Settings that a running gateway reloads, and settings that need a restart.
#pragma once

#include <string>
#include <vector>

#include "gateway/config/settings.hpp"

namespace semel::gateway {

/// Returns the names of changed settings that need a restart. Routes, keys, `default` and the files
/// of certificates do not.
[[nodiscard]] std::vector<std::string> fixed_differences(const Settings& used,
                                                         const Settings& fresh);

}  // namespace semel::gateway
