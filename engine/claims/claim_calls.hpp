// The parts of the calls of semel/claims.hpp: a claim or an owner's call runs inside one update of
// the core, is counted, waits for its durability, and waiters are notified.
//
// A single claim is the hot path. What it runs through is here, and the templates are static: with
// one caller in a file the compiler puts all of a claim, down to the table, into one function. It
// does not do so with templates that other files may share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "engine/claims/claim_context.hpp"
#include "engine/claims/claim_notes.hpp"
#include "engine/rules/claim_rules.hpp"
#include "semel/claims.hpp"

namespace semel::engine {

// --- claims ---------------------------------------------------------------------------------

inline void refuse(ClaimOutcome& outcome, ErrorCode why) {
  outcome = {};
  outcome.answer = ClaimAnswer::busy;
  outcome.error = why;
}

[[nodiscard]] inline ErrorCode check(const ClaimRequest& request) noexcept {
  return request.key.empty() ? ErrorCode::key_empty : check_claim(request);
}

/// `update(decide, version)`, where a heap that is full is a limit like others: it throws before it
/// has changed anything.
template <class Update, class Decide>
[[nodiscard]] static ErrorCode or_memory_full(Update&& update, Decide&& decide, Version& version) {
  try {
    return update(decide, version);
  } catch (const std::bad_alloc&) {
    return ErrorCode::memory_full;
  }
}

/// What a claim may change: nothing; the end of done work, in a sliding window; all.
enum class Commit : std::uint8_t { nothing, ends, all };

/// Runs a claim through `update(decide, version)`. `note` is for the caller to write.
template <class Update>
static void run_claim(const ClaimContext& context, const ClaimRequest& request, ClaimFacts& facts,
                      ClaimNote& note, ClaimOutcome& outcome, Update&& update,
                      Commit commit = Commit::all) {
  if (const ErrorCode bad = check(request); bad != ErrorCode::ok) return refuse(outcome, bad);
  if (context.dropped()) [[unlikely]]
    return refuse(outcome, ErrorCode::namespace_dropped);
  const Policy& policy = context.policy;
  facts.session = request.session.value_or(context.impl.sessions().own());
  if (context.is_closed_session(request)) [[unlikely]]
    return refuse(outcome, ErrorCode::session_closed);
  const bool has_window =
      request.first_sent_unix_ms && (policy.window != Millis{0} || policy.ahead != Millis{0});
  Scratch scratch;
  Version version = 0;
  bool closing = false, is_session_over = false, is_sliding = false;
  ErrorCode error = or_memory_full(
      update,
      [&](const RecordView* live, const auto& next) -> Decision {
        facts.now = context.now;
        if (has_window) facts.unix_now = context.impl.unix_ms();
        facts.candidate = next();
        facts.owner_dead = context.owner_dead(live);
        note.read(live, facts.owner_dead);
        Decision decision = decide_claim(live, request, policy, facts, outcome, scratch);
        is_sliding = outcome.answer == ClaimAnswer::replay && decision.action == Action::store;
        const bool is_refused = context.refuses(decision);
        closing = is_refused && !is_sliding;
        // It may have been closed since this call began: a thread may stand still in between.
        is_session_over = context.is_closed_session(request);
        const bool commits = commit == Commit::all || (commit == Commit::ends && is_sliding);
        if (!commits || is_refused || is_session_over) decision.action = Action::keep;
        if (is_sliding) version = live->version;
        return decision;
      },
      version);
  // Where there is no room for a later end, the record answers as long as it is there. Replicas
  // must not part over it.
  const bool no_room = error == ErrorCode::memory_full || error == ErrorCode::refused ||
                       error == ErrorCode::value_too_long || error == ErrorCode::versions_exhausted;
  if (is_sliding && no_room && !context.impl.core().options().replicated) [[unlikely]]
    error = ErrorCode::ok;
  if (closing && error == ErrorCode::ok) [[unlikely]]
    error = ErrorCode::namespace_dropped;
  if (is_session_over && error == ErrorCode::ok) [[unlikely]]
    error = ErrorCode::session_closed;
  if (error != ErrorCode::ok) [[unlikely]] {
    refuse(outcome, error);
    if (error == ErrorCode::memory_full && policy.fail_open) {
      outcome.answer = ClaimAnswer::unprotected;
      outcome.error = ErrorCode::ok;
    }
    return;
  }
  outcome.version = version;
}

[[gnu::noinline]] inline void count_by_namespace(ClaimCounts& counts,
                                                 const Claims::Namespace& names,
                                                 const ThreadContext& own, ClaimAnswer answer) {
  ClaimOutcome outcome;
  outcome.answer = answer;
  count_by_namespace(counts, names, own, outcome);
}
/// count_answer() of a duplicate, or of a first grant.
[[gnu::always_inline]] inline void count_usual(Core& core, const Claims::Namespace& names,
                                               ThreadContext& own, ClaimAnswer answer) {
  own.bump(answer == ClaimAnswer::granted ? Count::claims_granted : Count::claims_duplicate);
  if (ClaimCounts* const counts = core.insight().claim_counts(); counts != nullptr) [[unlikely]]
    count_by_namespace(*counts, names, own, answer);
}

inline void count_answer(Engine::Impl& impl, const Claims::Namespace& names,
                         const ClaimOutcome& outcome) {
  if (ClaimCounts* const counts = impl.core().insight().claim_counts(); counts != nullptr)
      [[unlikely]]
    count_by_namespace(*counts, names, impl.thread_stats(), outcome);
  switch (outcome.answer) {
    case ClaimAnswer::granted:
      impl.thread_stats().bump(Count::claims_granted);
      if (outcome.takeover) impl.thread_stats().bump(Count::takeovers);
      break;
    case ClaimAnswer::in_flight:
    case ClaimAnswer::replay:
    case ClaimAnswer::kept_failure:
      impl.thread_stats().bump(Count::claims_duplicate);
      break;
    default:
      break;
  }
}

/// The end of a call: the answer stands when what it changed, or saw, is durable enough.
inline void confirm(const ClaimContext& context, ClaimOutcome& outcome) {
  if (outcome.error != ErrorCode::ok) return;  // errors need no durability wait
  const ErrorCode unknown = context.impl.confirm();
  if (unknown != ErrorCode::ok) [[unlikely]]
    refuse(outcome, unknown);
}
inline void confirm(const ClaimContext& context, OwnerOutcome& outcome) {
  if (outcome.error != ErrorCode::ok) return;
  const ErrorCode unknown = context.impl.confirm();
  if (unknown == ErrorCode::ok) [[likely]]
    return;
  outcome = {};
  outcome.answer = OwnerAnswer::refused;
  outcome.error = unknown;
}

// --- owner calls ----------------------------------------------------------------------------

[[nodiscard]] ErrorCode check(const ClaimContext& context, OwnerVerb verb, const OwnerCall& call);

/// `note`: begun before its first look by `update`.
template <class Update>
static void run_owner(const ClaimContext& context, OwnerVerb verb, const OwnerCall& call,
                      ClaimNote& note, OwnerOutcome& outcome, Update&& update) {
  ClaimFacts facts;
  bool changes = false;
  Scratch scratch;
  Version version = 0;
  ErrorCode error = check(context, verb, call);
  if (error == ErrorCode::ok) {
    error = or_memory_full(
        update,
        [&](const RecordView* live, const auto&) {
          facts.now = context.now;
          facts.owner_dead = context.owner_dead(live);
          // Asked where it counts.
          facts.counts_tries = context.policy.attempts_max == 0 || context.guards_claims();
          note.read(live, facts.owner_dead);
          const Decision decision =
              decide_owner(verb, live, call, context.policy, facts, outcome, scratch);
          changes = decision.action != Action::keep;
          return decision;
        },
        version);
  }
  if (error != ErrorCode::ok) [[unlikely]] {
    outcome = {};
    outcome.answer = OwnerAnswer::refused;
    outcome.error = error;
    return note.write(verb, call, outcome, false);
  }
  outcome.version = version;
  note.write(verb, call, outcome, changes && outcome.error == ErrorCode::ok);
  if (outcome.answer == OwnerAnswer::stale_owner) {
    context.impl.thread_stats().bump(Count::stale_owners);
  }
}

/// run_owner() on one key; a result that cannot be kept is dropped, where the call allows it.
void run_single(const ClaimContext& context, OwnerVerb verb, const OwnerCall& call, Bytes table_key,
                OwnerOutcome& outcome);

/// After an owner call that may have ended a claim. Costs one load if there are no waiters.
void notify_waiters(const ClaimContext& context, Bytes table_key) noexcept;

[[nodiscard]] OwnerOutcome owner_call(Engine& engine, const Claims::Namespace& names,
                                      OwnerVerb verb, const OwnerCall& call);

[[nodiscard]] Error key_error(ErrorCode code, Bytes key);

}  // namespace semel::engine
