// Up to when timers have fired, for changes that leave the timer of the record before where it is:
// it may have fired for that record while the change was under way.
//
//   [timers.firing]  the time is stored before the wheel looks at the records of its timers, and
//                    read after a change is visible. Of a firing timer and a change one sees the
//                    other: the wheel the changed record, or the change that the timer is gone.
#pragma once

#include <atomic>
#include <cstdint>

#include "semel/types.hpp"

namespace semel::engine {

/// Thread-safe; begin() by one thread at a time.
class Firing {
 public:
  /// Timers up to `now` fire from here on, once Threads::full_fence() has been called.
  void begin(Timestamp now) noexcept {
    const std::int64_t ms = now.time_since_epoch().count();
    // mo: relaxed: only this thread writes it.
    if (ms <= until_.load(std::memory_order_relaxed)) return;
    // mo: seq_cst [timers.firing]: before each look at a record that follows.
    until_.exchange(ms, std::memory_order_seq_cst);
  }
  /// Whether a timer of this time may have fired. After the compare-and-set of a change.
  [[nodiscard]] bool has_reached(Timestamp wake) const noexcept {
    // mo: seq_cst [timers.firing]: after the change is visible.
    return wake.time_since_epoch().count() <= until_.load(std::memory_order_seq_cst);
  }

 private:
  std::atomic<std::int64_t> until_{0};
};

}  // namespace semel::engine
