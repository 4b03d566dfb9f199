#include "net/time/ticks.hpp"

#include <chrono>

#include "net/time/wall_clock.hpp"

namespace semel::net {

std::int64_t SystemTicks::ns() const noexcept {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

std::int64_t unix_us_of(std::int64_t ms) noexcept {
  using std::chrono::microseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t us = std::chrono::duration_cast<microseconds>(now).count();
  // It was read a moment ago, perhaps at the end of its millisecond: that is where it remains, for
  // what a script gives a time from now ends by its own TIME.
  const std::int64_t later = us / 1000 - ms;
  if (later == 0) return us;
  return later == 1 ? ms * 1000 + 999 : ms * 1000;
}

}  // namespace semel::net
