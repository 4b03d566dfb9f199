// The time that a leader gives its entries.
//
// It goes on from the newest entry by a clock that no one sets (CLOCK_BOOTTIME), and follows the
// wall clock slowly. So neither a step of the wall clock nor a new leader whose wall clock is wrong
// lets records end at once. Belongs to one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace semel::replication {

class GroupClock {
 public:
  /// An entry of this time was applied now; `boot_ms`: milliseconds of this machine's clock.
  void saw(std::int64_t entry_ms, std::int64_t boot_ms) noexcept {
    if (entry_ms < newest_) return;
    // What this node has counted on since the entry before stays, if it is more.
    if (!is_set_ || entry_ms > at(boot_ms)) {
      base_ = entry_ms;
      base_boot_ = boot_ms;
      is_set_ = true;
    }
    newest_ = entry_ms;
  }
  /// The same, of an entry of another node that leads at present. Its time is the group's: it takes
  /// the place of what begin() has taken from a wall clock, which may be days ahead of it.
  void follow(std::int64_t entry_ms, std::int64_t boot_ms) noexcept {
    if (is_guess_ && entry_ms >= newest_) {
      base_ = entry_ms;
      base_boot_ = boot_ms;
      is_guess_ = false;
    }
    saw(entry_ms, boot_ms);
  }
  /// Where no entry is known, or none since this process began: the wall clock, if it is later than
  /// the newest entry by at most `ahead_max`. Otherwise that entry's time.
  void begin(std::int64_t newest_entry_ms, std::int64_t unix_ms, std::int64_t boot_ms,
             std::int64_t ahead_max) noexcept {
    const bool is_plausible = newest_entry_ms == 0 ||
                              (unix_ms > newest_entry_ms && unix_ms - newest_entry_ms <= ahead_max);
    base_ = is_plausible ? unix_ms : newest_entry_ms;
    base_boot_ = boot_ms;
    newest_ = newest_entry_ms;
    ahead_max_ = ahead_max;
    is_set_ = is_guess_ = true;
  }
  /// For the next entry: not before the newest one.
  [[nodiscard]] std::int64_t next(std::int64_t boot_ms, std::int64_t unix_ms) noexcept {
    // When begin() was called the log was not read: only now is it known what the newest entry is.
    const bool is_implausible = newest_ != 0 && at(boot_ms) - newest_ > ahead_max_;
    if (std::exchange(is_guess_, false) && is_implausible) {
      base_ = newest_;
      base_boot_ = boot_ms;
    }
    const std::int64_t passed = std::max<std::int64_t>(0, boot_ms - base_boot_);
    if (passed >= 1'000) {  // at most a thousandth faster or slower than time passes
      const std::int64_t here = base_ + passed;
      const std::int64_t most = passed / 1'000;
      base_ = here + std::clamp<std::int64_t>(unix_ms - here, -most, most);
      base_boot_ = boot_ms;
    }
    newest_ = std::max(newest_, at(boot_ms));
    return newest_;
  }
  /// How far the wall clock is from the group's time.
  [[nodiscard]] std::int64_t off_by(std::int64_t boot_ms, std::int64_t unix_ms) const noexcept {
    return unix_ms - at(boot_ms);
  }
  /// The group's time, as far as this node knows it.
  [[nodiscard]] std::int64_t at(std::int64_t boot_ms) const noexcept {
    return base_ + std::max<std::int64_t>(0, boot_ms - base_boot_);
  }

 private:
  std::int64_t base_ = 0;
  std::int64_t base_boot_ = 0;
  std::int64_t newest_ = 0;
  bool is_set_ = false;
  std::int64_t ahead_max_ = 0;
  bool is_guess_ = false;  // base_ is of begin()
};

}  // namespace semel::replication
