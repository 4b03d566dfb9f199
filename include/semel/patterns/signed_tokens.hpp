// One-time tokens that cost no memory until they are used: their facts are signed into their text,
// and the first use claims their random id. In the library Semel::signed.
// Source: docs/keys.md
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/patterns/token_answer.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

struct SignedTokensOptions {
  Millis ttl{300'000};               ///< how long a token can be reserved; 10..limits::ttl_max
  std::vector<std::string> secrets;  ///< the first signs, any verifies; each 16 bytes at least
};

/// Thread-safe; movable while no call is in progress. Must not outlive the engine. Its time is that
/// of ReplayGuard, with the same price. Another wall clock after a restart may let a spent token
/// be used again only if it is behind by more than the policy's unique_ttl exceeds `ttl`, or if
/// the claims were not durable.
class SignedTokens {
 public:
  /// The policy of `claims`, which should not be changed to less afterwards, must remember each
  /// token until it is over. Errors: bad_option (names the option: ttl or secrets out of range; the
  /// policy fails open, or takes only keys that are issued; its unique_ttl and result_ttl, or
  /// failure_ttl where failures are kept or attempts limited, or attempts_ttl where they are
  /// limited, are less than ttl).
  [[nodiscard]] static Result<SignedTokens> open(Claims claims, SignedTokensOptions options);
  ~SignedTokens();
  SignedTokens(SignedTokens&&) noexcept;
  SignedTokens& operator=(SignedTokens&&) noexcept;

  /// A new token for `subject` (whom it is for, what it allows; any bytes) that can be reserved for
  /// `ttl`, or 4 ms less than the policy remembers it, whichever is shorter:
  /// "v1.<unix ms of its end>.<random id>.<signature>". Nothing is stored.
  /// Errors: bad_option (the system gives no randomness, or libcrypto no signature).
  [[nodiscard]] Result<std::string> issue(Bytes subject);

  /// Reserves `token`. unknown: it is not from here or not for `subject`. It is
  /// expired from its end on, reserved or not, but the caller that has reserved it may spend it
  /// later. Exactly one of any number of concurrent calls is reserved. busy with invalid_expire: it
  /// would live longer than tokens do, so the wall clock is behind what it was when this one was
  /// issued, or ttl was made shorter. A doubt of the policy is in_flight. Progress: lock-free.
  [[nodiscard]] TokenOutcome reserve(Bytes token, Bytes subject,
                                     const TokenReservation& reservation = {});

  /// Uses the token finally; a caller that presents it again gets `result`. As Claims::complete();
  /// a result that cannot be kept is dropped, and OwnerOutcome::dropped has the reason.
  [[nodiscard]] OwnerOutcome spend(Bytes token, Epoch epoch, Bytes result = {});
  /// Makes it free for another attempt. As Claims::fail() with release.
  [[nodiscard]] OwnerOutcome give_back(Bytes token, Epoch epoch);

 private:
  class Impl;
  explicit SignedTokens(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
