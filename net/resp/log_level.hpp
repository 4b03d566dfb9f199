// How important a line of the log is.
#pragma once

#include <cstdint>

namespace semel::net {

/// The values of the setting log-level, in its order. A line of level error is always written.
enum class LogLevel : std::uint8_t { debug, verbose, notice, warning, error };

}  // namespace semel::net
