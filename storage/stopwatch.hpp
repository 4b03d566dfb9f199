// How long the disk has taken. Waiting for a disk is measured by the machine's steady clock, not by
// the engine's: a test that stops the engine's time must not wait for ever.
#pragma once

#include <chrono>
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
