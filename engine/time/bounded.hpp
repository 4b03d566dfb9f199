// The times that records can carry are bounded, and so is the clock: behind limits::time_max it
// stands still, so that no lease that is counted from it wraps, and none ends.
#pragma once

#include <algorithm>
#include <cstdint>

#include "semel/clock.hpp"
#include "semel/limits.hpp"
#include "semel/types.hpp"

namespace semel::engine {

// A claim's end is at most a lease and its attempts_ttl away; 44 bits hold it (table/entry.hpp).
static_assert(limits::time_max + 2 * limits::ttl_max < Millis{(std::int64_t{1} << 44) - 1});

[[nodiscard]] inline Timestamp bounded(Timestamp time) noexcept {
  return std::min(time, Timestamp{limits::time_max});
}
[[nodiscard]] inline Timestamp now_of(const Clock& clock) noexcept {
  return bounded(clock.now());
}
/// Far enough from both ends that a ttl can be added or taken away.
[[nodiscard]] inline std::int64_t unix_ms_of(const Clock& clock) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 60;
  return std::clamp(clock.unix_ms(), -most, most);
}

}  // namespace semel::engine
