// A wait that all steps of a disk have in common.
#pragma once

#include <condition_variable>
#include <mutex>

#include "semel/clock.hpp"

namespace semel::faults {

class Delay {
 public:
  /// Waits that have begun go on, unless it is zero: that lets them go.
  void set(Millis delay) {
    const std::lock_guard lock{mutex_};
    if (delay_ == Millis{0}) since_ = clock_.now();
    delay_ = delay;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock{mutex_};
    const Millis delay = delay_;
    if (delay == Millis{0}) return;
    changed_.wait_for(lock, delay, [this] { return delay_ == Millis{0}; });
  }
  /// For how long there has been one: no wait is longer.
  [[nodiscard]] Millis longest() const {
    const std::lock_guard lock{mutex_};
    return delay_ == Millis{0} ? Millis{0} : clock_.now() - since_;
  }

 private:
  const SystemClock clock_{};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Millis delay_{0};  // under mutex_, as the next one
  Timestamp since_{};
};

}  // namespace semel::faults
