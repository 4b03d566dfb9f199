// The oracle: what one key must answer, written from docs/semantics.md and Redis' documented facts,
// independently of engine/rules. Slow, plain, sequential.
//
// An oracle step is given the operation and the outcome that the engine returned. It says whether
// that outcome is right for the state and moves the state on. Only versions and epochs are taken
// from the outcome, and only after they are found to obey the rules: a new version is larger than
// every version the key has ever shown, a version returned for an unchanged record is that record's
// own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "semel/claims.hpp"
#include "semel/journal.hpp"
#include "semel/op.hpp"

namespace semel::proofs {

/// Milliseconds on the engine's clock.
using Ms = std::int64_t;
inline constexpr Ms never = std::numeric_limits<Ms>::max();

inline Ms to_ms(Timestamp when) noexcept {
  return when.time_since_epoch().count();
}
inline Timestamp to_timestamp(Ms when) noexcept {
  return Timestamp{Millis{when}};
}

/// The claim half of a key. Sessions are small numbers given by the recorder: 0 is a remote owner,
/// others are bits of a mask of the dead.
struct ClaimFacts {
  ClaimState state = ClaimState::absent;
  bool result_expired = false;
  bool trimmed = false;  ///< the bytes are known to be swept, which was a change of its own
  bool poison = false;
  std::uint32_t attempts = 0;
  Epoch epoch = 0;
  std::uint32_t session = 0;
  Ms lease_until = 0;
  Ms result_until = 0;
  Ms unique_until = 0;
  Fingerprint fingerprint{};
  std::optional<ClaimId> claim_id;
  std::string owner;
  std::string result;
  bool operator==(const ClaimFacts&) const = default;
};

/// All that is known of one key at one moment.
struct KeyState {
  bool present = false;
  Kind kind = Kind::string;
  std::string value;
  Ms due = never;
  Version version = 0;  ///< of the record; 0: not known yet
  Version floor = 0;    ///< largest version the key has shown
  ClaimFacts claim;
  bool operator==(const KeyState&) const = default;
};

[[nodiscard]] std::size_t hash_of(const KeyState& state) noexcept;

/// What is true of all keys while one operation runs.
struct Moment {
  Ms now = 0;
  Ms unix_ms = 0;
  std::uint64_t dead_sessions = 0;  ///< bit per session number
  std::size_t value_bytes_max = limits::value_bytes_default;
};

/// nullptr: the outcome is right and the state moved on; else what is wrong with it (the state is
/// then meaningless).
using Complaint = const char*;

/// Brings the state to `now` without an operation: what has ended is gone.
void pass_time(KeyState& state, Ms now);

[[nodiscard]] Complaint step(KeyState& state, const StoreOp& op, const StoreOutcome& seen,
                             const Moment& moment);

/// The request's session is replaced by its number.
[[nodiscard]] Complaint step(KeyState& state, const Policy& policy, const ClaimRequest& request,
                             std::uint32_t session, const ClaimOutcome& seen, const Moment& moment);

enum class OwnerVerb : std::uint8_t { complete, fail, renew, release };
[[nodiscard]] Complaint step(KeyState& state, const Policy& policy, OwnerVerb verb,
                             const OwnerCall& call, const OwnerOutcome& seen, const Moment& moment);

/// Whether a claim would be granted now, as claim_all asks before it grants anything.
[[nodiscard]] bool is_grantable(const KeyState& state, const Policy& policy,
                                const ClaimRequest& request, std::uint32_t session,
                                const Moment& moment);

[[nodiscard]] Complaint step_view(const KeyState& state, const Policy& policy,
                                  const ClaimView& seen, const Moment& moment);
[[nodiscard]] Complaint step_issue(KeyState& state, const Policy& policy, Millis ttl, bool seen,
                                   const Moment& moment);
[[nodiscard]] Complaint step_forget(KeyState& state, bool seen, const Moment& moment);
[[nodiscard]] Complaint step_resolve(KeyState& state, const Policy& policy, Resolution resolution,
                                     Bytes result, bool seen, const Moment& moment);

/// A record as a scan, a snapshot or a journal shows it, against the state at `now`. Learns the
/// version if it was not known yet.
[[nodiscard]] Complaint step_shown(KeyState& state, const Mutation& shown, std::uint32_t session,
                                   Ms now);
/// The same when nothing was shown for the key.
[[nodiscard]] Complaint step_not_shown(const KeyState& state, Ms now);

// --- parts the multi-key model needs -----------------------------------------------------------
/// The version returned for a record that was only read. Learns it if it was not known yet, or if
/// the sweep has taken an expired result since: that is a change, with a new version, once.
[[nodiscard]] Complaint take_own_version(KeyState& state, Version seen);
[[nodiscard]] bool alive(const KeyState& state, Ms now) noexcept;
/// Alive, and not a claim that only remembers its attempts: that answers as absent everywhere.
[[nodiscard]] bool answers(const KeyState& state, Ms now) noexcept;
/// Puts a string there, version unknown until it is returned.
void put_string(KeyState& state, std::string value, Ms due);
void remove(KeyState& state);
/// XXH3-64 of the value, 16 lower-case hex digits.
[[nodiscard]] std::string digest_text(Bytes value);
[[nodiscard]] bool condition_holds(const KeyState& state, const StoreOp& op, Ms now);

}  // namespace semel::proofs
