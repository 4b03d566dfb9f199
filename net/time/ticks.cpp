#include "net/time/ticks.hpp"

#include <chrono>

#include "net/time/wall_clock.hpp"
#include "semel/engine.hpp"
#include "semel/store.hpp"

namespace semel::net {

std::int64_t SystemTicks::ns() const noexcept {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

std::int64_t unix_us_of(Engine& engine) {
  const std::int64_t ms = engine.store().to_unix_ms(engine.now());
  using std::chrono::microseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t us = std::chrono::duration_cast<microseconds>(now).count();
  // The millisecond was read a moment ago, and may be over. The time stays within it: what a script
  // gives a time from now ends by its own TIME, and no time is before an earlier one.
  const std::int64_t later = us / 1000 - ms;
  if (later == 0) return us;
  return later == 1 ? ms * 1000 + 999 : ms * 1000;
}

}  // namespace semel::net
