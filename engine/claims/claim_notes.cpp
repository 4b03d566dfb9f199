#include "engine/claims/claim_notes.hpp"

#include <cstdint>

#include "engine/decisions/claim_counts.hpp"
#include "engine/rules/claim_states.hpp"

namespace semel::engine {
namespace {

/// A call that was not valid, or that another decides, is no decision.
bool is_decision(ErrorCode error) noexcept {
  switch (error) {
    case ErrorCode::ok:
    case ErrorCode::memory_full:
    case ErrorCode::waiters_full:
    case ErrorCode::section_held:
    case ErrorCode::refused:
    case ErrorCode::storage_failed:
    case ErrorCode::wrong_kind:
      return true;
    default:
      return false;
  }
}

DecisionCall call_of(OwnerVerb verb) noexcept {
  switch (verb) {
    case OwnerVerb::complete:
      return DecisionCall::complete;
    case OwnerVerb::fail:
      return DecisionCall::fail;
    case OwnerVerb::renew:
      return DecisionCall::renew;
    case OwnerVerb::release:
      break;
  }
  return DecisionCall::release;
}

ClaimCount count_of(const ClaimOutcome& outcome) noexcept {
  switch (outcome.answer) {
    case ClaimAnswer::granted:
      return outcome.takeover ? ClaimCount::takeover : ClaimCount::granted;
    case ClaimAnswer::replay:
      return ClaimCount::replay;
    case ClaimAnswer::in_flight:
      return ClaimCount::in_flight;
    case ClaimAnswer::mismatch:
      return ClaimCount::mismatch;
    case ClaimAnswer::in_doubt:
      return ClaimCount::in_doubt;
    case ClaimAnswer::too_old:
      return ClaimCount::too_old;
    case ClaimAnswer::busy:
      return ClaimCount::busy;
    case ClaimAnswer::kept_failure:
      return outcome.poison ? ClaimCount::poison : ClaimCount::other;
    default:
      break;
  }
  return ClaimCount::other;
}

}  // namespace

void ClaimNote::begin(Bytes table_key) noexcept {
  owner_dead_ = false;
  hash_ = context_.impl.core().keys().hash64_of(0, table_key);
  log_->fetch_bucket(hash_);
}

void ClaimNote::read_record(const RecordView* live, bool owner_dead) noexcept {
  met_ = {};
  if (live != nullptr && live->kind == Kind::claim) static_cast<void>(read_met(live->value, met_));
  owner_ = met_.owner;
  met_.owner = owner_.text();
  owner_dead_ = owner_dead;
  log_->fetch_place(hash_);
}

/// The facts that all decisions have.
DecisionFacts ClaimNote::facts() const noexcept {
  DecisionFacts facts;
  facts.at = context_.now;
  facts.met = met_.state;
  facts.met_epoch = met_.epoch;
  facts.met_lease_until = met_.lease_until;
  facts.met_owner = met_.owner;
  if (owner_dead_) facts.flags = DecisionFacts::owner_dead;
  return facts;
}

void ClaimNote::add(DecisionFacts& facts, bool arrives) const noexcept {
  const ThreadContext* const own = context_.impl.core().threads().try_context();
  if (own != nullptr && arrives) facts.client = {own->client.data(), own->client_size};
  log_->add(hash_, facts);
}

void ClaimNote::add(const ClaimRequest& request, const ClaimOutcome& outcome,
                    bool arrives) const noexcept {
  if (!is_decision(outcome.error)) return;
  DecisionFacts facts = this->facts();
  const bool is_grant = outcome.answer == ClaimAnswer::granted;
  facts.answer = static_cast<std::uint8_t>(outcome.answer);
  facts.error = outcome.error;
  facts.attempt = outcome.attempt;
  facts.epoch = outcome.epoch;
  facts.owner = request.owner;
  facts.span = is_grant ? Millis{request.lease.value_or(context_.policy.lease)} : outcome.remaining;
  const bool becomes_poison = outcome.poison && met_.state != ClaimState::failed;
  facts.changed = is_grant || becomes_poison;
  if (outcome.takeover) facts.flags |= DecisionFacts::takeover;
  if (outcome.poison) facts.flags |= DecisionFacts::poison;
  if (outcome.result_expired) facts.flags |= DecisionFacts::dropped;
  add(facts, arrives);
}

void ClaimNote::add(OwnerVerb verb, const OwnerCall& call, const OwnerOutcome& outcome,
                    bool changed) const noexcept {
  if (!is_decision(outcome.error)) return;
  DecisionFacts facts = this->facts();
  facts.call = call_of(verb);
  facts.answer = static_cast<std::uint8_t>(outcome.answer);
  facts.error = outcome.error;
  facts.epoch = call.epoch;
  facts.changed = changed;
  if (outcome.late) facts.flags |= DecisionFacts::late;
  if (verb == OwnerVerb::complete && call.keeping == ResultKeeping::none) {
    facts.flags |= DecisionFacts::dropped;
  }
  add(facts, true);
}

void ClaimNote::add(OperatorCall call, ErrorCode error, bool found) const noexcept {
  if (!is_decision(error)) return;
  DecisionFacts facts = this->facts();
  facts.call = call.call;
  facts.answer = found ? 1 : 0;
  facts.error = error;
  facts.changed = error == ErrorCode::ok && found != (call.call == DecisionCall::issue);
  if (call.is_done) facts.flags |= DecisionFacts::as_done;
  add(facts, true);
}

void count_by_namespace(ClaimCounts& counts, const Claims::Namespace& names,
                        const ThreadContext& own, const ClaimOutcome& outcome) noexcept {
  if (!is_decision(outcome.error) || outcome.error == ErrorCode::wrong_kind) return;
  ClaimCounts::Slot slot = names.count_slot();
  if (slot == 0) [[unlikely]] {
    slot = counts.slot_of(names.name());
    names.set_count_slot(slot);
  }
  // Contexts of threads lie some 128 bytes apart at least.
  counts.add(slot, count_of(outcome), reinterpret_cast<std::uintptr_t>(&own) / 128);
}

}  // namespace semel::engine
