// Spans: stretches of the time line. What may be forgotten in the same span lies together on disk
// and leaves together.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "semel/types.hpp"
#include "storage/time_line.hpp"

namespace semel::storage {

/// Names a span by its end, in units of the storage's `span` option.
using SpanNumber = std::uint64_t;
inline constexpr SpanNumber span_never = std::numeric_limits<SpanNumber>::max();

/// The span that runs at a time: everything before it is over.
[[nodiscard]] inline SpanNumber running_span(std::uint64_t line_ms, Millis unit) noexcept {
  return line_ms / static_cast<std::uint64_t>(unit.count()) + 1;
}

/// The span at whose end something may be forgotten that must be kept until then. The further away,
/// the longer the span, by up to an eighth: mixed ttls over weeks make some fifty spans, not a
/// thousand files.
[[nodiscard]] inline SpanNumber span_of(std::uint64_t keep_until_ms, std::uint64_t now_ms,
                                        Millis unit) noexcept {
  if (keep_until_ms == TimeLine::no_end_ms) return span_never;
  const SpanNumber end = running_span(keep_until_ms, unit);
  const SpanNumber now = running_span(now_ms, unit);
  const std::uint64_t left = end > now ? end - now : 0;
  const int coarse = std::max(0, static_cast<int>(std::bit_width(left)) - 4);
  const std::uint64_t step = std::uint64_t{1} << coarse;
  return (end + step - 1) / step * step;
}

}  // namespace semel::storage
