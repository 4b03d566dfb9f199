// What clients ask for about bits of strings, and about HyperLogLogs.
#pragma once

#include "tests/net/differential/random_requests.hpp"

namespace semel::tests {

[[nodiscard]] Profile bits_profile();
[[nodiscard]] Profile bit_events_profile();
[[nodiscard]] Profile hyperloglogs_profile();

}  // namespace semel::tests
