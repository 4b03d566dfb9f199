// Measures waits for the disk by the machine's steady clock, not by the engine's: a test that stops
// the engine's clock must not wait forever.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "base/assert.hpp"
#include "base/stopwatch.hpp"
#include "semel/types.hpp"

namespace semel::storage {

using base::Stopwatch;

/// How long one thread has been busy with one piece of work; read by other threads.
class WorkTimer {
 public:
  /// The thread is busy while this exists.
  class Scope {
   public:
    explicit Scope(WorkTimer& timer) noexcept : timer_(timer) {
      // mo: relaxed: only this thread sets it
      SEMEL_ASSERT(timer.since_.load(std::memory_order_relaxed) == 0);
      const std::int64_t at = std::max<std::int64_t>(timer.clock_.passed().count(), 0) + 1;
      timer.since_.store(at,
                         std::memory_order_relaxed);  // mo: relaxed: no other data depends on it
    }
    ~Scope() { timer_.since_.store(0, std::memory_order_relaxed); }  // mo: relaxed: as above
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WorkTimer& timer_;
  };
  /// 0: idle.
  [[nodiscard]] Millis busy_for() const noexcept {
    const std::int64_t since = since_.load(std::memory_order_relaxed);  // mo: relaxed: as above
    return since == 0 ? Millis{0} : clock_.passed() + Millis{1} - Millis{since};
  }

 private:
  const Stopwatch clock_{};
  std::atomic<std::int64_t> since_{0};  // ms of clock_ plus one; 0: idle
};

/// The deadline of a system call that uses the steady clock.
[[nodiscard]] inline timespec time_in(Millis from_now) noexcept {
  const auto then = (std::chrono::steady_clock::now() + from_now).time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(then);
  timespec time{};
  time.tv_sec = static_cast<time_t>(seconds.count());
  time.tv_nsec = static_cast<long>(std::chrono::nanoseconds{then - seconds}.count());
  return time;
}

}  // namespace semel::storage
