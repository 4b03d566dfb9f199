// Signed requests once: each is taken within a window of time, and its nonce is taken once within
// it. In the library Semel::signed.
// Source: docs/keys.md
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "semel/engine.hpp"
#include "semel/patterns/signed_request.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

/// The secrets of a caller; any of them may have signed, so that they can be changed without a
/// pause. None: an unknown caller. Called by every check(), from any thread.
using SecretsOf = std::function<std::vector<std::string>(Bytes caller)>;

struct ReplayGuardOptions {
  Millis window{60'000};       ///< signed this long ago is too old; 1..limits::ttl_max
  Millis ahead{60'000};        ///< signed further in the future is too new; 0..limits::ttl_max
  std::uint8_t db = 0;         ///< where the nonces are
  std::string name = "nonce";  ///< their keys begin with it; 1..64 bytes
  SignatureScheme scheme = SignatureScheme::hmac_sha256;
  std::vector<std::string> secrets{};  ///< of all callers; or
  SecretsOf secrets_of{};              ///< of each
};

enum class ReplayAnswer : std::uint8_t {
  unanswered,
  accepted,       ///< signed, in time, and the first with its nonce
  bad_signature,  ///< by none of the caller's secrets
  too_old,        ///< signed `window` ago or longer
  too_new,        ///< signed more than `ahead` in the future
  replayed,       ///< its nonce was taken before
  malformed,      ///< something in it is out of its range, see SignedRequest
  busy,           ///< the nonce could not be written, see the error; never accepted
};

struct ReplayOutcome {
  ReplayAnswer answer = ReplayAnswer::unanswered;
  ErrorCode error = ErrorCode::ok;  ///< busy: why
};

/// Thread-safe; movable while no call is in progress. Must not outlive the engine.
///
/// The guard's time is the engine's clock plus the largest lead that the wall clock ever had on it.
/// So the time of a guard never goes back and never stands still, and ends no later than
/// the nonces do: a wall clock that is set back does not open a window again. What it costs: a wall
/// clock that was too far ahead once, if only for one request, leaves the guard ahead by as much
/// until another one is opened, and honest requests may be too_old.
///
/// A guard knows nothing of the time before it was opened. Nonces are as durable as the engine is:
/// without a storage, a restarted process must wait for window + ahead before it serves again, or
/// it may accept a request twice.
class ReplayGuard {
 public:
  /// Errors: bad_option (names the option).
  [[nodiscard]] static Result<ReplayGuard> open(Engine& engine, ReplayGuardOptions options);
  ~ReplayGuard();
  ReplayGuard(ReplayGuard&&) noexcept;
  ReplayGuard& operator=(ReplayGuard&&) noexcept;

  /// Looks at form, signature, time, nonce and, as long as claiming the nonce may have taken, the
  /// time again; the first that is wrong is the answer. Exactly one of any number of concurrent
  /// calls with one nonce is accepted. An accepted nonce costs a record for window + ahead (+ 1 ms,
  /// by which the clocks of two threads may differ); a request without a valid signature costs
  /// none. Not to be called inside a section, where time stands still. Progress: lock-free but for
  /// `secrets_of`; waits for the engine's durability.
  [[nodiscard]] ReplayOutcome check(const SignedRequest& request);

 private:
  class Impl;
  explicit ReplayGuard(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
