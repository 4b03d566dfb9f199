// The calls of semel/claims.hpp on one key. Batches are in claims_batch.cpp, waiting in
// claims_wait.cpp, the operator's calls in claims_operator.cpp.
#include "semel/claims.hpp"

#include <algorithm>
#include <string>

#include "engine/claims/claim_calls.hpp"
#include "engine/claims/logged_claims.hpp"
#include "engine/rules/claim_view.hpp"

namespace semel {

using Context = engine::ClaimContext;
using engine::ClaimFacts;
using engine::Decision;
using engine::OwnerVerb;
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
[[gnu::noinline]] bool decided_by_log(Engine& engine, const Claims::Namespace& names,
                                      OwnerVerb verb, const OwnerCall& call,
                                      OwnerOutcome& outcome) {
  const engine::LoggedCall log = engine::impl_of(engine).log_for_call();
  if (!log) return false;
  outcome = engine::owner_call_logged(*log, Context{engine, names}, verb, call);
  return true;
}

OwnerOutcome call_owner(Engine& engine, const Claims::Namespace& names, OwnerVerb verb,
                        const OwnerCall& call) {
  if (engine::impl_of(engine).may_have_log()) [[unlikely]] {
    OwnerOutcome outcome;
    if (decided_by_log(engine, names, verb, call, outcome)) return outcome;
  }
  return engine::owner_call(engine, names, verb, call);
}

}  // namespace

ClaimOutcome Claims::claim(const ClaimRequest& request) {
  ClaimOutcome outcome;
  if (engine::impl_of(*engine_).may_have_log() &&
      decided_by_log(*engine_, *names_, request, outcome)) [[unlikely]] {
    return outcome;
  }
  const Context context{*engine_, *names_};
  const TableKey key{context.prefix, request.key};
  ClaimFacts facts;
  facts.others_first = context.others_first(key.bytes());
  engine::ClaimNote note{context, key.bytes()};
  engine::run_claim(context, request, facts, note, outcome,
                    context.single_claim(key.bytes(), request, outcome));
  engine::count_answer(context.impl, *names_, outcome);
  note.write(request, outcome);
  engine::confirm(context, outcome);
  return outcome;
}

OwnerOutcome Claims::complete(const OwnerCall& call) {
  return call_owner(*engine_, *names_, OwnerVerb::complete, call);
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
