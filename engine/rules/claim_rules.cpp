#include "engine/rules/claim_rules.hpp"

#include <algorithm>
#include <new>

#include "engine/rules/claim_states.hpp"

namespace semel::engine {
namespace {

void reset(ClaimOutcome& outcome) noexcept {
  outcome.answer = ClaimAnswer::busy;
  outcome.error = ErrorCode::ok;
  outcome.takeover = false;
  outcome.result_expired = false;
  outcome.poison = false;
  each_row<claim_numbers>([&](auto number) { outcome.*number.row.answered = 0; });
  outcome.epoch = 0;
  outcome.remaining = Millis{0};
  outcome.retry_after = Millis{0};
  outcome.window_start_unix_ms.reset();
  outcome.window_end_unix_ms.reset();
  outcome.owner.clear();
  outcome.result.clear();
}

/// Whether newcomers queue behind waiters, and this one does.
[[nodiscard]] bool queues_up(const Policy& policy, const ClaimFacts& facts,
                             ClaimOutcome& outcome) noexcept {
  if (!facts.others_first) return false;
  outcome.answer = ClaimAnswer::in_flight;
  outcome.retry_after = policy.retry_after_max;
  return true;
}

void show_numbers(const ClaimRecord& record, ClaimOutcome& outcome) noexcept {
  each_row<claim_numbers>(
      [&](auto number) { outcome.*number.row.answered = record.*number.row.kept; });
}

/// Grants after `record.attempts` earlier grants, or ends the matter as poison.
[[nodiscard]] Decision grant(ClaimRecord& record, const ClaimRequest& request, const Policy& policy,
                             const ClaimFacts& facts, ClaimOutcome& outcome, Scratch& scratch) {
  if (policy.attempts_max != 0 && record.attempts >= policy.attempts_max) {
    outcome.answer = ClaimAnswer::kept_failure;
    outcome.poison = true;
    show_numbers(record, outcome);
    return store_failed(record, {}, true, policy, facts.now, scratch);
  }
  record.state = ClaimState::held;
  ++record.attempts;
  record.epoch = facts.candidate;
  record.session = facts.session;
  record.lease_until = lease_end_of(request, policy, facts.now);
  // A taker-over that gives no fingerprint must not switch off the check for those who do.
  if (request.fingerprint.algorithm != 0) record.fingerprint = request.fingerprint;
  record.claim_id = request.claim_id;
  each_row<claim_labels>([&](auto label) { record.*label.row.kept = request.*label.row.given; });
  outcome.answer = ClaimAnswer::granted;
  outcome.epoch = record.epoch;
  show_numbers(record, outcome);
  return store_claim(record, held_due(record, policy), scratch);
}

/// grant() of a key that nothing is known of. To a caller that says nothing else, as most do, its
/// bytes are written without a record of all that a claim can have.
[[nodiscard]] Decision grant_first(const ClaimRequest& request, const Policy& policy,
                                   const ClaimFacts& facts, ClaimOutcome& outcome,
                                   Scratch& scratch) {
  const Timestamp lease_until = lease_end_of(request, policy, facts.now);
  if (!is_bare(request) || lease_until == Timestamp{}) [[unlikely]] {
    ClaimRecord record;
    return grant(record, request, policy, facts, outcome, scratch);
  }
  outcome.answer = ClaimAnswer::granted;
  outcome.epoch = facts.candidate;
  each_row<claim_numbers>([&](auto number) { outcome.*number.row.answered = number.row.usual; });
  const std::size_t bytes = granted_bytes(facts.session);
  char* const to = scratch.reserve(bytes);
  write_granted(to, facts.candidate, facts.session, lease_until);
  return {.action = Action::store,
          .kind = Kind::claim,
          .due = held_due(lease_until, Timestamp{}, policy),
          .value = {to, bytes}};
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

/// Of a key without a claim. False: the outcome says why. Only a key that nothing is remembered
/// about can be too old: a record answers for itself.
[[nodiscard]] bool may_grant(const ClaimRequest& request, const Policy& policy,
                             const ClaimFacts& facts, ClaimOutcome& outcome) noexcept {
  return !outside_window(request, policy, facts, outcome) && !queues_up(policy, facts, outcome);
}

[[nodiscard]] Decision claim_held(ClaimRecord& record, Timestamp due, const ClaimRequest& request,
                                  const Policy& policy, ClaimFacts& facts, ClaimOutcome& outcome,
                                  Scratch& scratch) {
  show_numbers(record, outcome);
  if (!lease_over(record, facts.now, facts.owner_dead)) {
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
  if (queues_up(policy, facts, outcome)) return {};
  const Decision decision = grant(record, request, policy, facts, outcome, scratch);
  outcome.takeover = outcome.answer == ClaimAnswer::granted;
  return decision;
}

}  // namespace

ErrorCode check_owner(OwnerVerb verb, const OwnerCall& call) noexcept {
  if (verb != OwnerVerb::renew || !call.lease) return ErrorCode::ok;
  const bool in_range = *call.lease >= Millis{1} && *call.lease <= limits::ttl_max;
  return in_range ? ErrorCode::ok : ErrorCode::bad_option;
}

Decision decide_claim(const RecordView* live, const ClaimRequest& request, const Policy& policy,
                      ClaimFacts& facts, ClaimOutcome& outcome, Scratch& scratch) {
  reset(outcome);
  if (live == nullptr) {
    if (policy.issued) {
      outcome.answer = ClaimAnswer::unknown;
      return {};
    }
    if (!may_grant(request, policy, facts, outcome)) return {};
    return grant_first(request, policy, facts, outcome, scratch);
  }
  ClaimRecord record;
  switch (read_claim(live, record)) {
    case ClaimFound::wrong_kind:
      outcome.error = ErrorCode::wrong_kind;
      return {};
    case ClaimFound::absent:
      if (policy.issued && record.state != ClaimState::vacant) {
        outcome.answer = ClaimAnswer::unknown;
        return {};
      }
      if (!may_grant(request, policy, facts, outcome)) return {};
      if (policy.issued) record.unique_until = live->due;
      return grant(record, request, policy, facts, outcome, scratch);
    case ClaimFound::claim:
      break;
  }

  // A grant whose lease is over is not given again: the next claim could take it over at once.
  if (record.state == ClaimState::held && request.claim_id && record.claim_id == request.claim_id &&
      !lease_over(record, facts.now, facts.owner_dead)) {
    outcome.answer = ClaimAnswer::regranted;
    outcome.epoch = record.epoch;
    show_numbers(record, outcome);
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
  show_numbers(record, outcome);
  if (record.state == ClaimState::failed) {
    outcome.answer = ClaimAnswer::kept_failure;
    outcome.poison = record.poison;
    outcome.result = record.result;
    return {};
  }
  outcome.answer = ClaimAnswer::replay;
  outcome.result_expired = result_over(record, facts.now);
  if (!outcome.result_expired) outcome.result = record.result;
  if (!slides(record, live->due, policy, facts.now)) [[likely]]
    return {};
  const Timestamp due = slide(record, live->due, policy, facts.now);
  try {
    return store_claim(record, due, scratch);
  } catch (const std::bad_alloc&) {  // the answer stands; only the end stays
    Decision none{.action = Action::store, .kind = Kind::claim, .due = due, .value = {}};
    none.no_memory = true;
    return none;
  }
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
  // A doubt about a failure that was kept is a new statement, not a repetition.
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
  if (policy.attempts_max == 0 && !policy.issued && record.memos.empty()) return erase_claim;
  // The attempts outlive the release, or a work item that always fails would run for ever; and so
  // do the memos, or what its steps have brought about would be there twice.
  return store_vacant(record.attempts, record.epoch, record.memos,
                      given_back_until(record, policy, now), scratch);
}

/// Answers the owner of an open claim. True: it comes too late.
[[nodiscard]] bool is_refused(OwnerVerb verb, const Policy& policy, bool late,
                              OwnerOutcome& outcome) noexcept {
  const bool refuses =
      late && (verb == OwnerVerb::renew || (verb == OwnerVerb::complete && policy.strict));
  answer(outcome, refuses ? OwnerAnswer::refused : OwnerAnswer::ok);
  outcome.late = late && !refuses;
  return refuses;
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
  const DoneEnds ends = done_ends_of(policy, facts.now);
  if (HeldClaim held; verb == OwnerVerb::complete && live != nullptr && live->kind == Kind::claim &&
                      is_plain_completion(live->value, call, ends, held)) [[likely]] {
    const bool late = lease_over(held.lease_until, facts.now, facts.owner_dead);
    if (is_refused(verb, policy, late, outcome)) return {};
    const std::size_t bytes = done_bytes(held, ends, call.payload.size());
    char* const to = scratch.reserve(bytes);
    write_done(to, held, ends, call.payload);
    return {.action = Action::store,
            .kind = Kind::claim,
            .due = ends.due,
            .value = {to, bytes},
            .gives_up = true};
  }

  ClaimRecord record;
  const ClaimFound found = read_claim(live, record);
  if (found == ClaimFound::wrong_kind) outcome.error = ErrorCode::wrong_kind;
  if (found != ClaimFound::claim) return {};
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
  const bool late = lease_over(record, facts.now, facts.owner_dead);
  if (is_refused(verb, policy, late, outcome)) return {};
  switch (verb) {
    case OwnerVerb::complete:
      return giving_up(store_done(record, call.payload, policy, facts.now, scratch,
                                  call.keeping == ResultKeeping::none));
    case OwnerVerb::fail:
      return giving_up(fail_held(record, call, policy, facts.now, scratch));
    case OwnerVerb::renew:
      record.lease_until = facts.now + Millis{call.lease.value_or(policy.lease)};
      return store_claim(record, held_due(record, policy), scratch);
    case OwnerVerb::release:
      break;
  }
  // Work that was not tried does not count as an attempt, and earlier attempts stay counted.
  if (facts.counts_tries && policy.attempts_max != 0 && record.attempts > 1 && !policy.issued) {
    return giving_up(store_vacant(record.attempts - 1, record.epoch, record.memos,
                                  given_back_until(record, policy, facts.now), scratch));
  }
  return giving_up(give_back(record, policy, facts.now, scratch));
}

Decision trim(const RecordView& view, Timestamp now, Scratch& scratch) {
  ClaimRecord record;
  if (read_claim(&view, record) != ClaimFound::claim || !trim(record, now)) return {};
  return store_claim(record, view.due, scratch);
}

bool trim(ClaimRecord& record, Timestamp now) noexcept {
  if (record.state != ClaimState::done || record.result_expired) return false;
  if (record.result.empty() || now < record.result_until) return false;
  record.result_digest = result_digest_of(record.result);
  record.result = {};
  record.result_expired = true;
  return true;
}

ClaimState state_of(const ClaimRecord& record, const Policy& policy, Timestamp now,
                    bool owner_dead) noexcept {
  if (record.state == ClaimState::vacant && !policy.issued) return ClaimState::absent;
  const bool in_doubt = record.state == ClaimState::held &&
                        policy.on_lease_end == Policy::OnLeaseEnd::in_doubt &&
                        lease_over(record, now, owner_dead);
  return in_doubt ? ClaimState::in_doubt : record.state;
}

}  // namespace semel::engine
