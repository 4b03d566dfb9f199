// A clock as a machine has it: time passes between any two readings, and the wall clock does not
// begin its milliseconds where the engine's clock does.
#pragma once

#include <atomic>
#include <cstdint>

#include "semel/clock.hpp"

namespace semel::tests {

class PhaseClock : public Clock {
 public:
  static constexpr std::int64_t wall_lead_us = 1'700'000'000'000'600;

  /// From `boot_us` on, as much later with each reading as `step_us` says.
  explicit PhaseClock(std::int64_t boot_us = 1'000'000'000, std::int64_t step_us = 130,
                      std::int64_t lead_us = wall_lead_us)
      : boot_us_(boot_us), step_us_(step_us), lead_us_(lead_us) {}

  // mo: relaxed, here and below: one thread uses it
  [[nodiscard]] Timestamp now() const noexcept override { return Timestamp{Millis{pass() / 1000}}; }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override {
    return (pass() + lead_us_.load(std::memory_order_relaxed)) / 1000;
  }
  [[nodiscard]] std::int64_t boot_us() const noexcept {
    return boot_us_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t lead_us() const noexcept {
    return lead_us_.load(std::memory_order_relaxed);
  }
  void advance(Millis by) noexcept {
    boot_us_.fetch_add(by.count() * 1000, std::memory_order_relaxed);
  }
  void step_wall(Millis by) noexcept {
    lead_us_.fetch_add(by.count() * 1000, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] std::int64_t pass() const noexcept {
    return boot_us_.fetch_add(step_us_, std::memory_order_relaxed);
  }

  mutable std::atomic<std::int64_t> boot_us_;
  const std::int64_t step_us_;
  std::atomic<std::int64_t> lead_us_;
};

/// One that knows how far it is from the wall clock, as SystemClock does.
class ExactPhaseClock final : public PhaseClock {
 public:
  using PhaseClock::PhaseClock;
  [[nodiscard]] std::int64_t wall_offset_ms() const noexcept override { return lead_us() / 1000; }
};

}  // namespace semel::tests
