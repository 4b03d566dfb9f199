// Spans: stretches of the time line. What may be forgotten in the same span lies together on disk
// and leaves together.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "semel/types.hpp"
#include "storage/log/time_line.hpp"

namespace semel::storage {

/// Names a span by its end, in milliseconds of the time line: so that it means the same whatever
/// unit the next process uses.
using SpanNumber = std::uint64_t;
inline constexpr SpanNumber span_never = std::numeric_limits<SpanNumber>::max();

/// Spans before this one are over.
[[nodiscard]] inline SpanNumber running_span(std::uint64_t line_ms) noexcept {
  return line_ms + 1;
}

/// The span at whose end something may be forgotten that must be kept until then. The further away,
/// the longer the span, by up to an eighth: mixed ttls over weeks make some fifty spans, not a
/// thousand files.
[[nodiscard]] inline SpanNumber span_of(std::uint64_t keep_until_ms, std::uint64_t now_ms,
                                        Millis unit) noexcept {
  if (keep_until_ms == TimeLine::no_end_ms) return span_never;
  const auto unit_ms = static_cast<std::uint64_t>(unit.count());
  const std::uint64_t left = keep_until_ms > now_ms ? (keep_until_ms - now_ms) / unit_ms : 0;
  const int coarse = std::max(0, static_cast<int>(std::bit_width(left)) - 4);
  const std::uint64_t step = unit_ms << coarse;
  return (keep_until_ms + step - 1) / step * step;
}

}  // namespace semel::storage
