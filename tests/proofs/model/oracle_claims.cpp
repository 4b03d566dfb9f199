// The claim half of the oracle: the outcome table of docs/semantics.md, section 1, row by row.
#include <algorithm>

#include "tests/proofs/model/oracle.hpp"

namespace semel::proofs {
namespace {

bool is_dead(std::uint32_t session, const Moment& moment) {
  return session != 0 && ((moment.dead_sessions >> session) & 1U) != 0;
}
bool is_dead_session(const KeyState& state, const Moment& moment) {
  return is_dead(state.claim.session, moment);
}

bool lease_is_over(const KeyState& state, const Moment& moment) {
  return moment.now >= state.claim.lease_until || is_dead_session(state, moment);
}

/// A vacant record answers as absent.
bool claim_is_there(const KeyState& state) {
  return state.present && state.claim.state != ClaimState::vacant;
}

bool is_string(const KeyState& state) {
  return state.present && state.kind == Kind::string;
}

/// The record was changed: its version is new.
Complaint take_new_version(KeyState& state, Version seen) {
  if (seen <= state.floor) return "version of a change does not grow";
  state.version = state.floor = seen;
  return nullptr;
}

/// A record that went may tell its own last version or a new one.
Complaint take_erase(KeyState& state, Version seen) {
  if (seen != 0 && seen != state.version) {
    if (seen <= state.floor) return "version of an erase does not grow";
    state.floor = seen;
  }
  remove(state);
  return nullptr;
}

/// In a sliding window each end is a sixteenth later.
Ms with_share(const Policy& policy, Ms ttl) {
  return policy.sliding_max.count() == 0 ? ttl : ttl + ttl / 16;
}

void become_done(KeyState& state, const Policy& policy, Bytes result, Ms now) {
  ClaimFacts& claim = state.claim;
  claim.state = ClaimState::done;
  claim.session = 0;
  claim.lease_until = 0;
  claim.claim_id.reset();
  claim.result = std::string{result};
  const Ms key_ttl = std::max(policy.unique_ttl, policy.result_ttl).count();
  const Ms latest = now + std::max(policy.sliding_max.count(), key_ttl);
  claim.result_until = std::min(latest, now + with_share(policy, policy.result_ttl.count()));
  state.due = std::min(latest, now + with_share(policy, key_ttl));
  claim.unique_until = latest;
}

/// A replay in a sliding window. False: nothing has to move.
bool move_ends(KeyState& state, const Policy& policy, Ms now) {
  ClaimFacts& claim = state.claim;
  if (policy.sliding_max.count() == 0) return false;
  const Ms key_ttl = std::max(policy.unique_ttl, policy.result_ttl).count();
  const Ms result_ttl = policy.result_ttl.count();
  const bool key_is_short = state.due - now < key_ttl && state.due < claim.unique_until;
  const bool result_is_short = !claim.result_expired && claim.result_until - now < result_ttl &&
                               claim.result_until < claim.unique_until;
  if (!key_is_short && !result_is_short) return false;
  const auto later = [&](Ms end, Ms ttl) {
    return std::max(end, std::min(claim.unique_until, now + with_share(policy, ttl)));
  };
  if (!claim.result_expired) claim.result_until = later(claim.result_until, result_ttl);
  state.due = later(state.due, key_ttl);
  return true;
}

void become_failed(KeyState& state, const Policy& policy, Bytes failure, Ms now) {
  ClaimFacts& claim = state.claim;
  claim.state = ClaimState::failed;
  claim.session = 0;
  claim.lease_until = 0;
  claim.claim_id.reset();
  claim.result = std::string{failure};
  claim.result_until = claim.unique_until = now + policy.failure_ttl.count();
  state.due = claim.unique_until;
}

Ms due_of_held(const ClaimFacts& claim, const Policy& policy) {
  if (policy.on_lease_end == Policy::OnLeaseEnd::in_doubt) return never;
  return std::max(claim.lease_until + policy.attempts_ttl.count(), claim.unique_until);
}

/// A repeated key of a batch is never granted by itself: its caller has to retry.
bool is_sent_away(const Policy& policy, const ClaimOutcome& seen) {
  return seen.folded_onto && seen.answer == ClaimAnswer::in_flight && seen.epoch == 0 &&
         seen.version == 0 && seen.retry_after == policy.retry_after_max;
}

/// The next owner gets the work, unless the attempts are used up: then it has failed for good.
Complaint expect_grant(KeyState& state, const Policy& policy, const ClaimRequest& request,
                       std::uint32_t session, const ClaimOutcome& seen, const Moment& moment) {
  const std::uint32_t attempts = state.present ? state.claim.attempts : 0;
  const bool takeover = claim_is_there(state);
  if (policy.attempts_max != 0 && attempts >= policy.attempts_max) {
    if (seen.answer != ClaimAnswer::kept_failure || !seen.poison) return "poison expected";
    if (seen.attempt != attempts) return "attempts of a poison";
    if (seen.folded_onto) return nullptr;  // the next to claim it alone ends it
    state.present = true;
    state.kind = Kind::claim;
    state.claim.poison = true;
    become_failed(state, policy, {}, moment.now);
    return take_new_version(state, seen.version);
  }
  if (seen.folded_onto) return is_sent_away(policy, seen) ? nullptr : "no grant of a repeated key";
  if (seen.answer != ClaimAnswer::granted) return "grant expected";
  if (seen.takeover != takeover) return "takeover flag";
  if (seen.attempt != attempts + 1) return "attempt";
  if (seen.epoch != seen.version) return "epoch is not the version of the grant";
  if (seen.epoch <= state.floor) return "epoch does not grow";
  ClaimFacts next;
  next.state = ClaimState::held;
  next.attempts = attempts + 1;
  next.epoch = seen.epoch;
  next.session = session;
  next.lease_until = moment.now + request.lease.value_or(policy.lease).count();
  next.fingerprint = request.fingerprint;
  if (request.fingerprint.algorithm == 0) next.fingerprint = state.claim.fingerprint;
  // Held, it is the end of what was issued.
  if (policy.issued) next.unique_until = takeover ? state.claim.unique_until : state.due;
  next.claim_id = request.claim_id;
  next.owner = std::string{request.owner};
  state.present = true;
  state.kind = Kind::claim;
  state.value.clear();
  state.claim = std::move(next);
  state.due = due_of_held(state.claim, policy);
  return take_new_version(state, seen.version);
}

/// What the request's first_sent is to a window; none: inside, or not checked.
std::optional<ClaimAnswer> outside(const Policy& policy, const ClaimRequest& request, Ms unix_ms) {
  if (!request.first_sent_unix_ms) return std::nullopt;
  const Ms age = unix_ms - *request.first_sent_unix_ms;
  if (policy.window.count() != 0 && age >= policy.window.count()) return ClaimAnswer::too_old;
  if (policy.ahead.count() != 0 && -age > policy.ahead.count()) return ClaimAnswer::too_new;
  return std::nullopt;
}

/// Only what was issued can be claimed, and a vacant record is the only sign of that.
bool is_unknown(const KeyState& state, const Policy& policy) {
  return policy.issued && !state.present;
}

/// Free again after `attempts`, as something that was issued.
void become_vacant(KeyState& state, const Policy& policy, std::uint32_t attempts, Ms now) {
  ClaimFacts vacant;
  vacant.state = ClaimState::vacant;
  vacant.attempts = attempts;
  vacant.epoch = state.claim.epoch;
  state.due = std::max(now + policy.attempts_ttl.count(), state.claim.unique_until);
  state.claim = vacant;
}

Complaint expect_on_absent(KeyState& state, const Policy& policy, const ClaimRequest& request,
                           std::uint32_t session, const ClaimOutcome& seen, const Moment& moment) {
  if (is_unknown(state, policy)) {
    return seen.answer == ClaimAnswer::unknown ? nullptr : "unknown expected";
  }
  if (const auto why = outside(policy, request, moment.unix_ms)) {
    if (seen.answer != *why) return "too_old or too_new expected";
    const bool right = *why == ClaimAnswer::too_old
                           ? seen.window_start_unix_ms == moment.unix_ms - policy.window.count()
                           : seen.window_end_unix_ms == moment.unix_ms + policy.ahead.count();
    return right ? nullptr : "end of the window";
  }
  return expect_grant(state, policy, request, session, seen, moment);
}

Complaint expect_on_held(KeyState& state, const Policy& policy, const ClaimRequest& request,
                         std::uint32_t session, const ClaimOutcome& seen, const Moment& moment) {
  const ClaimFacts& claim = state.claim;
  if (!lease_is_over(state, moment)) {
    const Ms remaining = claim.lease_until - moment.now;
    if (seen.answer != ClaimAnswer::in_flight) return "in_flight expected";
    if (seen.remaining.count() != remaining) return "remaining lease";
    if (seen.retry_after > policy.retry_after_max || seen.retry_after.count() > remaining) {
      return "retry_after is beyond its ceiling";
    }
    if (seen.owner != claim.owner) return "owner label";
    return take_own_version(state, seen.version);
  }
  if (policy.on_lease_end == Policy::OnLeaseEnd::in_doubt) {
    if (seen.answer != ClaimAnswer::in_doubt) return "in_doubt expected";
    if (seen.attempt != claim.attempts) return "attempts in doubt";
    if (seen.owner != claim.owner) return "last owner's label";
    return take_own_version(state, seen.version);
  }
  return expect_grant(state, policy, request, session, seen, moment);
}

bool differs(const Fingerprint& asked, const Fingerprint& kept) {
  return asked.algorithm != 0 && asked.algorithm == kept.algorithm && asked.digest != kept.digest;
}

bool is_regrant(const KeyState& state, const ClaimRequest& request, const Moment& moment) {
  return state.claim.state == ClaimState::held && request.claim_id &&
         request.claim_id == state.claim.claim_id && !lease_is_over(state, moment);
}

Complaint expect_finished(KeyState& state, const Policy& policy, const ClaimOutcome& seen,
                          const Moment& moment) {
  const ClaimFacts& claim = state.claim;
  if (claim.state == ClaimState::failed) {
    if (seen.answer != ClaimAnswer::kept_failure) return "kept_failure expected";
    if (seen.poison != claim.poison) return "poison flag";
    if (seen.result != claim.result) return "kept failure";
  } else {
    if (seen.answer != ClaimAnswer::replay) return "replay expected";
    if (seen.result_expired != claim.result_expired) return "result_expired flag";
    if (seen.result != (claim.result_expired ? std::string{} : claim.result)) return "result";
    if (move_ends(state, policy, moment.now)) return take_new_version(state, seen.version);
  }
  return take_own_version(state, seen.version);
}

Complaint expect_other_epoch(KeyState& state, OwnerVerb verb, const OwnerCall& call,
                             const OwnerOutcome& seen) {
  const ClaimFacts& claim = state.claim;
  if (verb == OwnerVerb::release) {
    return seen.answer == OwnerAnswer::not_owner ? nullptr : "not_owner expected";
  }
  if (call.epoch > claim.epoch) {
    // Never handed out for this record: there is no such claim.
    return seen.answer == OwnerAnswer::unknown ? nullptr : "unknown expected for a future epoch";
  }
  if (seen.answer != OwnerAnswer::stale_owner) return "stale_owner expected";
  const bool expected =
      verb == OwnerVerb::complete && claim.state == ClaimState::done && !claim.result_expired;
  if (seen.has_result != expected) return "newer owner's result";
  if (expected && seen.result != claim.result) return "newer owner's result bytes";
  return nullptr;
}

Complaint expect_same_epoch_finished(KeyState& state, OwnerVerb verb, const OwnerCall& call,
                                     const OwnerOutcome& seen) {
  const ClaimFacts& claim = state.claim;
  if (verb == OwnerVerb::release) {
    return seen.answer == OwnerAnswer::not_owner ? nullptr : "a finished claim is never released";
  }
  const bool same_end =
      (verb == OwnerVerb::complete && claim.state == ClaimState::done) ||
      (verb == OwnerVerb::fail && claim.state == ClaimState::failed && !claim.poison);
  const bool again = same_end && claim.result == call.payload;
  const OwnerAnswer expected = again ? OwnerAnswer::ok : OwnerAnswer::conflict;
  return seen.answer == expected ? nullptr : "ok (same again) or conflict expected";
}

Complaint apply_owner_call(KeyState& state, const Policy& policy, OwnerVerb verb,
                           const OwnerCall& call, const OwnerOutcome& seen, const Moment& moment) {
  switch (verb) {
    case OwnerVerb::complete:
      become_done(state, policy, call.payload, moment.now);
      return take_new_version(state, seen.version);
    case OwnerVerb::renew:
      state.claim.lease_until = moment.now + call.lease.value_or(policy.lease).count();
      state.due = due_of_held(state.claim, policy);
      return take_new_version(state, seen.version);
    case OwnerVerb::release:
      if (!policy.issued && (policy.attempts_max == 0 || state.claim.attempts == 1)) {
        return take_erase(state, seen.version);
      }
      become_vacant(state, policy, state.claim.attempts - 1, moment.now);
      return take_new_version(state, seen.version);
    case OwnerVerb::fail:
      break;
  }
  if (call.on_failure.value_or(policy.on_failure) == Policy::OnFailure::keep) {
    become_failed(state, policy, call.payload, moment.now);
    return take_new_version(state, seen.version);
  }
  if (policy.attempts_max == 0 && !policy.issued) return take_erase(state, seen.version);
  become_vacant(state, policy, state.claim.attempts, moment.now);
  return take_new_version(state, seen.version);
}

bool same_claim(const ClaimFacts& mine, const ClaimRecord& shown, std::uint32_t session, Ms now) {
  const auto at = [](Timestamp when) { return to_ms(when); };
  if (mine.state != shown.state || mine.attempts != shown.attempts || mine.epoch != shown.epoch ||
      mine.poison != shown.poison) {
    return false;
  }
  if (mine.state == ClaimState::vacant) return true;
  if (mine.fingerprint != shown.fingerprint || mine.owner != shown.owner) return false;
  if (mine.state == ClaimState::held) {
    return mine.session == session && mine.lease_until == at(shown.lease_until) &&
           mine.claim_id == shown.claim_id;
  }
  if (mine.result_until != at(shown.result_until)) return false;
  if (mine.unique_until != at(shown.unique_until)) return false;
  // The bytes may go at any moment after their end, not before.
  if (shown.result_expired) return mine.result_expired || now >= mine.result_until;
  return mine.result == shown.result;
}

}  // namespace

Complaint step_issue(KeyState& state, const Policy& policy, Millis ttl, bool seen,
                     const Moment& moment) {
  pass_time(state, moment.now);
  if (!policy.issued || is_string(state)) return "issued where it cannot be";
  if (seen == state.present) return "issue of a key that is known";
  if (!seen) return nullptr;
  state.present = true;
  state.kind = Kind::claim;
  state.value.clear();
  state.claim = {};
  state.claim.state = ClaimState::vacant;
  state.claim.attempts = 0;
  state.due = moment.now + ttl.count();
  state.version = 0;
  return nullptr;
}

Complaint take_own_version(KeyState& state, Version seen) {
  if (!state.present || seen == state.version) return nullptr;
  ClaimFacts& claim = state.claim;
  const bool may_be_trimmed = state.kind == Kind::claim && claim.state == ClaimState::done &&
                              claim.result_expired && !claim.trimmed && !claim.result.empty();
  if (state.version != 0 && !may_be_trimmed) return "version of the record found";
  if (state.version != 0) claim.trimmed = true;
  return take_new_version(state, seen);
}

void pass_time(KeyState& state, Ms now) {
  if (!state.present) return;
  if (now >= state.due) {
    remove(state);
    return;
  }
  if (state.kind == Kind::claim && state.claim.state == ClaimState::done &&
      now >= state.claim.result_until) {
    state.claim.result_expired = true;  // the text stays here to judge a repeated complete by
  }
}

Complaint step(KeyState& state, const Policy& policy, const ClaimRequest& request,
               std::uint32_t session, const ClaimOutcome& seen, const Moment& moment) {
  pass_time(state, moment.now);
  if (is_dead(session, moment)) {
    return seen.error == ErrorCode::session_closed ? nullptr : "session_closed expected";
  }
  if (is_string(state)) {
    return seen.error == ErrorCode::wrong_kind ? nullptr : "wrong_kind expected";
  }
  if (seen.error != ErrorCode::ok) return "unexpected error of a claim";
  if (!claim_is_there(state)) {
    return expect_on_absent(state, policy, request, session, seen, moment);
  }
  if (is_regrant(state, request, moment)) {
    // It may be the grant of another call by now, which is not the first's.
    if (is_sent_away(policy, seen)) return nullptr;
    if (seen.answer != ClaimAnswer::regranted) return "regranted expected";
    if (seen.epoch != state.claim.epoch) return "epoch of a regrant";
    return take_own_version(state, seen.version);
  }
  if (differs(request.fingerprint, state.claim.fingerprint)) {
    if (seen.answer != ClaimAnswer::mismatch) return "mismatch expected";
    return seen.result.empty() ? nullptr : "mismatch tells a payload";
  }
  if (state.claim.state == ClaimState::held) {
    return expect_on_held(state, policy, request, session, seen, moment);
  }
  return expect_finished(state, policy, seen, moment);
}

Complaint step(KeyState& state, const Policy& policy, OwnerVerb verb, const OwnerCall& call,
               const OwnerOutcome& seen, const Moment& moment) {
  pass_time(state, moment.now);
  if (is_string(state)) {
    return seen.error == ErrorCode::wrong_kind ? nullptr : "wrong_kind expected";
  }
  if (seen.error != ErrorCode::ok) return "unexpected error of an owner call";
  if (!claim_is_there(state)) {
    return seen.answer == OwnerAnswer::unknown ? nullptr : "unknown expected";
  }
  if (call.epoch != state.claim.epoch) return expect_other_epoch(state, verb, call, seen);
  if (state.claim.state != ClaimState::held) {
    return expect_same_epoch_finished(state, verb, call, seen);
  }
  const bool late = lease_is_over(state, moment);
  const bool refuses =
      late && (verb == OwnerVerb::renew || (verb == OwnerVerb::complete && policy.strict));
  if (refuses) return seen.answer == OwnerAnswer::refused ? nullptr : "refused expected";
  if (seen.answer != OwnerAnswer::ok) return "ok expected of the owner";
  if (seen.late != late) return "late flag";
  return apply_owner_call(state, policy, verb, call, seen, moment);
}

bool is_grantable(const KeyState& before, const Policy& policy, const ClaimRequest& request,
                  std::uint32_t session, const Moment& moment) {
  KeyState state = before;
  pass_time(state, moment.now);
  if (is_string(state) || is_dead(session, moment)) return false;
  const std::uint32_t attempts = state.present ? state.claim.attempts : 0;
  const bool used_up = policy.attempts_max != 0 && attempts >= policy.attempts_max;
  if (!claim_is_there(state)) {
    return !is_unknown(state, policy) && !outside(policy, request, moment.unix_ms) && !used_up;
  }
  if (is_regrant(state, request, moment)) return true;
  if (differs(request.fingerprint, state.claim.fingerprint)) return false;
  return state.claim.state == ClaimState::held && lease_is_over(state, moment) &&
         policy.on_lease_end == Policy::OnLeaseEnd::retry && !used_up;
}

Complaint step_view(const KeyState& before, const Policy& policy, const ClaimView& seen,
                    const Moment& moment) {
  KeyState state = before;
  pass_time(state, moment.now);
  if (!claim_is_there(state)) {
    if (!policy.issued || !state.present) {
      return seen.state == ClaimState::absent ? nullptr : "view of an absent claim";
    }
    if (seen.state != ClaimState::vacant) return "view of an issued key";
    return seen.attempts == state.claim.attempts ? nullptr : "attempts of an issued key";
  }
  const ClaimFacts& claim = state.claim;
  const bool over = claim.state == ClaimState::held && lease_is_over(state, moment);
  const bool doubt = over && policy.on_lease_end == Policy::OnLeaseEnd::in_doubt;
  if (seen.state != (doubt ? ClaimState::in_doubt : claim.state)) return "state in a view";
  if (seen.attempts != claim.attempts || seen.epoch != claim.epoch) return "numbers in a view";
  if (seen.owner != claim.owner || seen.fingerprint != claim.fingerprint) return "labels in a view";
  if (claim.state == ClaimState::held) {
    const Ms left = over ? 0 : claim.lease_until - moment.now;
    return seen.lease_remaining.count() == left ? nullptr : "lease in a view";
  }
  if (claim.state == ClaimState::failed && moment.now >= claim.result_until) return nullptr;
  if (seen.result_expired != claim.result_expired) return "result_expired in a view";
  const Ms ends = std::min(claim.unique_until, state.due);
  const Ms unique = std::max<Ms>(ends - moment.now, 0);
  if (seen.unique_remaining.count() != unique) return "unique in a view";
  const std::string& result = claim.result_expired ? std::string{} : claim.result;
  return seen.result == result ? nullptr : "result in a view";
}

Complaint step_forget(KeyState& state, bool seen, const Moment& moment) {
  pass_time(state, moment.now);
  if (seen != claim_is_there(state)) return "forget found the wrong thing";
  remove(state);
  return nullptr;
}

Complaint step_resolve(KeyState& state, const Policy& policy, Resolution resolution, Bytes result,
                       bool seen, const Moment& moment) {
  pass_time(state, moment.now);
  const bool held = claim_is_there(state) && state.claim.state == ClaimState::held;
  if (seen != held) return "resolve found the wrong thing";
  if (!held) return nullptr;
  if (resolution == Resolution::released) {
    if (!policy.issued) {
      remove(state);
      return nullptr;
    }
    become_vacant(state, policy, state.claim.attempts - 1, moment.now);
    state.version = 0;
    return nullptr;
  }
  become_done(state, policy, result, moment.now);
  state.version = 0;
  return nullptr;
}

Complaint step_shown(KeyState& state, const Mutation& shown, std::uint32_t session, Ms now) {
  if (!alive(state, now)) {
    // What has ended may still be shown until it is swept: the reader sees its due.
    return to_ms(shown.due) <= now ? nullptr : "a record is shown that is not there";
  }
  if (shown.kind != state.kind) return "kind of a shown record";
  if (to_ms(shown.due) != state.due) return "due of a shown record";
  pass_time(state, now);
  if (const Complaint complaint = take_own_version(state, shown.version)) return complaint;
  if (state.kind == Kind::string) {
    return shown.value == state.value ? nullptr : "value of a shown record";
  }
  if (!shown.claim) return "a claim is shown without its facts";
  return same_claim(state.claim, *shown.claim, session, now) ? nullptr : "facts of a shown claim";
}

Complaint step_not_shown(const KeyState& state, Ms now) {
  return alive(state, now) ? "a live record is not shown" : nullptr;
}

}  // namespace semel::proofs
