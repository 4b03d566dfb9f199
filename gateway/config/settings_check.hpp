// Whether the settings of a gateway, taken together, do what they say.
#pragma once

#include <string>
#include <vector>

#include "gateway/config/settings.hpp"

namespace semel::gateway {

/// What must hold whatever the source: addresses, pairs, ranges; no route that can never match, no
/// key that signs for none, a default where a route guards, and what RequestRules::check() finds. A
/// line for each mistake, which names it; none: all is right.
[[nodiscard]] std::vector<std::string> check_settings(const Settings& settings);

}  // namespace semel::gateway
