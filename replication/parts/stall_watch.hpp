// Notices that something which has work to do does not get on, for the operator's log.
#pragma once

#include <cstdint>
#include <utility>

namespace semel::replication {

/// Belongs to one thread.
class StallWatch {
 public:
  enum class Turn : std::uint8_t { none, begins, ends };

  /// `has_work` now; `progress` is another number whenever it has got on. begins: it has not got on
  /// for `patience_ms`. ends: it has since, or has nothing to do any more. Each is returned once.
  [[nodiscard]] Turn look(std::uint64_t now, bool has_work, std::uint64_t progress,
                          std::uint64_t patience_ms) noexcept {
    const bool is_on = !has_work || progress != progress_ || !had_work_;
    had_work_ = has_work;
    progress_ = progress;
    stalled_ms_ = now - since_;
    if (is_on) {
      since_ = now;
      return std::exchange(is_stalled_, false) ? Turn::ends : Turn::none;
    }
    if (is_stalled_ || stalled_ms_ < patience_ms) return Turn::none;
    is_stalled_ = true;
    return Turn::begins;
  }
  [[nodiscard]] bool is_stalled() const noexcept { return is_stalled_; }
  /// At a turn: for how long it has not got on.
  [[nodiscard]] std::uint64_t stalled_ms() const noexcept { return stalled_ms_; }

 private:
  std::uint64_t since_ = 0;
  std::uint64_t progress_ = 0;
  std::uint64_t stalled_ms_ = 0;
  bool had_work_ = false;
  bool is_stalled_ = false;
};

}  // namespace semel::replication
