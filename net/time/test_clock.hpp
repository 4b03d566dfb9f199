// What tests control from outside, over the wire: a clock, which is the system's, ahead of it, or
// standing still; and the faults of requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/mutex.hpp"
#include "net/time/faults.hpp"
#include "semel/clock.hpp"
#include "semel/limits.hpp"

namespace semel::net {

/// Never goes back: an advance is permanent. A lock for each reading; not for production.
class TestClock final : public Clock {
 public:
  /// How far it may be ahead in all.
  static constexpr Millis ahead_max = 10 * limits::ttl_max;

  explicit TestClock(const Clock& system) : system_(system) {}

  [[nodiscard]] Timestamp now() const noexcept override {
    const base::MutexLock lock{mutex_};
    return read().engine;
  }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override {
    const base::MutexLock lock{mutex_};
    const Time time = read();
    return time.engine.time_since_epoch().count() + time.wall_offset_ms;
  }
  /// Stands still with the time.
  [[nodiscard]] std::int64_t wall_offset_ms() const noexcept override {
    const base::MutexLock lock{mutex_};
    return read().wall_offset_ms;
  }

  /// Moves on, frozen or not. False: it would be more than ahead_max ahead, or `by` is negative.
  [[nodiscard]] bool advance(Millis by) noexcept {
    const base::MutexLock lock{mutex_};
    if (by < Millis{0} || by > ahead_max - ahead_) return false;
    ahead_ += by;
    // What ends `by` after a time that was shown has ended, also for a thread that reads the
    // system's clock a little behind.
    last_ += by;
    if (frozen_) frozen_->engine += by;
    return true;
  }
  /// Stands still until advance() or go().
  void freeze() noexcept {
    const base::MutexLock lock{mutex_};
    if (!frozen_) frozen_ = read();
  }
  /// Goes on with the system's clock, ahead of it by all that was advanced.
  void go() noexcept {
    const base::MutexLock lock{mutex_};
    static_cast<void>(read());  // never goes back behind a time that was read
    frozen_.reset();
  }

  Faults faults{};  ///< that the test has planted

 private:
  struct Time {
    Timestamp engine;
    std::int64_t wall_offset_ms;
  };
  [[nodiscard]] Time read() const noexcept SEMEL_REQUIRES(mutex_) {
    Time time = frozen_.value_or(Time{system_.now() + ahead_, system_.wall_offset_ms()});
    // Two threads may read the system's clock a little differently.
    time.engine = last_ = std::max(last_, time.engine);
    return time;
  }

  const Clock& system_;
  mutable base::Mutex mutex_;
  Millis ahead_ SEMEL_GUARDED_BY(mutex_){0};
  std::optional<Time> frozen_ SEMEL_GUARDED_BY(mutex_);
  mutable Timestamp last_ SEMEL_GUARDED_BY(mutex_){};
};

}  // namespace semel::net
