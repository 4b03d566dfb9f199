// Checks the settings of a gateway as a whole.
#pragma once

#include <string>
#include <vector>

#include "gateway/config/settings.hpp"

namespace semel::gateway {

/// Checks rules that hold for every source: addresses, pairs, ranges; each route can match, each
/// key signs for a route, `default` is set if a route guards, and the rules of
/// RequestRules::check(). Returns a line for each error, which names it; empty on success.
[[nodiscard]] std::vector<std::string> check_settings(const Settings& settings);

}  // namespace semel::gateway
