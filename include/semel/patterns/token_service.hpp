// One-time tokens that are kept until they are used: for forms, confirmations, invitations.
//
//   auto claims = engine->claims("tokens", policies::token).value();
//   auto tokens = TokenService::open(claims).value();
//   const std::string token = tokens.issue().value();            // into the form
//   auto paid = tokens.redeem(token, [&] { return pay(form); }); // once; again: the same receipt
//
// A run that fails gives the token back, and the same one works again until its own end, and for
// the policy's attempts_ttl at least, as often as attempts_max says. A token that was never issued,
// or has ended, is `unknown`; a used one is `spent`, with the result of its use. Tokens that cost
// no memory before their use: semel/patterns/signed_tokens.hpp. Source:
// docs/patterns.md#one-time-tokens
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "semel/patterns/once.hpp"
#include "semel/patterns/token_answer.hpp"

namespace semel {

/// What counting a token answers, see TokenService::count().
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
  /// The same with a text of yours, which should be hard to guess. False: it is known already.
  [[nodiscard]] Result<bool> issue_as(Bytes token, std::optional<Duration> ttl = {});

  /// Reserves `token`. Exactly one of any number of concurrent calls is
  /// reserved. Progress: lock-free.
  [[nodiscard]] TokenOutcome reserve(Bytes token, const TokenReservation& reservation = {});
  /// Uses it finally; a caller that presents it again gets `result`. As Claims::complete(); a
  /// result that cannot be kept is dropped, and OwnerOutcome::dropped has the reason.
  [[nodiscard]] OwnerOutcome spend(Bytes token, Epoch epoch, Bytes result = {});
  /// Makes it free for another attempt, until the end it was issued with or for the policy's
  /// attempts_ttl, whichever is later. As Claims::fail() with release.
  [[nodiscard]] OwnerOutcome give_back(Bytes token, Epoch epoch);

  /// once() on a token: OnceAnswer::unknown if there is none.
  template <class Function>
  auto redeem(Bytes token, Function&& function) {
    return once(claims_, OnceCall{.key = token}, std::forward<Function>(function));
  }

  /// For programs that count a key: 1 when it is issued, 2 for its first use, 3 for all later
  /// calls. A first use that neither spends it nor gives it back loses it with its lease, and the
  /// next call is the first again. Errors: as issue_as().
  [[nodiscard]] Result<TokenCount> count(Bytes token, std::optional<Duration> ttl = {});

 private:
  explicit TokenService(const Claims& claims) noexcept : claims_(claims) {}
  Claims claims_;
};

}  // namespace semel
