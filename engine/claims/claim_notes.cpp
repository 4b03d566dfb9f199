#include "engine/claims/claim_notes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/assert.hpp"
#include "engine/decisions/claim_counts.hpp"
#include "engine/decisions/decision_write.hpp"
#include "engine/rules/claim_states.hpp"

namespace semel::engine {
namespace {

/// A call that was not valid, or that another decides, is no decision.
[[gnu::noinline]] bool is_decision_failed_by(ErrorCode error) noexcept {
  switch (error) {
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

inline bool is_decision(ErrorCode error) noexcept {
  return error == ErrorCode::ok || is_decision_failed_by(error);
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

namespace {

/// `own`: of the client; null: none. The met owner fits.
[[gnu::always_inline]] inline void write_labels(DecisionLog::Place& place, Bytes owner,
                                                const ThreadContext* own,
                                                Bytes met_owner) noexcept {
  char* to = place.text;
  const std::size_t owner_size = std::min(owner.size(), limits::owner_label_max);
  place.owner_size = static_cast<std::uint8_t>(owner_size);
  if (owner_size != 0) [[unlikely]] {
    std::memcpy(to, owner.data(), owner_size);
    to += owner_size;
  }
  place.client_size = 0;
  if (own != nullptr) {
    // All of its bytes: cheaper than as many as it has.
    std::memcpy(to, own->client.data(), sizeof own->client);
    place.client_size = own->client_size;
    to += own->client_size;
  }
  place.met_owner_size = static_cast<std::uint8_t>(met_owner.size());
  if (!met_owner.empty()) [[unlikely]]
    std::memcpy(to, met_owner.data(), met_owner.size());
}

/// What note_grant() and note_completion() write.
struct FillUsual {
  const ThreadContext& own;
  Timestamp now;
  Epoch epoch;
  DecisionNumbers numbers;
  std::uint8_t answer;
  Millis span;
  MetClaim met;

  [[gnu::always_inline]] void operator()(DecisionLog::Place& place) const noexcept {
    place.first_ms = place.last_ms = now.time_since_epoch().count();
    place.epoch = epoch;
    place.met_epoch = met.epoch;
    place.met_lease_ms = met.lease_until.time_since_epoch().count();
    place.span_ms = span.count();
    place.numbers = numbers;
    place.error = static_cast<std::uint16_t>(ErrorCode::ok);
    place.answer = answer;
    place.flags = 0;
    place.met = met.state;
    write_labels(place, {}, &own, met.owner);
  }
};

constexpr DecisionNumbers first_grant_numbers() noexcept {
  DecisionNumbers numbers{};
  each_row<claim_numbers>([&](auto number) { numbers[number.index] = number.row.usual; });
  return numbers;
}

[[gnu::noinline]] void note_usual(DecisionLog& log, std::uint64_t hash, DecisionCall call,
                                  const FillUsual& fill) noexcept {
  log.add_here(log.bucket_of(hash), hash, call, true, fill);
}

}  // namespace

void note_grant(DecisionLog& log, const ThreadContext& own, std::uint64_t hash, Timestamp now,
                Epoch epoch, Millis lease) noexcept {
  note_usual(log, hash, DecisionCall::claim,
             {.own = own,
              .now = now,
              .epoch = epoch,
              .numbers = first_grant_numbers(),
              .answer = static_cast<std::uint8_t>(ClaimAnswer::granted),
              .span = lease,
              .met = {}});
}

void note_completion(DecisionLog& log, const ThreadContext& own, std::uint64_t hash, Timestamp now,
                     const HeldClaim& held) noexcept {
  // A record from a disk may have more than a label's bytes.
  note_usual(log, hash, DecisionCall::complete,
             {.own = own,
              .now = now,
              .epoch = held.epoch,
              .numbers = {},
              .answer = static_cast<std::uint8_t>(OwnerAnswer::ok),
              .span = Millis{0},
              .met = {.state = ClaimState::held,
                      .epoch = held.epoch,
                      .lease_until = held.lease_until,
                      .owner = held.owner().substr(0, limits::owner_label_max)}});
}

void ClaimNote::read_record(const RecordView& live, bool owner_dead) noexcept {
  if (owner_dead) met_.flags = DecisionFacts::owner_dead;
  Timestamp lease_until;
  if (live.kind == Kind::claim && read_plain_lease(live.value, met_.epoch, lease_until)) {
    met_.lease_ms = lease_until.time_since_epoch().count();
    met_.state = ClaimState::held;
    return;
  }
  MetClaim met;
  if (live.kind != Kind::claim || !read_met(live.value, met)) return;
  met_.epoch = met.epoch;
  met_.lease_ms = met.lease_until.time_since_epoch().count();
  met_.state = met.state;
  // A record from a disk may have more than a label's bytes.
  met_.owner_size = static_cast<std::uint8_t>(std::min(met.owner.size(), sizeof met_owner_));
  if (met_.owner_size != 0) [[unlikely]]
    std::memcpy(met_owner_, met.owner.data(), met_.owner_size);
}

[[gnu::always_inline]] inline void ClaimNote::fill(DecisionLog::Place& place, ErrorCode error,
                                                   Bytes owner, bool arrives) const noexcept {
  place.first_ms = place.last_ms = context_.now.time_since_epoch().count();
  place.met_epoch = met_.epoch;
  place.met_lease_ms = met_.lease_ms;
  place.met = met_.state;
  place.error = static_cast<std::uint16_t>(error);
  const ThreadContext* const own = arrives ? context_.impl.core().threads().try_context() : nullptr;
  write_labels(place, owner, own, {met_owner_, met_.owner_size});
}

void ClaimNote::add(const ClaimRequest& request, const ClaimOutcome& outcome,
                    bool arrives) const noexcept {
  if (!is_decision(outcome.error)) return;
  if (bucket_ == nullptr) [[unlikely]]
    return log_->miss();
  struct Fill {
    const ClaimNote& note;
    const ClaimRequest& request;
    const ClaimOutcome& outcome;
    bool arrives;

    [[gnu::always_inline]] void operator()(DecisionLog::Place& place) const noexcept {
      place.answer = static_cast<std::uint8_t>(outcome.answer);
      each_row<claim_numbers>(
          [&](auto number) { place.numbers[number.index] = outcome.*number.row.answered; });
      place.epoch = outcome.epoch;
      const Millis span = outcome.answer == ClaimAnswer::granted
                              ? Millis{request.lease.value_or(note.context_.policy.lease)}
                              : outcome.remaining;
      place.span_ms = span.count();
      unsigned flags = note.met_.flags;
      if (outcome.takeover) flags |= DecisionFacts::takeover;
      if (outcome.poison) flags |= DecisionFacts::poison;
      if (outcome.result_expired) flags |= DecisionFacts::dropped;
      place.flags = static_cast<std::uint8_t>(flags);
      note.fill(place, outcome.error, request.owner, arrives);
    }
  };
  const bool is_grant = outcome.answer == ClaimAnswer::granted;
  const bool becomes_poison = outcome.poison && met_.state != ClaimState::failed;
  log_->add_here(*bucket_, hash_, DecisionCall::claim, is_grant || becomes_poison,
                 Fill{*this, request, outcome, arrives});
}

void ClaimNote::add(OwnerVerb verb, const OwnerCall& call, const OwnerOutcome& outcome,
                    bool changed) const noexcept {
  if (!is_decision(outcome.error)) return;
  if (bucket_ == nullptr) [[unlikely]]
    return log_->miss();
  struct Fill {
    const ClaimNote& note;
    const OwnerCall& call;
    const OwnerOutcome& outcome;
    OwnerVerb verb;

    [[gnu::always_inline]] void operator()(DecisionLog::Place& place) const noexcept {
      place.answer = static_cast<std::uint8_t>(outcome.answer);
      place.numbers = {};
      place.epoch = call.epoch;
      place.span_ms = 0;
      unsigned flags = note.met_.flags;
      if (outcome.late) flags |= DecisionFacts::late;
      if (verb == OwnerVerb::complete && call.keeping == ResultKeeping::none) {
        flags |= DecisionFacts::dropped;
      }
      place.flags = static_cast<std::uint8_t>(flags);
      note.fill(place, outcome.error, {}, true);
    }
  };
  log_->add_here(*bucket_, hash_, call_of(verb), changed, Fill{*this, call, outcome, verb});
}

void ClaimNote::add(OperatorCall call, ErrorCode error, bool found) const noexcept {
  if (!is_decision(error)) return;
  DecisionFacts facts;
  facts.call = call.call;
  facts.answer = found ? 1 : 0;
  facts.flags = met_.flags;
  facts.changed = error == ErrorCode::ok && found != (call.call == DecisionCall::issue);
  facts.error = error;
  facts.at = context_.now;
  facts.met = met_.state;
  facts.met_epoch = met_.epoch;
  facts.met_lease_until = Timestamp{Millis{met_.lease_ms}};
  facts.met_owner = {met_owner_, met_.owner_size};
  if (call.is_done) facts.flags |= DecisionFacts::as_done;
  if (const ThreadContext* const own = context_.impl.core().threads().try_context())
    facts.client = {own->client.data(), own->client_size};
  log_->add(hash_, facts);
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
