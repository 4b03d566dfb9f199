// One-time tokens: the answers to a caller that presents one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "semel/claim.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

enum class TokenAnswer : std::uint8_t {
  unanswered,
  reserved,   ///< it is yours: do the work, then spend it or give it back with the epoch
  regranted,  ///< it was yours already, by the claim id; the same epoch
  in_flight,  ///< another caller has it reserved; perhaps again after retry_after
  spent,      ///< it was used; result is what its spending left
  exhausted,  ///< it failed too often, or finally; result says how
  unknown,    ///< no such token, or not for this subject
  expired,    ///< its time is over
  busy,       ///< could not be said now, see the error; nothing was changed
};

struct TokenOutcome {
  TokenAnswer answer = TokenAnswer::unanswered;
  Epoch epoch = 0;                  ///< reserved, regranted: the right to spend it
  std::uint32_t attempt = 0;        ///< reserved: 1 for the first; others: attempts so far
  std::string result{};             ///< spent, exhausted
  Millis retry_after{0};            ///< in_flight, busy: hint
  ErrorCode error = ErrorCode::ok;  ///< busy: why
};

struct TokenReservation {
  std::optional<Duration> lease{};    ///< none: the policy's
  std::optional<ClaimId> claim_id{};  ///< to ask again after a lost answer
  Bytes owner{};                      ///< label for people
};

}  // namespace semel
