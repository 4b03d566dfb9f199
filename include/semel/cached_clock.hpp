// A clock that is read without asking the kernel or the processor.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "semel/clock.hpp"
#include "semel/types.hpp"

namespace semel {

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
  [[nodiscard]] std::int64_t wall_offset_ms() const noexcept override {
    return system_.wall_offset_ms();
  }

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

}  // namespace semel
