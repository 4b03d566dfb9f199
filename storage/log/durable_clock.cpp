#include "storage/log/durable_clock.hpp"

namespace semel::storage {

Status check_wall_clock(const Anchor& last, const std::string& boot_id, std::int64_t unix_ms,
                        Millis ahead_max, const std::string& where) {
  if (last.line_ms == 0 || (last.boot_id == boot_id && !boot_id.empty())) return Done{};
  if (unix_ms - last.unix_ms <= ahead_max.count()) return Done{};
  return Error{ErrorCode::storage_failed,
               where + ": the wall clock is at " + std::to_string(unix_ms) +
                   " ms, and the last time known is " + std::to_string(last.unix_ms) +
                   " ms; correct the clock, or raise clock_ahead_max, " +
                   std::to_string(ahead_max.count()) +
                   " ms, and all records whose time has passed will end"};
}

}  // namespace semel::storage
