// Time as a value: the engine asks a Clock that was handed in, and nothing else.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "semel/types.hpp"

namespace semel {

/// Where an engine's time comes from. Implementations never go back and keep counting in suspend.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Milliseconds since an arbitrary zero of this clock (> 0). Called once per operation.
  [[nodiscard]] virtual Timestamp now() const noexcept = 0;

  /// Wall-clock time in milliseconds since 1970, for mapping absolute times once on arrival.
  /// May step; no engine decision rests on it later.
  [[nodiscard]] virtual std::int64_t unix_ms() const noexcept = 0;
};

/// CLOCK_BOOTTIME. A thread may see a value up to 0.3 ms old (a read of the time-stamp counter
/// decides whether the kernel is asked again), so two threads may disagree by that much.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const noexcept override;
  [[nodiscard]] std::int64_t unix_ms() const noexcept override;
};

/// SystemClock's time in a word that a thread of its own renews: reading it costs nothing, where a
/// read of the processor's counter makes the loads before it finish first, so that the cache misses
/// of one operation cannot overlap those of the next. The price is a time that is late: by `every`,
/// and by as long as the thread is kept from the processor. Never early, never backwards, and the
/// same for all threads.
class CachedClock final : public Clock {
 public:
  /// `every`: 1 ms..100 ms, else the nearer of the two.
  explicit CachedClock(Millis every = Millis{1});
  ~CachedClock() override;
  CachedClock(const CachedClock&) = delete;
  CachedClock& operator=(const CachedClock&) = delete;

  [[nodiscard]] Timestamp now() const noexcept override {
    // mo: relaxed: a time, not an order.
    return Timestamp{Millis{now_.load(std::memory_order_relaxed)}};
  }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override { return system_.unix_ms(); }

 private:
  void renew() noexcept {
    // mo: relaxed: as in now().
    now_.store(system_.now().time_since_epoch().count(), std::memory_order_relaxed);
  }

  SystemClock system_;
  alignas(64) std::atomic<std::int64_t> now_;  // alone in its line: every operation reads it
  alignas(64) std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;  // under mutex_
  std::thread thread_;
};

/// Stands still until told to move. For tests, simulation and replay; safe from any thread.
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
