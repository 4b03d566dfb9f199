// SystemClock's time, read without a call where the last reading is still good.
#pragma once

#include <cstdint>

#include "semel/clock.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace semel::engine {

#if defined(__x86_64__)
/// A thread's last reading of the kernel's clock, and the time-stamp counter then.
struct SystemReading {
  std::uint64_t ticks;
  std::int64_t ms;

  /// As long as a reading is good: 0.05 ms at 5 GHz and 0.26 ms at 1 GHz. After a suspend the
  /// counter may have started again: the difference wraps to something large.
  static constexpr std::uint64_t ticks_max = std::uint64_t{1} << 18;
  static constexpr std::int64_t none = 0;
};
extern constinit thread_local SystemReading last_reading;

/// Asks the kernel. The time is bounded, as system_time() is.
[[nodiscard]] Timestamp read_system_time(std::uint64_t ticks) noexcept;

[[nodiscard, gnu::always_inline]] inline Timestamp system_time() noexcept {
  // The kernel's clock costs more than a claim may and, worse, waits for every earlier load. The
  // plain time-stamp counter does not; it only decides whether the last answer is still good.
  const std::uint64_t ticks = __rdtsc();
  const SystemReading last = last_reading;
  if (ticks - last.ticks < SystemReading::ticks_max && last.ms != SystemReading::none) [[likely]]
    return Timestamp{Millis{last.ms}};
  return read_system_time(ticks);
}
#else
[[nodiscard]] Timestamp system_time() noexcept;
#endif

}  // namespace semel::engine
