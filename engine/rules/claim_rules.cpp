// See claim_rules.hpp. Boundaries: a time that is reached is over (now >= until).
#include "engine/rules/claim_rules.hpp"

#include <algorithm>
#include <cstring>

#ifndef XXH_INLINE_ALL  // the build sets it
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace semel::engine {
namespace {

using ResultDigest = std::array<std::uint8_t, 16>;

[[nodiscard]] ResultDigest digest_of(Bytes result) noexcept {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(result.data(), result.size()));
  ResultDigest digest;
  static_assert(sizeof canonical.digest == sizeof digest);
  std::memcpy(digest.data(), canonical.digest, sizeof digest);
  return digest;
}

/// The digest is made when the bytes go, not when they come: a completion that is never trimmed
/// never pays for it, and while the bytes are there comparing them is exact.
[[nodiscard]] bool same_result(const ClaimRecord& record, Bytes result) noexcept {
  if (record.result_expired) return record.result_digest == digest_of(result);
  return record.result == result;
}

/// Not finished: its owner may still end it.
[[nodiscard]] bool is_open(const ClaimRecord& record) noexcept {
  return record.state == ClaimState::held || record.state == ClaimState::in_doubt;
}

/// An owner in doubt has given its lease up.
[[nodiscard]] bool lease_over(const ClaimRecord& record, const ClaimFacts& facts) noexcept {
  return record.state == ClaimState::in_doubt || facts.owner_dead ||
         facts.now >= record.lease_until;
}

[[nodiscard]] bool result_over(const ClaimRecord& record, Timestamp now) noexcept {
  return record.result_expired || now >= record.result_until;
}

enum class Found : std::uint8_t { absent, claim, wrong_kind };

/// Reads `live`; `record` is meant when claim (any stored state but vacant), and holds the
/// attempts of a vacant record when absent.
[[nodiscard]] Found read(const RecordView* live, ClaimRecord& record) noexcept {
  if (live == nullptr) return Found::absent;
  if (live->kind != Kind::claim || !decode(live->value, record)) return Found::wrong_kind;
  const bool there = record.state != ClaimState::vacant && record.state != ClaimState::absent;
  return there ? Found::claim : Found::absent;
}

[[nodiscard]] Decision store(const ClaimRecord& record, Timestamp due, Scratch& scratch) {
  return {
      .action = Action::store, .kind = Kind::claim, .due = due, .value = encode(record, scratch)};
}

constexpr Decision erase{.action = Action::erase, .kind = Kind::claim, .due = no_end, .value = {}};

/// How long a key that is free again is remembered. What was issued for longer lives as long as it
/// was issued for: while it is held, unique_until is that end.
[[nodiscard]] Timestamp given_back_until(const ClaimRecord& record, const Policy& policy,
                                         Timestamp when) noexcept {
  return std::max(when + policy.attempts_ttl, record.unique_until);
}

/// A record that a policy with doubt holds must not end by itself: its end would be a second run.
[[nodiscard]] Timestamp held_due(const ClaimRecord& record, const Policy& policy) noexcept {
  if (policy.on_lease_end == Policy::OnLeaseEnd::in_doubt) return no_end;
  return given_back_until(record, policy, record.lease_until);
}

/// `record` is the one read, and becomes the one stored: these are too large to be copied about.
[[nodiscard]] Decision store_done(ClaimRecord& record, Bytes result, const Policy& policy,
                                  Timestamp now, Scratch& scratch, bool drop = false) {
  record.state = ClaimState::done;
  record.session = 0;
  record.lease_until = Timestamp{};
  record.claim_id.reset();
  record.result = result;
  record.result_until = now + policy.result_ttl;
  record.unique_until = now + std::max(policy.unique_ttl, policy.result_ttl);
  if (drop) {  // as after the end of its time: a digest, for the owner who says it again
    record.result_digest = digest_of(result);
    record.result = {};
    record.result_expired = true;
  }
  return store(record, record.unique_until, scratch);
}

[[nodiscard]] Decision store_failed(ClaimRecord& record, Bytes failure, bool poison,
                                    const Policy& policy, Timestamp now, Scratch& scratch) {
  record.state = ClaimState::failed;
  record.poison = poison;
  record.session = 0;
  record.lease_until = Timestamp{};
  record.claim_id.reset();
  record.result = failure;
  record.result_until = now + policy.failure_ttl;
  record.unique_until = record.result_until;
  return store(record, record.unique_until, scratch);
}

/// Must not end by itself: its end would be a second run.
[[nodiscard]] Decision store_doubt(ClaimRecord& record, Bytes known, Scratch& scratch) {
  record.state = ClaimState::in_doubt;
  record.session = 0;
  record.lease_until = Timestamp{};
  record.claim_id.reset();
  record.result = known;
  return store(record, no_end, scratch);
}

void reset(ClaimOutcome& outcome) noexcept {
  outcome.answer = ClaimAnswer::busy;
  outcome.error = ErrorCode::ok;
  outcome.takeover = false;
  outcome.result_expired = false;
  outcome.poison = false;
  outcome.attempt = 0;
  outcome.epoch = 0;
  outcome.remaining = Millis{0};
  outcome.retry_after = Millis{0};
  outcome.window_start_unix_ms.reset();
  outcome.window_end_unix_ms.reset();
  outcome.owner.clear();
  outcome.result.clear();
}

/// Nobody has it, and it can be claimed.
[[nodiscard]] Decision store_vacant(std::uint32_t attempts, Epoch epoch, Timestamp due,
                                    Scratch& scratch) {
  ClaimRecord vacant;
  vacant.state = ClaimState::vacant;
  vacant.attempts = attempts;
  vacant.epoch = epoch;
  return store(vacant, due, scratch);
}

/// As if `record` had never been granted; what was issued can be claimed again.
[[nodiscard]] Decision give_back(const ClaimRecord& record, const Policy& policy, Timestamp now,
                                 Scratch& scratch) {
  if (!policy.issued) return erase;
  return store_vacant(record.attempts - 1, record.epoch, given_back_until(record, policy, now),
                      scratch);
}

/// Nobody goes before those who wait.
[[nodiscard]] Decision queue_up(const Policy& policy, ClaimOutcome& outcome) noexcept {
  outcome.answer = ClaimAnswer::in_flight;
  outcome.retry_after = policy.retry_after_max;
  return {};
}

/// Grants after `record.attempts` earlier grants, or ends the matter as poison.
[[nodiscard]] Decision grant(ClaimRecord& record, const ClaimRequest& request, const Policy& policy,
                             const ClaimFacts& facts, ClaimOutcome& outcome, Scratch& scratch) {
  if (policy.attempts_max != 0 && record.attempts >= policy.attempts_max) {
    outcome.answer = ClaimAnswer::kept_failure;
    outcome.poison = true;
    outcome.attempt = record.attempts;
    return store_failed(record, {}, true, policy, facts.now, scratch);
  }
  record.state = ClaimState::held;
  ++record.attempts;
  record.epoch = facts.candidate;
  record.session = facts.session;
  record.lease_until = facts.now + request.lease.value_or(policy.lease);
  // A taker-over that gives no fingerprint must not switch off the check for those who do.
  if (request.fingerprint.algorithm != 0) record.fingerprint = request.fingerprint;
  record.claim_id = request.claim_id;
  record.owner = request.owner;
  outcome.answer = ClaimAnswer::granted;
  outcome.attempt = record.attempts;
  outcome.epoch = record.epoch;
  return store(record, held_due(record, policy), scratch);
}

/// The window is half open, (start, now]: work first sent exactly `window` ago may have had its
/// record end in this very millisecond, so it must not run again.
[[nodiscard]] bool outside_window(const ClaimRequest& request, const Policy& policy,
                                  const ClaimFacts& facts, ClaimOutcome& outcome) noexcept {
  if (!request.first_sent_unix_ms) return false;
  const std::int64_t first_sent = *request.first_sent_unix_ms;
  const std::int64_t start = facts.unix_now - policy.window.count();
  if (policy.window != Millis{0} && first_sent <= start) {
    outcome.answer = ClaimAnswer::too_old;
    outcome.window_start_unix_ms = start;
    return true;
  }
  const std::int64_t end = facts.unix_now + policy.ahead.count();
  if (policy.ahead == Millis{0} || first_sent <= end) return false;
  outcome.answer = ClaimAnswer::too_new;
  outcome.window_end_unix_ms = end;
  return true;
}

[[nodiscard]] Decision claim_held(ClaimRecord& record, Timestamp due, const ClaimRequest& request,
                                  const Policy& policy, ClaimFacts& facts, ClaimOutcome& outcome,
                                  Scratch& scratch) {
  outcome.attempt = record.attempts;
  if (!lease_over(record, facts)) {
    outcome.answer = ClaimAnswer::in_flight;
    outcome.remaining = record.lease_until - facts.now;
    outcome.retry_after = std::min(outcome.remaining, policy.retry_after_max);
    outcome.owner = record.owner;
    facts.held_until = std::min(record.lease_until, due);  // EXPIRE may have set an earlier end
    facts.held_session = record.session;
    return {};
  }
  if (record.state == ClaimState::in_doubt || policy.on_lease_end == Policy::OnLeaseEnd::in_doubt) {
    outcome.answer = ClaimAnswer::in_doubt;
    outcome.owner = record.owner;
    return {};
  }
  if (facts.others_first) return queue_up(policy, outcome);
  const Decision decision = grant(record, request, policy, facts, outcome, scratch);
  outcome.takeover = outcome.answer == ClaimAnswer::granted;
  return decision;
}

}  // namespace

ErrorCode check_claim(const ClaimRequest& request) noexcept {
  if (request.lease && (*request.lease < Millis{1} || *request.lease > limits::ttl_max)) {
    return ErrorCode::bad_option;
  }
  if (request.owner.size() > limits::owner_label_max) return ErrorCode::bad_option;
  return ErrorCode::ok;
}

ErrorCode check_owner(OwnerVerb verb, const OwnerCall& call) noexcept {
  if (verb != OwnerVerb::renew || !call.lease) return ErrorCode::ok;
  const bool in_range = *call.lease >= Millis{1} && *call.lease <= limits::ttl_max;
  return in_range ? ErrorCode::ok : ErrorCode::bad_option;
}

Decision decide_claim(const RecordView* live, const ClaimRequest& request, const Policy& policy,
                      ClaimFacts& facts, ClaimOutcome& outcome, Scratch& scratch) {
  reset(outcome);
  ClaimRecord record;
  switch (read(live, record)) {
    case Found::wrong_kind:
      outcome.error = ErrorCode::wrong_kind;
      return {};
    case Found::absent:
      // Only a key that nothing is remembered about can be too old: a record answers for itself.
      if (policy.issued && record.state != ClaimState::vacant) {
        outcome.answer = ClaimAnswer::unknown;
        return {};
      }
      if (outside_window(request, policy, facts, outcome)) return {};
      if (facts.others_first) return queue_up(policy, outcome);
      if (policy.issued) record.unique_until = live->due;
      return grant(record, request, policy, facts, outcome, scratch);
    case Found::claim:
      break;
  }

  // A grant whose lease is over is not given again: the next claim could take it over at once.
  if (record.state == ClaimState::held && request.claim_id && record.claim_id == request.claim_id &&
      !lease_over(record, facts)) {
    outcome.answer = ClaimAnswer::regranted;
    outcome.epoch = record.epoch;
    outcome.attempt = record.attempts;
    outcome.remaining = record.lease_until - facts.now;
    return {};
  }

  const Fingerprint& asked = request.fingerprint;
  if (asked.algorithm != 0 && asked.algorithm == record.fingerprint.algorithm &&
      asked.digest != record.fingerprint.digest) {
    outcome.answer = ClaimAnswer::mismatch;  // and nothing else: not even how often it was tried
    return {};
  }

  if (is_open(record)) {
    return claim_held(record, live->due, request, policy, facts, outcome, scratch);
  }
  outcome.attempt = record.attempts;
  if (record.state == ClaimState::failed) {
    outcome.answer = ClaimAnswer::kept_failure;
    outcome.poison = record.poison;
  } else {
    outcome.answer = ClaimAnswer::replay;
    outcome.result_expired = result_over(record, facts.now);
  }
  if (!outcome.result_expired) outcome.result = record.result;
  return {};
}

namespace {

void answer(OwnerOutcome& outcome, OwnerAnswer what) noexcept {
  outcome.answer = what;
}

/// The work is another owner's now, or was never this one's.
void answer_other_epoch(OwnerVerb verb, const ClaimRecord& record, const OwnerCall& call,
                        Timestamp now, OwnerOutcome& outcome) {
  if (verb == OwnerVerb::release) return answer(outcome, OwnerAnswer::not_owner);
  // An epoch from after this record: the record of that grant is lost, and so is its right.
  if (call.epoch > record.epoch) return answer(outcome, OwnerAnswer::unknown);
  answer(outcome, OwnerAnswer::stale_owner);
  if (verb == OwnerVerb::complete && record.state == ClaimState::done &&
      !result_over(record, now)) {
    outcome.has_result = true;
    outcome.result = record.result;
  }
}

/// The work is finished, by this very owner.
void answer_finished(OwnerVerb verb, const ClaimRecord& record, const OwnerCall& call,
                     const Policy& policy, OwnerOutcome& outcome) noexcept {
  if (verb == OwnerVerb::release) return answer(outcome, OwnerAnswer::not_owner);
  const bool done_again = verb == OwnerVerb::complete && record.state == ClaimState::done;
  // Who doubts what it has kept as failed says something else than before.
  const bool doubts = call.on_failure.value_or(policy.on_failure) == Policy::OnFailure::in_doubt;
  const bool failed_again =
      verb == OwnerVerb::fail && record.state == ClaimState::failed && !record.poison && !doubts;
  const bool same =
      (done_again && call.keeping == ResultKeeping::none) || same_result(record, call.payload);
  const bool again = (done_again || failed_again) && same;
  answer(outcome, again ? OwnerAnswer::ok : OwnerAnswer::conflict);
}

[[nodiscard]] Decision fail_held(ClaimRecord& record, const OwnerCall& call, const Policy& policy,
                                 Timestamp now, Scratch& scratch) {
  const Policy::OnFailure then = call.on_failure.value_or(policy.on_failure);
  if (then == Policy::OnFailure::in_doubt) return store_doubt(record, call.payload, scratch);
  if (then == Policy::OnFailure::keep) {
    return store_failed(record, call.payload, false, policy, now, scratch);
  }
  if (policy.attempts_max == 0 && !policy.issued) return erase;
  // The attempts outlive the release, or a work item that always fails would run for ever.
  return store_vacant(record.attempts, record.epoch, given_back_until(record, policy, now),
                      scratch);
}

}  // namespace

Decision decide_owner(OwnerVerb verb, const RecordView* live, const OwnerCall& call,
                      const Policy& policy, const ClaimFacts& facts, OwnerOutcome& outcome,
                      Scratch& scratch) {
  outcome.answer = OwnerAnswer::unknown;
  outcome.error = ErrorCode::ok;
  outcome.late = false;
  outcome.dropped = ErrorCode::ok;
  outcome.has_result = false;
  outcome.result.clear();

  ClaimRecord record;
  const Found found = read(live, record);
  if (found == Found::wrong_kind) outcome.error = ErrorCode::wrong_kind;
  if (found != Found::claim) return {};
  if (record.epoch != call.epoch) {
    answer_other_epoch(verb, record, call, facts.now, outcome);
    return {};
  }
  if (!is_open(record)) {
    answer_finished(verb, record, call, policy, outcome);
    return {};
  }

  if (verb == OwnerVerb::fail && record.state == ClaimState::in_doubt &&
      call.on_failure.value_or(policy.on_failure) == Policy::OnFailure::in_doubt) {
    answer(outcome, OwnerAnswer::ok);  // said again: its first word stays
    return {};
  }
  const bool late = lease_over(record, facts);
  const bool refuse =
      late && (verb == OwnerVerb::renew || (verb == OwnerVerb::complete && policy.strict));
  if (refuse) {
    answer(outcome, OwnerAnswer::refused);
    return {};
  }
  answer(outcome, OwnerAnswer::ok);
  outcome.late = late;
  switch (verb) {
    case OwnerVerb::complete:
      return store_done(record, call.payload, policy, facts.now, scratch,
                        call.keeping == ResultKeeping::none);
    case OwnerVerb::fail:
      return fail_held(record, call, policy, facts.now, scratch);
    case OwnerVerb::renew:
      record.lease_until = facts.now + call.lease.value_or(policy.lease);
      return store(record, held_due(record, policy), scratch);
    case OwnerVerb::release:
      break;
  }
  return give_back(record, policy, facts.now, scratch);
}

Decision decide_issue(const RecordView* live, Millis ttl, Timestamp now, OperatorOutcome& outcome,
                      Scratch& scratch) {
  outcome = {};
  outcome.found = live != nullptr;
  ClaimRecord record;
  if (read(live, record) == Found::wrong_kind) outcome.error = ErrorCode::wrong_kind;
  if (live != nullptr) return {};
  return store_vacant(0, 0, now + ttl, scratch);
}

Decision decide_forget(const RecordView* live, OperatorOutcome& outcome) noexcept {
  outcome = {};
  ClaimRecord record;
  const Found found = read(live, record);
  outcome.found = found == Found::claim;
  if (found == Found::wrong_kind) {
    outcome.error = ErrorCode::wrong_kind;
    return {};
  }
  return live == nullptr ? Decision{} : erase;
}

Decision decide_resolve(const RecordView* live, Resolution resolution, Bytes result,
                        const Policy& policy, Timestamp now, OperatorOutcome& outcome,
                        Scratch& scratch) {
  outcome = {};
  ClaimRecord record;
  const Found found = read(live, record);
  if (found == Found::wrong_kind) outcome.error = ErrorCode::wrong_kind;
  if (found != Found::claim || !is_open(record)) return {};
  outcome.found = true;
  if (resolution == Resolution::released) return give_back(record, policy, now, scratch);
  return store_done(record, result, policy, now, scratch);
}

Decision trim(const RecordView& view, Timestamp now, Scratch& scratch) {
  ClaimRecord record;
  if (read(&view, record) != Found::claim || record.state != ClaimState::done) return {};
  if (record.result_expired || record.result.empty() || now < record.result_until) return {};
  record.result_digest = digest_of(record.result);
  record.result = {};
  record.result_expired = true;
  return store(record, view.due, scratch);
}

ClaimState state_of(const ClaimRecord& record, const Policy& policy, Timestamp now,
                    bool owner_dead) noexcept {
  if (record.state == ClaimState::vacant && !policy.issued) return ClaimState::absent;
  const bool in_doubt = record.state == ClaimState::held &&
                        policy.on_lease_end == Policy::OnLeaseEnd::in_doubt &&
                        lease_over(record, {.now = now, .owner_dead = owner_dead});
  return in_doubt ? ClaimState::in_doubt : record.state;
}

ErrorCode view_claim(const RecordView* live, const Policy& policy, const ClaimFacts& facts,
                     ClaimView& view) {
  view = {};
  ClaimRecord record;
  const Found found = read(live, record);
  if (found == Found::wrong_kind) return ErrorCode::wrong_kind;
  if (live == nullptr) return ErrorCode::ok;
  if (found == Found::absent) {
    view.state = state_of(record, policy, facts.now, false);
    if (view.state == ClaimState::absent) return ErrorCode::ok;
    view.attempts = record.attempts;
    view.unique_remaining = live->due - facts.now;
    return ErrorCode::ok;
  }

  const auto left = [&](Timestamp until) {
    return until > facts.now ? until - facts.now : Millis{0};
  };
  view.state = state_of(record, policy, facts.now, facts.owner_dead);
  view.poison = record.poison;
  view.attempts = record.attempts;
  view.epoch = record.epoch;
  view.fingerprint = record.fingerprint;
  view.owner = record.owner;
  if (record.state == ClaimState::held) {
    if (!facts.owner_dead) view.lease_remaining = left(record.lease_until);
    return ErrorCode::ok;
  }
  if (record.state == ClaimState::in_doubt) {
    view.result = record.result;
    return ErrorCode::ok;
  }
  view.result_expired = result_over(record, facts.now);
  view.unique_remaining = left(record.unique_until);
  if (!view.result_expired) {
    view.result_remaining = left(record.result_until);
    view.result = record.result;
  }
  return ErrorCode::ok;
}

}  // namespace semel::engine
