// What a rate limit decides: a pure function of the record, the terms and the cost. No clock: times
// are counted from the end of the record, which the engine keeps over restarts, other leaders and
// steps of the wall clock.
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
