// How long the disk has taken. Waiting for a disk is measured by the machine's steady clock, not by
// the engine's: a test that stops the engine's time must not wait for ever.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "semel/types.hpp"

namespace semel::storage {

class Stopwatch {
 public:
  [[nodiscard]] Millis passed() const noexcept {
    return std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - start_);
  }
  [[nodiscard]] double seconds() const noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  void restart() noexcept { start_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Since when one thread has been at a piece of work, for others to see.
class WorkMark {
 public:
  /// As long as it lives, the thread is at work.
  class Scope {
   public:
    explicit Scope(WorkMark& mark) noexcept : mark_(mark) {
      const std::int64_t at = std::max<std::int64_t>(mark.clock_.passed().count(), 0) + 1;
      mark.since_.store(at, std::memory_order_relaxed);  // mo: relaxed: a time stands for itself
    }
    ~Scope() { mark_.since_.store(0, std::memory_order_relaxed); }  // mo: relaxed: as above
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WorkMark& mark_;
  };
  /// 0: not at work.
  [[nodiscard]] Millis busy_for() const noexcept {
    const std::int64_t since = since_.load(std::memory_order_relaxed);  // mo: relaxed: as above
    return since == 0 ? Millis{0} : clock_.passed() + Millis{1} - Millis{since};
  }

 private:
  const Stopwatch clock_;
  std::atomic<std::int64_t> since_{0};  // ms of clock_, and one; 0: not at work
};

/// For system calls that take the time up to which they wait, by the steady clock.
[[nodiscard]] inline timespec time_in(Millis from_now) noexcept {
  const auto then = (std::chrono::steady_clock::now() + from_now).time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(then);
  timespec time{};
  time.tv_sec = static_cast<time_t>(seconds.count());
  time.tv_nsec = static_cast<long>(std::chrono::nanoseconds{then - seconds}.count());
  return time;
}

}  // namespace semel::storage
