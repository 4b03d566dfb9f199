// Wall-clock time that runs as the engine's clock does and never goes back.
//
// The time is now() of the clock plus the largest lead that unix_ms() was ever seen to have on it.
// A record kept for a duration on the engine's clock therefore ends no earlier than that duration
// passes here, no matter how the wall clock steps. The largest time seen would not do: while the
// wall clock catches up it stands still, and records end.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "semel/clock.hpp"

namespace semel::patterns {

class ForwardTime {
 public:
  explicit ForwardTime(const Clock& clock) noexcept : clock_(clock) {}

  /// Milliseconds since 1970.
  [[nodiscard]] std::int64_t unix_ms() noexcept {
    // In this order: a thread that pauses in between sees a smaller lead, which is without effect.
    const std::int64_t wall = clock_.unix_ms();
    const std::int64_t now = clock_.now().time_since_epoch().count();
    const std::int64_t lead = wall - now;
    // mo: relaxed: it only grows. A thread that finds a record gone is ordered by the engine after
    // the thread that wrote the record, so it sees the lead of that thread or a larger one.
    std::int64_t largest = lead_.load(std::memory_order_relaxed);
    while (lead > largest) {
      // mo: relaxed: as above.
      if (lead_.compare_exchange_weak(largest, lead, std::memory_order_relaxed)) break;
    }
    return now + std::max(lead, largest);
  }

 private:
  const Clock& clock_;
  std::atomic<std::int64_t> lead_{std::numeric_limits<std::int64_t>::min()};
};

}  // namespace semel::patterns
