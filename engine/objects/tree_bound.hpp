// The bound between two leaves.
#pragma once

#include <algorithm>

#include "semel/types.hpp"

namespace semel::engine {

/// The shortest prefix of `right` that is above `left`. `left` is below `right`, or both are empty.
[[nodiscard]] inline Bytes bound_between(Bytes left, Bytes right) noexcept {
  const auto at = std::mismatch(left.begin(), left.end(), right.begin(), right.end()).second;
  return right.substr(0, static_cast<std::size_t>(at - right.begin()) + 1);
}

}  // namespace semel::engine
