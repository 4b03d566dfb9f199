// See semel/patterns/token_service.hpp.
#include "semel/patterns/token_service.hpp"

#include <unistd.h>

#include <array>

#include "patterns/tokens/base64url.hpp"
#include "patterns/tokens/token_outcome.hpp"

namespace semel {

Result<TokenService> TokenService::open(const Claims& claims) {
  if (!claims.policy().issued) {
    return Error{ErrorCode::bad_option,
                 "the policy's issued is false, so that every text is a token"};
  }
  if (claims.policy().fail_open) {
    return Error{ErrorCode::bad_option, "the policy's fail_open, tokens would be used twice"};
  }
  return TokenService{claims};
}

Result<std::string> TokenService::issue(std::optional<Duration> ttl) {
  for (;;) {
    std::array<std::uint8_t, 16> id;
    if (getentropy(id.data(), id.size()) != 0) {
      return Error{ErrorCode::bad_option, "the system gives no randomness"};
    }
    std::string token = patterns::base64url(id);
    SEMEL_TRY(fresh, claims_.issue(token, ttl));
    if (fresh) return token;
  }
}

Result<bool> TokenService::issue_as(Bytes token, std::optional<Duration> ttl) {
  return claims_.issue(token, ttl);
}

TokenOutcome TokenService::reserve(Bytes token, const TokenReservation& reservation) {
  return patterns::token_outcome(claims_.claim({.key = token,
                                                .lease = reservation.lease,
                                                .claim_id = reservation.claim_id,
                                                .owner = reservation.owner}));
}

OwnerOutcome TokenService::spend(Bytes token, Epoch epoch, Bytes result) {
  return claims_.complete(
      {.key = token, .epoch = epoch, .payload = result, .keeping = ResultKeeping::optional});
}

OwnerOutcome TokenService::give_back(Bytes token, Epoch epoch) {
  return claims_.fail({.key = token, .epoch = epoch, .on_failure = Policy::OnFailure::release});
}

Result<TokenCount> TokenService::count(Bytes token, std::optional<Duration> ttl) {
  SEMEL_TRY(fresh, claims_.issue(token, ttl));
  if (fresh) return TokenCount{.count = 1};
  const TokenOutcome use = reserve(token);
  if (use.answer == TokenAnswer::reserved) return TokenCount{.count = 2, .epoch = use.epoch};
  if (use.answer == TokenAnswer::busy) return Error{use.error, {}};
  return TokenCount{.count = 3};
}

}  // namespace semel
