// The claim's truth table: pure functions of (record or none, call, policy, facts). No clock, no
// atomics, no state; a decision may be taken several times until its compare-and-set wins.
// Source: docs/semantics.md#claims
//
//   absent/vacant --claim--> held --complete--> done
//                             |  \--fail------> failed (kept) | vacant (attempts kept) | absent
//                             |             \-> in_doubt, by the owner's word, until resolve
//                             |   \-release---> absent | vacant (memos kept)
//                             \-claim after lease end--> held (takeover) | failed (poison)
//
// A lease is over from the millisecond lease_until on, or when its session is closed. Nothing
// sweeps a held record away before that: the next claim decides, in the same compare-and-set.
// What the operator's calls do is in operator_rules.hpp, what steps do in memo_rules.hpp.
#pragma once

#include <cstdint>

#include "engine/rules/claim_codec.hpp"
#include "engine/rules/record.hpp"
#include "engine/rules/verbs.hpp"
#include "semel/claim_fields.hpp"
#include "semel/claims.hpp"

namespace semel::engine {

/// What a decision may depend on besides the record and the call.
struct ClaimFacts {
  Timestamp now;
  Version candidate = 0;       ///< version this change will get; becomes the epoch of a grant
  bool owner_dead = false;     ///< the session of the record is closed
  SessionId session = 0;       ///< of the caller; a grant is bound to it
  bool counts_tries = true;    ///< a release leaves the attempts before it where they were
  bool others_first = false;   ///< others wait for this key, and they go first
  std::int64_t unix_now = 0;   ///< for first_sent only
  Timestamp held_until{};      ///< out: in_flight: end of the lease, or record, in the way
  SessionId held_session = 0;  ///< out: in_flight: its session
};

/// The part of a claim's checks that needs no record: lease 1 ms..limits::ttl_max, labels at most
/// ClaimLabel::bytes_max. Errors: bad_option.
[[nodiscard]] inline ErrorCode check_claim(const ClaimRequest& request) noexcept {
  if (request.lease && (*request.lease < Millis{1} || *request.lease > limits::ttl_max)) {
    return ErrorCode::bad_option;
  }
  bool fits = true;
  each_row<claim_labels>(
      [&](auto label) { fits &= (request.*label.row.given).size() <= label.row.bytes_max; });
  if (!fits) return ErrorCode::bad_option;
  return ErrorCode::ok;
}
/// The same for an owner call. Errors: bad_option.
[[nodiscard]] ErrorCode check_owner(OwnerVerb verb, const OwnerCall& call) noexcept;

/// Whether the payload is to be stored, and so has a limit.
[[nodiscard]] inline bool is_kept(OwnerVerb verb, const OwnerCall& call) noexcept {
  return verb != OwnerVerb::complete || call.keeping != ResultKeeping::none;
}
/// Whether `error` concerns the result alone, so that the work may be done without it.
[[nodiscard]] inline bool may_drop(OwnerVerb verb, const OwnerCall& call,
                                   ErrorCode error) noexcept {
  return (error == ErrorCode::memory_full || error == ErrorCode::value_too_long) &&
         verb == OwnerVerb::complete && call.keeping == ResultKeeping::optional;
}

/// What claim() does to `live` (null: absent). `request` has passed check_claim. The outcome is
/// reset. An existing record is judged by claim_id, then fingerprint, then state.
[[nodiscard]] Decision decide_claim(const RecordView* live, const ClaimRequest& request,
                                    const Policy& policy, ClaimFacts& facts, ClaimOutcome& outcome,
                                    Scratch& scratch);

/// What an owner call does to `live`. `call` has passed check_owner. Of the facts only now and
/// owner_dead are used. The outcome is reset.
[[nodiscard]] Decision decide_owner(OwnerVerb verb, const RecordView* live, const OwnerCall& call,
                                    const Policy& policy, const ClaimFacts& facts,
                                    OwnerOutcome& outcome, Scratch& scratch);

/// For the wheel: a done record whose result has ended becomes its digest and outcome; everything
/// else is kept. `view` may be of any kind.
[[nodiscard]] Decision trim(const RecordView& view, Timestamp now, Scratch& scratch);
/// The same for what a claim's bytes say. False: there is nothing to drop.
bool trim(ClaimRecord& record, Timestamp now) noexcept;

/// State as shown to people: in_doubt if it is stored so, or if it is held, its lease is over, and
/// the policy never re-runs; a vacant record is absent, unless keys are issued.
[[nodiscard]] ClaimState state_of(const ClaimRecord& record, const Policy& policy, Timestamp now,
                                  bool owner_dead) noexcept;

}  // namespace semel::engine
