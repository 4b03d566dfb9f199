// A clock that stands still, and moves on its own once: as if the thread that reads it had paused.
#pragma once

#include <atomic>
#include <cstdint>

#include "semel/clock.hpp"

namespace semel::tests {

class PausedClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const noexcept override {
    const Timestamp read = clock_.now();
    // mo: relaxed: one thread.
    if (reads_left_.load(std::memory_order_relaxed) > 0 &&
        reads_left_.fetch_sub(1, std::memory_order_relaxed) == 1) {
      clock_.advance(pause_);
    }
    return read;
  }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override { return clock_.unix_ms(); }
  void advance(Millis by) noexcept { clock_.advance(by); }

  /// After `reads` more readings of now(), `pause` has passed.
  void pause_after(int reads, Millis pause) noexcept {
    pause_ = pause;
    // mo: relaxed: one thread.
    reads_left_.store(reads, std::memory_order_relaxed);
  }

 private:
  mutable ManualClock clock_;
  mutable std::atomic<int> reads_left_{0};
  Millis pause_{0};
};

}  // namespace semel::tests
