// A counter that threads wait on with a timeout. std::atomic::wait has none, and with a condition
// variable 64 woken threads would queue for its mutex.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "semel/types.hpp"
#include "storage/log/stopwatch.hpp"

namespace semel::storage {

/// Concurrency: [signal.count] release by raise(), acquire by seen(): a thread that sees the new
/// count sees all writes before raise().
class Signal {
 public:
  [[nodiscard]] std::uint32_t seen() const noexcept {
    return count_.load(std::memory_order_acquire);  // mo: acquire [signal.count]
  }
  static constexpr std::uint32_t everybody = FUTEX_BITSET_MATCH_ANY;

  /// Wakes all threads that wait with one of these bits.
  void raise(std::uint32_t bits = everybody) noexcept {
    count_.fetch_add(1, std::memory_order_release);  // mo: release [signal.count]
    syscall(SYS_futex, &count_, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, bits);
  }
  /// Waits while the count equals `seen`, at most that long. May return early. Returns at once if
  /// raise() was called after seen(), whatever its bits were.
  void wait(std::uint32_t seen, Millis at_most, std::uint32_t bits = everybody) const noexcept {
    const timespec until = time_in(at_most);
    syscall(SYS_futex, &count_, FUTEX_WAIT_BITSET_PRIVATE, seen, &until, nullptr, bits);
  }

 private:
  std::atomic<std::uint32_t> count_{0};
};
static_assert(sizeof(std::atomic<std::uint32_t>) == 4);

}  // namespace semel::storage
