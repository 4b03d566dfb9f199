// From a timer that fires to the records that end.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/core.hpp"

namespace semel::engine {

/// Records that the timer may be of, counted up to `at_most`. One whose end was moved to later gets
/// a timer of its own, and needs this one no more. Inside an operation of `context`.
[[nodiscard]] unsigned timers_alive(Core& core, ThreadContext& context, std::uint64_t hash_bits,
                                    Timestamp wake, unsigned at_most);

/// Takes out the records whose timers are `batch` (bits of their hashes) and that have ended by
/// `now`, and trims those of which a part has. Not inside an operation.
void expire_batch(Core& core, ThreadContext& context, std::span<const std::uint64_t> batch,
                  Timestamp now);

}  // namespace semel::engine
