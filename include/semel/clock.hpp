// Time as a value: the engine reads the Clock that was passed in, and no other. A clock that is
// cheaper to read is in semel/cached_clock.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "semel/types.hpp"

namespace semel {

/// Where an engine's time comes from. Implementations never go back and keep counting in suspend.
class Clock {
 public:
  Clock() noexcept = default;
  virtual ~Clock() = default;
  // A copy measures for itself how far it is from the wall clock.
  Clock(const Clock& /*other*/) noexcept {}
  Clock& operator=(const Clock& /*other*/) noexcept { return *this; }

  /// Milliseconds since an arbitrary zero of this clock (> 0). Called once per operation.
  [[nodiscard]] virtual Timestamp now() const noexcept = 0;

  /// Wall-clock time in milliseconds since 1970. May step; no later decision of the engine depends
  /// on it.
  [[nodiscard]] virtual std::int64_t unix_ms() const noexcept = 0;

  /// The offset from a time of this clock to the wall clock's. It maps absolute times on arrival
  /// and back, so it is the same for every call until the wall clock steps by more than
  /// `wall_step_min`: a time that was given comes back as it was given. As it stands here it is
  /// measured by the two calls above, and a smaller step is without effect; a clock that knows it
  /// exactly overrides it.
  /// Progress: lock-free.
  [[nodiscard]] virtual std::int64_t wall_offset_ms() const noexcept;

  /// Clocks are not read at one instant, so less than this is no step. The difference between the
  /// offset and the wall clock never exceeds it, however many small steps there are.
  static constexpr Millis wall_step_min{10};

 private:
  static constexpr std::int64_t not_measured = std::numeric_limits<std::int64_t>::min();
  mutable std::atomic<std::int64_t> wall_offset_{not_measured};
};

/// CLOCK_BOOTTIME, plus the part of a millisecond by which the wall clock differs from it when the
/// process first asks: both clocks then begin their milliseconds together. A thread may see a value
/// up to 0.3 ms old (a read of the time-stamp counter decides whether the kernel is asked again),
/// so two threads may disagree by that much.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const noexcept override;
  [[nodiscard]] std::int64_t unix_ms() const noexcept override;
  /// One for the process.
  [[nodiscard]] std::int64_t wall_offset_ms() const noexcept override;
};

/// Stands still until advance() is called. For tests, simulation and replay; safe from any thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Millis start = Millis{1'000'000}, std::int64_t unix_ms = 1'700'000'000'000)
      : now_(start.count()), unix_zero_(unix_ms - start.count()) {}

  // Tests reason about one total order of ticks and operations, hence seq_cst throughout.
  [[nodiscard]] Timestamp now() const noexcept override {
    // mo: seq_cst [clock.manual]
    return Timestamp{Millis{now_.load(std::memory_order_seq_cst)}};
  }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override {
    // mo: seq_cst [clock.manual]
    return unix_zero_.load(std::memory_order_seq_cst) + now_.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] std::int64_t wall_offset_ms() const noexcept override {
    // mo: seq_cst [clock.manual]
    return unix_zero_.load(std::memory_order_seq_cst);
  }
  void advance(Millis by) noexcept {
    // mo: seq_cst [clock.manual]
    now_.fetch_add(by.count(), std::memory_order_seq_cst);
  }

  /// Moves the wall clock alone, as an administrator or NTP does. No engine time may follow.
  void step_wall(Millis by) noexcept {
    // mo: seq_cst [clock.manual]
    unix_zero_.fetch_add(by.count(), std::memory_order_seq_cst);
  }

 private:
  std::atomic<std::int64_t> now_;
  std::atomic<std::int64_t> unix_zero_;
};

}  // namespace semel
