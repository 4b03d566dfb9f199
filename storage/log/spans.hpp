// Spans: intervals of the durable clock. Mutations that may be forgotten in the same span are
// stored together and deleted together.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/assert.hpp"
#include "semel/types.hpp"
#include "storage/log/durable_clock.hpp"

namespace semel::storage {

/// Names a span by its end, in milliseconds of the durable clock, so that it does not depend on the
/// unit that a process uses.
using SpanNumber = std::uint64_t;
inline constexpr SpanNumber span_never = std::numeric_limits<SpanNumber>::max();

/// Spans before this one have ended.
[[nodiscard]] inline SpanNumber running_span(std::uint64_t line_ms) noexcept {
  return line_ms + 1;
}

/// The span for something that must be kept until `keep_until_ms`. Spans are longer the later they
/// end, by up to an eighth of the time left: mixed ttls over weeks make some fifty spans, not a
/// thousand files.
[[nodiscard]] inline SpanNumber span_of(std::uint64_t keep_until_ms, std::uint64_t now_ms,
                                        Millis unit) noexcept {
  if (keep_until_ms == DurableClock::no_end_ms) return span_never;
  SEMEL_ASSERT(unit.count() > 0);
  const auto unit_ms = static_cast<std::uint64_t>(unit.count());
  const std::uint64_t left = keep_until_ms > now_ms ? (keep_until_ms - now_ms) / unit_ms : 0;
  const int coarse = std::max(0, static_cast<int>(std::bit_width(left)) - 4);
  const std::uint64_t step = unit_ms << coarse;
  return (keep_until_ms + step - 1) / step * step;
}

}  // namespace semel::storage
