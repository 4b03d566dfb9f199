// What a rate limit keeps of a key: a string that ends. Its end is not in the value: the engine
// keeps it over restarts, other leaders and steps of the wall clock.
//
//   value of the record, words with blanks between
//     rate/1 fixed  LIMIT PERIOD TAKEN            ends with the window
//     rate/1 bucket LIMIT PERIOD REFILL PART      ends when the bucket is full
//     rate/1 slide  LIMIT PERIOD TAKEN ( GAP TAKEN )*
//                                                 ends when the newest call leaves the window. The
//                                                 newest first; GAP: ms to the one before it
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "semel/limits.hpp"
#include "semel/patterns/rate_limit.hpp"

namespace semel::detail::rate {

using Number = std::uint64_t;

constexpr Millis late_max{1'000};                  // that times of threads and nodes may differ
constexpr Millis fill_max = limits::ttl_max / 2;   // of a bucket
constexpr Number slices = limits::rate_exact_max;  // of a window that is not exact
constexpr std::size_t hits_max = 2 * slices;       // terms that change leave some of both kinds

// A bucket is counted in parts: a token is as many as the period has milliseconds, and `refill`
// parts come back in each of them.
static_assert(limits::rate_max <= (Number{1} << 62) / limits::rate_period_max.count());

struct Hit {
  Millis age{0};
  Number taken = 0;
};

/// What a record says.
struct State {
  RateTerms terms{};
  Number amount = 0;        // fixed: taken. bucket: parts that come back before its record ends
  std::vector<Hit> hits{};  // sliding: the newest first, as ages since the newest
};

constexpr Number count_of(Millis time) noexcept {
  return static_cast<Number>(time.count());
}
constexpr Millis millis_of(Number count) noexcept {
  return Millis{static_cast<Millis::rep>(count)};
}
constexpr Number ceil_of(Number a, Number b) noexcept {
  return (a + b - 1) / b;
}

/// Parts that come back in a millisecond.
inline Number refill_of(const RateTerms& terms) noexcept {
  return terms.refill == 0 ? terms.limit : terms.refill;
}
/// All parts of a bucket.
inline Number room_of(const RateTerms& terms) noexcept {
  return terms.limit * count_of(terms.period);
}
inline Millis fill_time(const RateTerms& terms) noexcept {
  return millis_of(ceil_of(room_of(terms), refill_of(terms)));
}
/// Calls of so long a time are counted as one of its end.
inline Millis slice_of(const RateTerms& terms) noexcept {
  if (terms.limit <= limits::rate_exact_max) return Millis{1};
  return millis_of(ceil_of(count_of(terms.period), slices));
}

/// Nothing: the value is no record of a limit.
[[nodiscard]] std::optional<State> read_state(Bytes value);

/// The head of a record of these terms, to which the numbers of its kind are appended.
[[nodiscard]] std::string begin_value(const RateTerms& terms);
void append_number(std::string& value, Number number);

}  // namespace semel::detail::rate
