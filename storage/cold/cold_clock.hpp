// The durable clock by which a cold store keeps the ends of its records.
//
// It is moved once, before records are recovered: a store that belongs to a storage goes on with
// the clock of that (cold_bond.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "storage/log/durable_clock.hpp"

namespace semel::storage {

/// Thread-safe.
class ColdClock {
 public:
  explicit ColdClock(const DurableClock& clock) noexcept : offset_ms_(clock.offset_ms()) {}

  [[nodiscard]] DurableClock current() const noexcept {
    return DurableClock{offset_ms_.load(std::memory_order_relaxed)};  // mo: relaxed: one word
  }
  void move(const DurableClock& clock) noexcept {
    offset_ms_.store(clock.offset_ms(), std::memory_order_relaxed);  // mo: relaxed: one word
  }

 private:
  std::atomic<std::int64_t> offset_ms_;
};

}  // namespace semel::storage
