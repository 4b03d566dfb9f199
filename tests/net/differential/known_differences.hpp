// Where a redis-server may answer otherwise than we do, and how its answers are compared then.
#pragma once

#include <string_view>
#include <vector>

#include "tests/support/resp.hpp"

namespace semel::tests {

/// Whether what came for `requests`, which were sent at once, is the same but for the differences
/// that are listed. `has_exact_times`: no time may differ either.
[[nodiscard]] bool is_same(const std::vector<Words>& requests, std::string_view ours,
                           std::string_view theirs, bool has_exact_times);

}  // namespace semel::tests
