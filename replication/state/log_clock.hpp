// The clock of a replica: the time of the newest entry that it has applied.
#pragma once

#include <algorithm>
#include <atomic>

#include "semel/clock.hpp"

namespace semel::replication {

/// Both of its times are the replicated log's: milliseconds of the wall clocks of leaders, which
/// never go back. Set by the thread that applies; read by any.
class LogClock final : public Clock {
 public:
  explicit LogClock(std::int64_t unix_ms = 1) noexcept : unix_ms_(unix_ms) {}

  [[nodiscard]] Timestamp now() const noexcept override { return Timestamp{Millis{unix_ms()}}; }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override {
    return unix_ms_.load(std::memory_order_relaxed);  // mo: relaxed: a time, not an order
  }
  [[nodiscard]] std::int64_t wall_offset_ms() const noexcept override { return 0; }
  void advance_to(std::int64_t unix_ms) noexcept {
    // mo: relaxed: one thread applies.
    unix_ms_.store(std::max(unix_ms, this->unix_ms()), std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> unix_ms_;
};

}  // namespace semel::replication
