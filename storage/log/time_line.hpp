// Milliseconds that go on across restarts. Engine times are of one boot at most; what is on disk
// must mean the same after the next.
//
// At open the line goes on where it stopped: within the same boot by the engine's clock, exactly;
// after a boot by as much as the wall clock has gone on since, unless that was set back. While the
// process runs the line follows the engine's clock alone. So no step of the wall clock ends
// anything but one forward that nobody saw, while the machine was off; one back keeps things
// longer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "semel/types.hpp"

namespace semel::storage {

/// Where the line was when something was last written.
struct Anchor {
  std::int64_t line_ms = 0;
  std::int64_t engine_ms = 0;
  std::int64_t unix_ms = 0;  ///< what the wall clock showed then; it may differ from the line
  std::string boot_id;
};

class TimeLine {
 public:
  static constexpr std::uint64_t no_end_ms = std::numeric_limits<std::uint64_t>::max();

  /// `last`: none was ever written: line_ms 0.
  [[nodiscard]] static TimeLine resume(const Anchor& last, const std::string& boot_id,
                                       Timestamp engine_now, std::int64_t unix_ms) {
    const std::int64_t engine_ms = engine_now.time_since_epoch().count();
    if (last.line_ms == 0) return TimeLine{unix_ms - engine_ms};
    const bool same_boot = last.boot_id == boot_id && engine_ms >= last.engine_ms;
    const std::int64_t passed =
        same_boot ? engine_ms - last.engine_ms : std::max<std::int64_t>(0, unix_ms - last.unix_ms);
    return TimeLine{last.line_ms + passed - engine_ms};
  }

  explicit TimeLine(std::int64_t offset_ms) noexcept : offset_ms_(offset_ms) {}

  /// 0 stands for no time at all, as Timestamp{} does.
  [[nodiscard]] std::uint64_t to_line(Timestamp when) const noexcept {
    if (when == no_end) return no_end_ms;
    if (when == Timestamp{}) return 0;
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(1, when.time_since_epoch().count() + offset_ms_));
  }
  [[nodiscard]] Timestamp from_line(std::uint64_t line_ms) const noexcept {
    if (line_ms == no_end_ms) return no_end;
    if (line_ms == 0) return Timestamp{};
    return Timestamp{Millis{static_cast<std::int64_t>(line_ms) - offset_ms_}};
  }

 private:
  std::int64_t offset_ms_;
};

}  // namespace semel::storage
