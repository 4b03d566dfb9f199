// A counter to sleep on, with a deadline: std::atomic::wait has none, and a mutex that every woken
// thread must take in turn would make 64 of them queue up.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "semel/types.hpp"

namespace semel::storage {

/// Concurrency: [signal.count] release by raise(), acquire by seen(): what was done before raising
/// is visible to whoever sees the new count.
class Signal {
 public:
  [[nodiscard]] std::uint32_t seen() const noexcept {
    return count_.load(std::memory_order_acquire);  // mo: acquire [signal.count]
  }
  /// Wakes everybody who sleeps.
  void raise() noexcept {
    count_.fetch_add(1, std::memory_order_release);  // mo: release [signal.count]
    syscall(SYS_futex, &count_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  /// Sleeps while the count is what was `seen`, at most that long. May return for no reason.
  void wait(std::uint32_t seen, Millis at_most) const noexcept {
    struct timespec time {};
    time.tv_sec = static_cast<time_t>(at_most.count() / 1000);
    time.tv_nsec = static_cast<long>(at_most.count() % 1000) * 1'000'000;
    syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
  }

 private:
  std::atomic<std::uint32_t> count_{0};
};
static_assert(sizeof(std::atomic<std::uint32_t>) == 4);

}  // namespace semel::storage
