// One-time tokens that are kept until they are used: for forms, confirmations, invitations.
//
//   auto claims = engine->claims("tokens", policies::token).value();
//   auto tokens = TokenService::open(claims).value();
//   const std::string token = tokens.issue().value();            // into the form
//   auto paid = tokens.redeem(token, [&] { return pay(form); }); // once; again: the same receipt
//
// A failed run gives the token back: it can be used again until its own end, and for the policy's
// attempts_ttl at least, up to attempts_max times. A token that was never issued, or has ended, is
// `unknown`; a used token is `spent`, with the result of its use. Tokens that cost no memory before
// their use: semel/patterns/signed_tokens.hpp. Source: docs/patterns.md#one-time-tokens
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "semel/patterns/once.hpp"
#include "semel/patterns/token_answer.hpp"

namespace semel {

/// The answer of TokenService::count().
struct TokenCount {
  std::int64_t count = 0;  ///< 1: issued now; 2: the first use; more: a repeat
  Epoch epoch = 0;         ///< of the first use: to spend it
};

/// Thread-safe. Must not outlive the engine.
class TokenService {
 public:
  /// Errors: bad_option (the policy does not issue its keys, or fails open).
  [[nodiscard]] static Result<TokenService> open(const Claims& claims);

  /// A new token of 22 characters, 128 random bits; good for `ttl`, by default the policy's
  /// attempts_ttl. Errors: those of Claims::issue; bad_option (the system gives no randomness).
  [[nodiscard]] Result<std::string> issue(std::optional<Duration> ttl = {});
  /// The same with a text of the caller, which should be hard to guess. False: it is known already.
  [[nodiscard]] Result<bool> issue_as(Bytes token, std::optional<Duration> ttl = {});

  /// Reserves `token`, for exactly one of any number of concurrent calls. Progress: lock-free.
  [[nodiscard]] TokenOutcome reserve(Bytes token, const TokenReservation& reservation = {});
  /// Spends the token: a caller that presents it again gets `result`. As Claims::complete(); a
  /// result that cannot be kept is dropped, and OwnerOutcome::dropped has the reason.
  [[nodiscard]] OwnerOutcome spend(Bytes token, Epoch epoch, Bytes result = {});
  /// Frees the token for another attempt, until the end that it was issued with or for the policy's
  /// attempts_ttl, whichever is later. As Claims::fail() with release.
  [[nodiscard]] OwnerOutcome give_back(Bytes token, Epoch epoch);

  /// once() on a token; OnceAnswer::unknown if there is no such token.
  template <class Function>
  auto redeem(Bytes token, Function&& function) {
    return once(claims_, OnceCall{.key = token}, std::forward<Function>(function));
  }

  /// For programs that count a key: 1 for its issue, 2 for its first use, 3 for all later calls. A
  /// first use that neither spends the token nor gives it back loses it at the end of its lease,
  /// and the next call is the first use again. Errors: as issue_as().
  [[nodiscard]] Result<TokenCount> count(Bytes token, std::optional<Duration> ttl = {});

 private:
  explicit TokenService(const Claims& claims) noexcept : claims_(claims) {}
  Claims claims_;
};

}  // namespace semel
