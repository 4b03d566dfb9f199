// The owner's calls of semel/claims.hpp on one key.
#include <optional>

#include "engine/claims/claim_begin.hpp"
#include "engine/claims/claim_calls.hpp"
#include "engine/claims/logged_claims.hpp"
#include "engine/core/plain_change.hpp"
#include "engine/rules/claim_states.hpp"
#include "semel/claims.hpp"

namespace semel {

using engine::OwnerVerb;

namespace {

[[gnu::noinline]] bool owner_decided_by_log(Engine& engine, const Claims::Namespace& names,
                                            OwnerVerb verb, const OwnerCall& call,
                                            OwnerOutcome& outcome) {
  const engine::LoggedCall log = engine::impl_of(engine).log_for_call();
  if (!log) return false;
  outcome = engine::owner_call_logged(*log, engine::ClaimContext{engine, names}, verb, call);
  return true;
}

OwnerOutcome call_owner(Engine& engine, const Claims::Namespace& names, OwnerVerb verb,
                        const OwnerCall& call) {
  if (engine::impl_of(engine).may_have_log()) [[unlikely]] {
    OwnerOutcome outcome;
    if (owner_decided_by_log(engine, names, verb, call, outcome)) return outcome;
  }
  return engine::owner_call(engine, names, verb, call);
}

/// All of a completion that Claims::complete() leaves.
[[gnu::noinline]] OwnerOutcome complete_with_care(Engine& engine, const Claims::Namespace& names,
                                                  const OwnerCall& call) {
  return call_owner(engine, names, OwnerVerb::complete, call);
}

}  // namespace

OwnerOutcome Claims::complete(const OwnerCall& call) {
  Engine::Impl& impl = engine::impl_of(*engine_);
  const Namespace& names = *names_;
  const auto with_care = [&] { return complete_with_care(*engine_, names, call); };
  const auto inside = [&](const engine::Begun& begun) __attribute__((always_inline))->OwnerOutcome {
    engine::Core& core = begun.core;
    engine::DecisionLog* const log = core.insight().decisions();
    const auto noted = [&] { return engine::moved_by_db(begun.hash, begun.location.stored_db); };
    if (log != nullptr) [[unlikely]]
      engine::DecisionLog::fetch_head(log->bucket_of(noted()));
    const engine::HomeRecord first = core.keys().look_home_record<64>(begun.location, begun.key);
    if (first.answers(core.keys().databases(), begun.now) && first.head.is(Kind::claim) &&
        engine::has_room_for_plain(begun.own)) [[likely]] {
      const engine::DoneEnds ends = engine::done_ends_of(names.policy(), begun.now);
      engine::HeldClaim held;
      if (engine::is_plain_completion(first.head.value(), call, ends, held) &&
          impl.sessions().is_own_or_none(held.session) &&
          !engine::lease_over(held.lease_until, begun.now, false)) [[likely]] {
        if (log != nullptr) [[unlikely]]
          engine::DecisionLog::fetch_place(log->bucket_of(noted()));
        Version version = 0;
        const engine::TableProbe probe = first.look.probe(begun.location.hash);
        const std::optional<ErrorCode> done = engine::store_plain(
            core, begun.own,
            {.location = begun.location,
             .key = begun.key,
             .probe = probe,
             .old = &first.head,
             .floor = first.head.version(),
             .now = begun.now},
            {.kind = Kind::claim,
             .due = ends.due,
             .value_bytes = engine::done_bytes(held, ends, call.payload.size())},
            [&](char* to, Version) __attribute__((always_inline)) {
              engine::write_done(to, held, ends, call.payload);
            },
            version);
        if (done == ErrorCode::ok) [[likely]] {
          if (log != nullptr) [[unlikely]] {
            engine::note_completion(*log, begun.own, noted(), begun.now, engine::HeldClaim{held});
          }
          begun.operation.leave();
          if (begun.own.drain_due) [[unlikely]]
            core.upkeep().drain_own_timers(begun.own);
          if (impl.wait_queue().has_waiters()) [[unlikely]]
            impl.wait_queue().changed(begun.brief.db(), begun.key);
          return {.answer = OwnerAnswer::ok, .version = version, .result = {}};
        }
      }
    }
    begun.operation.leave();
    return with_care();
  };
  const auto is_usual = [&] {
    return impl.core().is_alone() && !call.key.empty() &&
           call.payload.size() <= impl.core().options().value_bytes_max;
  };
  return engine::begin_call(*engine_, names, call.key, is_usual, inside, with_care);
}
OwnerOutcome Claims::fail(const OwnerCall& call) {
  return call_owner(*engine_, *names_, OwnerVerb::fail, call);
}
OwnerOutcome Claims::renew(const OwnerCall& call) {
  return call_owner(*engine_, *names_, OwnerVerb::renew, call);
}
OwnerOutcome Claims::release(const OwnerCall& call) {
  return call_owner(*engine_, *names_, OwnerVerb::release, call);
}

}  // namespace semel
