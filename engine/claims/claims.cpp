// The calls of semel/claims.hpp on one key. The owner's are in claims_owner.cpp, batches in
// claims_batch.cpp, waiting in claims_wait.cpp, the operator's calls in claims_operator.cpp.
#include "semel/claims.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "engine/claims/claim_begin.hpp"
#include "engine/claims/claim_calls.hpp"
#include "engine/claims/logged_claims.hpp"
#include "engine/core/plain_change.hpp"
#include "engine/rules/claim_states.hpp"
#include "engine/rules/claim_view.hpp"

namespace semel {

using Context = engine::ClaimContext;
using engine::ClaimFacts;
using engine::Decision;
using engine::RecordView;
using engine::TableKey;

namespace {

/// False: the engine decides by itself.
[[gnu::noinline]] bool decided_by_log(Engine& engine, const Claims::Namespace& names,
                                      const ClaimRequest& request, ClaimOutcome& outcome) {
  const engine::LoggedCall log = engine::impl_of(engine).log_for_call();
  if (!log) return false;
  outcome = engine::claim_logged(*log, engine, names, engine::LoggedRequest{request});
  return true;
}

/// All of a claim that Claims::claim() leaves: of a thread in a section, or of one that waits for
/// a section or a disk, and of unusual requests and namespaces.
[[gnu::noinline]] ClaimOutcome claim_with_care(Engine& engine, const Claims::Namespace& names,
                                               const ClaimRequest& request) {
  ClaimOutcome outcome;
  if (engine::impl_of(engine).may_have_log() && decided_by_log(engine, names, request, outcome))
      [[unlikely]] {
    return outcome;
  }
  const Context context{engine, names};
  const TableKey key{context.prefix, request.key};
  ClaimFacts facts;
  facts.others_first = context.others_first(key.bytes());
  engine::ClaimNote note{context, key.bytes()};
  engine::run_claim(context, request, facts, note, outcome,
                    context.single_claim(key.bytes(), request, outcome));
  engine::count_answer(context.impl, names, outcome);
  note.write(request, outcome);
  engine::confirm(context, outcome);
  return outcome;
}

/// A claim inside its operation, which an OperationStart has handed over, after the look at its
/// home line. `hash`: all of it. Of a namespace without a queue.
[[gnu::noinline]] ClaimOutcome claim_inside(Engine& engine, const Claims::Namespace& names,
                                            const ClaimRequest& request, KeyRef key,
                                            engine::ThreadContext& own,
                                            const engine::KeyLocation& location, std::uint64_t hash,
                                            const engine::HomeLook& first, Timestamp now) {
  engine::Core& core = engine::impl_of(engine).core();
  std::optional<engine::Operation> operation{std::in_place, core, own,
                                             engine::Operation::Entered{}};
  ClaimOutcome outcome;
  const Context context{engine, names, now};
  ClaimFacts facts;
  engine::ClaimNote note{context};
  note.begin(location, hash);
  engine::run_claim(context, request, facts, note, outcome, [&](auto&& decide, Version& version) {
    const auto answers = [&](const engine::Entry& live) {
      return context.answer_live(request, live, outcome, decide);
    };
    // With the body of the calls that are made seldom: most claims have been answered before.
    const ErrorCode error =
        engine::decide_unless(core, *operation, location, key, context.now, first, answers,
                              engine::DecideRef{decide}, version);
    operation.reset();
    if (own.drain_due) [[unlikely]]
      core.upkeep().drain_own_timers(own);
    return error;
  });
  engine::count_answer(context.impl, names, outcome);
  note.write(request, outcome);
  return outcome;
}

template <class Text>
[[nodiscard, gnu::always_inline]] inline ClaimOutcome replay_of(Text&& text, Version version) {
  return {.answer = ClaimAnswer::replay,
          .attempt = 1,
          .folded_onto = {},
          .window_start_unix_ms = {},
          .window_end_unix_ms = {},
          .version = version,
          .owner = {},
          .result = std::forward<Text>(text)};
}
[[nodiscard, gnu::always_inline]] inline ClaimOutcome in_flight_of(Millis remaining,
                                                                   Millis retry_after_max,
                                                                   Version version) {
  return {.answer = ClaimAnswer::in_flight,
          .attempt = 1,
          .remaining = remaining,
          .retry_after = std::min(remaining, retry_after_max),
          .folded_onto = {},
          .window_start_unix_ms = {},
          .window_end_unix_ms = {},
          .version = version,
          .owner = {},
          .result = {}};
}

/// Of a first grant.
[[nodiscard, gnu::always_inline]] inline ClaimOutcome granted_of(Epoch epoch) {
  return {.answer = ClaimAnswer::granted,
          .attempt = 1,
          .epoch = epoch,
          .folded_onto = {},
          .window_start_unix_ms = {},
          .window_end_unix_ms = {},
          .version = epoch,
          .owner = {},
          .result = {}};
}

/// The same of a key that the look has shown to be free. What claim_inside() would do for a caller
/// that says no more than its key is done here, without a decision; it does the rest.
[[gnu::noinline]] ClaimOutcome claim_free(Engine& engine, const Claims::Namespace& names,
                                          const ClaimRequest& request, KeyRef key,
                                          engine::ThreadContext& own,
                                          const engine::KeyLocation& location, std::uint64_t hash,
                                          const engine::HomeLook& first, Timestamp now) {
  Engine::Impl& impl = engine::impl_of(engine);
  engine::Core& core = impl.core();
  const Policy policy = names.policy();
  const Timestamp lease_until = engine::lease_end_of(request, policy, now);
  engine::DecisionLog* const log = core.insight().decisions();
  const auto noted = [&] { return engine::moved_by_db(hash, location.stored_db); };
  if (log != nullptr) [[unlikely]]
    engine::DecisionLog::fetch_head(log->bucket_of(noted()));
  // A drop waits for operations, so the state is asked within this one.
  const bool is_usual =
      core.is_alone() && engine::is_bare(request) && !request.first_sent_unix_ms &&
      !policy.issued && lease_until != Timestamp{} &&
      names.state() == Claims::Namespace::State::open && engine::has_room_for_plain(own);
  engine::HomeLook again = first;
  if (is_usual) [[likely]] {
    if (log != nullptr) [[unlikely]]
      engine::DecisionLog::fetch_place(log->bucket_of(noted()));
    const SessionId session = request.session.value_or(impl.sessions().own());
    const engine::TableProbe probe = first.probe(location.hash);
    const Timestamp due = engine::held_due(lease_until, Timestamp{}, policy);
    Version version = 0;
    const std::optional<ErrorCode> done = engine::store_plain(
        core, own,
        {.location = location,
         .key = key.key,
         .probe = probe,
         .old = nullptr,
         .floor = probe.floor,
         .now = now},
        {.kind = Kind::claim, .due = due, .value_bytes = engine::granted_bytes(session)},
        [&](char* to, Epoch epoch) __attribute__((always_inline)) {
          engine::write_granted(to, epoch, session, lease_until);
        },
        version);
    if (done == ErrorCode::ok) [[likely]] {
      core.threads().leave(own);
      if (own.drain_due) [[unlikely]]
        core.upkeep().drain_own_timers(own);
      engine::count_usual(core, names, own, ClaimAnswer::granted);
      if (log != nullptr) [[unlikely]] {
        engine::note_grant(*log, own, noted(), now, version,
                           Millis{request.lease.value_or(policy.lease)});
      }
      return granted_of(version);
    }
    if (!done) again = {};  // the slot has changed
  }
  return claim_inside(engine, names, request, key, own, location, hash, again, now);
}

}  // namespace

ClaimOutcome Claims::claim(const ClaimRequest& request) {
  Engine::Impl& impl = engine::impl_of(*engine_);
  const Namespace& names = *names_;
  const auto inside = [&](const engine::Begun& call) __attribute__((always_inline))->ClaimOutcome {
    engine::Core& core = call.core;
    const engine::HomeRecord first = core.keys().look_home_record<64>(call.location, call.key);
    if (first.answers(core.keys().databases(), call.now) && first.head.is(Kind::claim) &&
        request.fingerprint.algorithm == 0 && core.insight().decisions() == nullptr) [[likely]] {
      const Bytes record = first.head.value();
      const auto answered = [&](ClaimAnswer answer) __attribute__((always_inline)) {
        engine::count_usual(core, names, call.own, answer);
        core.uses().note_read(call.own.only_looks, call.brief.db(), call.location.hash, call.now);
      };
      const auto replay = [&](auto&& text) __attribute__((always_inline)) {
        answered(ClaimAnswer::replay);
        return replay_of(std::forward<decltype(text)>(text), first.head.version());
      };
      Timestamp lease_until;
      SessionId session = 0;
      if (Bytes result; engine::read_plain_replay(record, call.now, result)) {
        if (engine::ShortCopy::fits(result.size())) [[likely]]
          return replay(engine::ShortCopy{result});
        try {
          return replay(std::string{result});
        } catch (const std::bad_alloc&) {  // claim_inside() answers memory_full
        }
      } else if (!request.claim_id && engine::read_plain_held(record, lease_until, session) &&
                 impl.sessions().is_own_or_none(session) && call.now < lease_until) {
        answered(ClaimAnswer::in_flight);
        return in_flight_of(lease_until - call.now, call.brief.retry_after_max(),
                            first.head.version());
      }
    }
    call.operation.hand_over();
    if (first.look.slot != nullptr && first.look.seen == 0) {
      return claim_free(*engine_, names, request, {call.brief.db(), call.key}, call.own,
                        engine::KeyLocation{call.location}, call.hash, engine::HomeLook{first.look},
                        call.now);
    }
    return claim_inside(*engine_, names, request, {call.brief.db(), call.key}, call.own,
                        engine::KeyLocation{call.location}, call.hash, engine::HomeLook{first.look},
                        call.now);
  };
  return engine::begin_call(
      *engine_, names, request.key,
      [&] { return request.session.value_or(0) == 0 && engine::check(request) == ErrorCode::ok; },
      inside, [&] { return claim_with_care(*engine_, names, request); });
}

Result<ClaimView> Claims::get(Bytes key) {
  if (key.empty()) return engine::key_error(ErrorCode::key_empty, key);
  const engine::LoggedCall log = engine::impl_of(*engine_).log_for_call();
  if (log) {
    if (const Status ready = log->read(); !ready) return ready.error();
  }
  const Context context{*engine_, *names_};
  if (context.dropped()) return Error{ErrorCode::namespace_dropped, std::string{name()}};
  const TableKey table_key{context.prefix, key};
  ClaimView view;
  ErrorCode found = ErrorCode::ok;
  Version version = 0;
  const ErrorCode error = context.single(table_key.bytes())(
      [&](const RecordView* live, const auto&) {
        // Read again: by a time before it was written, a lease would have more left than it got.
        const ClaimFacts facts{.now = std::max(context.now, context.impl.now()),
                               .owner_dead = context.owner_dead(live)};
        found = engine::view_claim(live, context.policy, facts, view);
        return Decision{};
      },
      version);
  if (error != ErrorCode::ok) return engine::key_error(error, key);
  if (found != ErrorCode::ok) return engine::key_error(found, key);
  if (const ErrorCode unknown = context.impl.confirm(); unknown != ErrorCode::ok) {
    return engine::key_error(unknown, key);
  }
  return view;
}

Policy Claims::policy() const noexcept {
  return names_->policy();
}
bool Claims::is_dropped() const noexcept {
  return names_->state() == Namespace::State::dropped;
}
Bytes Claims::name() const noexcept {
  return names_->name();
}

}  // namespace semel
