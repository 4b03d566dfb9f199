// The clocks of a machine whose processes end and which boots anew, with a wall clock that steps.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/storage/faults/world.hpp"

namespace semel::faults {

class MachineTime {
 public:
  /// From the next boot on.
  void stand_still(bool does) {
    between_ = does ? JumpingClock::Between::stands_still : JumpingClock::Between::goes_on;
  }
  /// Of two lives, as of compare().
  [[nodiscard]] Millis slack() const {
    return between_ == JumpingClock::Between::stands_still ? Millis{0} : clock_slack;
  }
  /// The clock begins anew, at `begins`, after the machine was off for `off`; the wall clock goes
  /// on, and may have been stepped meanwhile.
  void boot(Millis begins = Millis{1'000}, Millis off = Millis{0}) {
    const std::int64_t unix_ms = time_ ? time_->unix_ms() : 1'700'000'000'000;
    ++boots_;
    time_.emplace(unix_ms + off.count(), begins, between_);
    wall_.emplace(*time_, off_);
  }
  [[nodiscard]] std::string boot_id() const { return "boot " + std::to_string(boots_); }
  /// Sets the wall clock off by `by` more.
  void step(Millis by) {
    off_ += by;
    if (wall_) wall_->set_off(off_);
  }
  /// The true one. After boot().
  [[nodiscard]] JumpingClock& clock() { return *time_; }
  /// What the storage is told. After boot().
  [[nodiscard]] const Clock& wall() const { return *wall_; }

 private:
  std::uint64_t boots_ = 0;
  JumpingClock::Between between_ = JumpingClock::Between::goes_on;
  std::optional<JumpingClock> time_;
  std::optional<SteppedClock> wall_;
  Millis off_{0};
};

}  // namespace semel::faults
