// A clock in milliseconds that continues across restarts. Times of the engine's clock are valid in
// one boot only; times on disk must keep their meaning.
//
// At open it continues where it stopped: within the same boot by the engine's clock, exactly; after
// a boot by the time that passed on the wall clock, or not at all if that was set back. While the
// process runs it follows the engine's clock alone. So of all steps of the wall clock only one
// forward while the machine was off ends records early; a step back keeps them longer.
//
// A cold store has one of its own, which follows that of its storage (storage/cold/cold_bond.hpp).
//
// It began with the wall clock, so it is roughly the milliseconds since 1970. docs/disk-format.md
// calls it the durable clock as well; names on disk and in tools have `line` for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "semel/clock.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::storage {

/// The three clocks when something was last written.
struct Anchor {
  std::int64_t line_ms = 0;
  std::int64_t engine_ms = 0;
  std::int64_t unix_ms = 0;  ///< the wall clock; it may differ from line_ms
  std::string boot_id;
};

/// Two clocks at one moment.
struct ClockReading {
  Timestamp now{};
  std::int64_t unix_ms = 0;
};
/// By the offset that absolute times are mapped with: the same times come back after a restart.
[[nodiscard]] inline ClockReading read_clocks(const Clock& clock) noexcept {
  const Timestamp now = clock.now();
  return {.now = now, .unix_ms = now.time_since_epoch().count() + clock.wall_offset_ms()};
}

/// After a boot, whether the wall clock is so far ahead of the last time known that it must be
/// wrong: all records would end. `where` names the directory. Errors: storage_failed, with both
/// times.
[[nodiscard]] Status check_wall_clock(const Anchor& last, const std::string& boot_id,
                                      std::int64_t unix_ms, Millis ahead_max,
                                      const std::string& where);

class DurableClock {
 public:
  static constexpr std::uint64_t no_end_ms = std::numeric_limits<std::uint64_t>::max();

  /// `last.line_ms` 0: there is none, start with the wall clock.
  [[nodiscard]] static DurableClock resume(const Anchor& last, const std::string& boot_id,
                                           Timestamp engine_now, std::int64_t unix_ms) {
    const std::int64_t engine_ms = engine_now.time_since_epoch().count();
    if (last.line_ms == 0) return DurableClock{unix_ms - engine_ms};
    // Processes of one boot may begin their milliseconds apart (semel/clock.hpp).
    const bool same_boot = last.boot_id == boot_id && engine_ms >= last.engine_ms - 1;
    const std::int64_t passed =
        std::max<std::int64_t>(0, same_boot ? engine_ms - last.engine_ms : unix_ms - last.unix_ms);
    return DurableClock{last.line_ms + passed - engine_ms};
  }

  explicit DurableClock(std::int64_t offset_ms) noexcept : offset_ms_(offset_ms) {}

  /// What it adds to the engine's milliseconds.
  [[nodiscard]] std::int64_t offset_ms() const noexcept { return offset_ms_; }
  /// 0 stands for no time, as Timestamp{} does.
  [[nodiscard]] std::uint64_t to_durable_ms(Timestamp when) const noexcept {
    if (when == no_end) return no_end_ms;
    if (when == Timestamp{}) return 0;
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(1, when.time_since_epoch().count() + offset_ms_));
  }
  [[nodiscard]] Timestamp from_durable_ms(std::uint64_t line_ms) const noexcept {
    if (line_ms == no_end_ms) return no_end;
    if (line_ms == 0) return Timestamp{};
    return Timestamp{Millis{static_cast<std::int64_t>(line_ms) - offset_ms_}};
  }

 private:
  std::int64_t offset_ms_;
};

}  // namespace semel::storage
