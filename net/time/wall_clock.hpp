// Wall-clock time finer than an engine's clock has it: for TIME, which people compare and salt
// with.
#pragma once

#include <cstdint>

namespace semel::net {

/// `ms`, just read from an engine's clock, in microseconds: a time of that millisecond, by the
/// system's clock if that is the one it was read from.
[[nodiscard]] std::int64_t unix_us_of(std::int64_t ms) noexcept;

}  // namespace semel::net
