// How much a line of the log weighs.
#pragma once

#include <cstdint>

namespace semel::net {

/// The words of the setting log-level, in its order; error is always written.
enum class LogLevel : std::uint8_t { debug, verbose, notice, warning, error };

}  // namespace semel::net
