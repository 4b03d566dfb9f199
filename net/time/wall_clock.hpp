// Wall-clock time finer than an engine's clock has it: for TIME, which people compare and salt
// with.
#pragma once

#include <cstdint>

#include "semel/fwd.hpp"

namespace semel::net {

/// Unix time of the engine in microseconds: a time of its millisecond, by the system's clock if
/// that is the engine's.
[[nodiscard]] std::int64_t unix_us_of(Engine& engine);

}  // namespace semel::net
