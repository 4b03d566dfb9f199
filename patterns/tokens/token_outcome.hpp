// From a claim's answer to that of a token.
#pragma once

#include <utility>

#include "semel/claim.hpp"
#include "semel/patterns/token_answer.hpp"

namespace semel::patterns {

[[nodiscard]] inline TokenAnswer answer_of(ClaimAnswer answer) noexcept {
  switch (answer) {
    case ClaimAnswer::granted:
      return TokenAnswer::reserved;
    case ClaimAnswer::regranted:
      return TokenAnswer::regranted;
    case ClaimAnswer::in_flight:
    case ClaimAnswer::in_doubt:
      return TokenAnswer::in_flight;
    case ClaimAnswer::replay:
      return TokenAnswer::spent;
    case ClaimAnswer::kept_failure:
      return TokenAnswer::exhausted;
    case ClaimAnswer::unknown:
      return TokenAnswer::unknown;
    // These need a fingerprint, a time of sending or a policy that no tokens are opened with.
    case ClaimAnswer::mismatch:
    case ClaimAnswer::too_old:
    case ClaimAnswer::too_new:
    case ClaimAnswer::unprotected:
    case ClaimAnswer::busy:
    case ClaimAnswer::unanswered:
      break;
  }
  return TokenAnswer::busy;
}

[[nodiscard]] inline TokenOutcome token_outcome(ClaimOutcome&& claim) {
  return {.answer = answer_of(claim.answer),
          .epoch = claim.epoch,
          .attempt = claim.attempt,
          .result = std::move(claim.result),
          .retry_after = claim.retry_after,
          .error = claim.error};
}

}  // namespace semel::patterns
