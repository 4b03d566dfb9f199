// What a rate limit decides: a pure function of the record, the terms and the cost. No clock: times
// are counted from the end of the record, which the engine keeps over restarts, other leaders and
// steps of the wall clock.
//
//   value of the record, words with blanks between
//     rate/1 fixed  LIMIT PERIOD TAKEN            ends with the window
//     rate/1 bucket LIMIT PERIOD REFILL PART      ends when the bucket is full
//     rate/1 slide  LIMIT PERIOD TAKEN ( GAP TAKEN )*
//                                                 ends when the newest call leaves the window. The
//                                                 newest first; GAP: ms to the one before it
#pragma once

#include <optional>
#include <string>

#include "semel/patterns/rate_limit.hpp"

namespace semel::detail {

struct RateRecord {
  Bytes value{};
  Millis remaining{0};  ///< until it ends, > 0
};

struct RateDecision {
  RateOutcome answer{};
  bool writes = false;
  std::string value{};  ///< of the record, if it writes,
  Millis keep{0};       ///< which ends so much later, >= 1 ms
};

/// Errors: bad_option.
[[nodiscard]] Status check_rate(const RateTerms& terms, std::uint64_t cost);

/// `terms` and `cost` have been checked. Errors: wrong_type.
[[nodiscard]] Result<RateDecision> decide_rate(const std::optional<RateRecord>& record,
                                               const RateTerms& terms, std::uint64_t cost);

}  // namespace semel::detail
