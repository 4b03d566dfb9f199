// Claims that wait: blocking, with a callback, in a coroutine.
#include <new>
#include <utility>

#include "engine/claims/claim_calls.hpp"
#include "engine/claims/logged_waits.hpp"

namespace semel {
namespace {

using Context = engine::ClaimContext;
using engine::ClaimFacts;
using engine::OwnerVerb;
using engine::TableKey;

/// How the wait queue asks for a waiter. An in_flight is not counted: it is asked again and again.
ClaimOutcome attempt(const engine::WaitCall& call, engine::Seen& seen) {
  const Context context{*call.engine, *call.names};
  ClaimOutcome outcome;
  ClaimFacts facts;
  if (call.arrives) facts.others_first = context.others_first(call.table_key);
  engine::ClaimNote note{context, call.table_key};
  engine::run_claim(context, call.request, facts, note, outcome, context.single(call.table_key));
  note.write(call.request, outcome, call.arrives);
  if (outcome.answer != ClaimAnswer::in_flight) {
    engine::count_answer(context.impl, *call.names, outcome);
    engine::confirm(context, outcome);
  }
  seen = {.now = context.now, .held_until = facts.held_until, .held_session = facts.held_session};
  return outcome;
}

/// Of a waiter that had left when it was granted. If this fails, the lease ends the claim.
void give_back(const engine::WaitCall& call, const ClaimOutcome& granted) {
  const OwnerCall owner{.key = call.request.key, .epoch = granted.epoch};
  static_cast<void>(engine::owner_call(*call.engine, *call.names, OwnerVerb::release, owner));
}

[[nodiscard]] engine::WaitCall wait_call(Engine& engine, const Claims::NamespaceRef& names,
                                         const ClaimRequest& request, Timestamp deadline,
                                         const TableKey& key) {
  return {.attempt = attempt,
          .give_back = give_back,
          .engine = &engine,
          .names = names,
          .request = request,
          .table_key = key.bytes(),
          .db = names->policy().db,
          .deadline = deadline};
}

/// As WaitQueue::wait(), of an engine by itself or of a replica.
[[nodiscard]] bool start_wait(Engine& engine, const engine::WaitStart& start, ClaimCallback& done,
                              WaitTicket& ticket, ClaimOutcome& outcome) {
  Engine::Impl& impl = engine::impl_of(engine);
  if (const engine::LoggedCall log = impl.log_for_call()) {
    const auto waits = impl.logged_waits;  // which `done` may end
    return waits->begin(start, done, ticket, outcome);
  }
  const TableKey key{start.names->prefix(), start.request.key};
  return impl.wait_queue().wait(wait_call(engine, start.names, start.request, start.deadline, key),
                                done, ticket, outcome);
}

}  // namespace

ClaimOutcome Claims::claim_or_wait(const ClaimRequest& request, Timestamp deadline) {
  Engine::Impl& impl = engine::impl_of(*engine_);
  if (const engine::LoggedCall log = impl.log_for_call())
    return impl.logged_waits->wait(names_, request, deadline);
  const TableKey key{names_->prefix(), request.key};
  return impl.wait_queue().wait(wait_call(*engine_, names_, request, deadline, key), impl.clock());
}

WaitTicket Claims::claim_or_wait(const ClaimRequest& request, Timestamp deadline,
                                 ClaimCallback done) {
  // `this` may lie in a coroutine that `done` ends, so it is not touched after that.
  engine::WaitQueue& queue = engine::impl_of(*engine_).wait_queue();
  WaitTicket ticket = 0;
  ClaimOutcome outcome;
  if (start_wait(*engine_, {names_, request, deadline}, done, ticket, outcome)) return ticket;
  queue.callbacks().run(Callback::waiter, [&] { done(std::move(outcome)); });
  return 0;
}

bool Claims::begin_wait(const ClaimRequest& request, Timestamp deadline, WaitTicket& ticket,
                        ClaimOutcome& outcome, ClaimCallback done) {
  return start_wait(*engine_, {names_, request, deadline}, done, ticket, outcome);
}

bool Claims::cancel_wait(Bytes key, WaitTicket ticket) noexcept {
  Engine::Impl& impl = engine::impl_of(*engine_);
  if (impl.core().threads().is_forked()) return false;
  if (engine::LoggedWaits::is_mine(ticket)) {
    const auto waits = impl.logged_waits;
    return waits != nullptr && waits->cancel(ticket);
  }
  try {
    const TableKey table_key{names_->prefix(), key};
    return impl.wait_queue().cancel(names_->policy().db, table_key.bytes(), ticket);
  } catch (const std::bad_alloc&) {
    return impl.wait_queue().cancel(ticket);
  }
}

ClaimWait Claims::claim_or_wait_async(const ClaimRequest& request, Timestamp deadline) {
  return ClaimWait{*this, request, deadline};
}

}  // namespace semel
