// Claims that wait: blocking, with a callback, in a coroutine.
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "engine/claims/claim_attempt.hpp"
#include "engine/claims/claim_calls.hpp"
#include "engine/claims/logged_waits.hpp"

namespace semel {
namespace {

using Context = engine::ClaimContext;
using engine::OwnerVerb;
using engine::TableKey;

/// Asks claim() for a waiter.
class Asking final : public engine::ClaimAttempt {
 public:
  using ClaimAttempt::ClaimAttempt;
  explicit Asking(const Asking& other)
      : ClaimAttempt(other, bytes_of(other)), arrival_(engine::Arrival::waits) {}

  [[nodiscard]] engine::Verdict try_for(std::size_t, engine::Seen& seen) override {
    const Context context{engine_, *names_};
    return engine::try_claim(context, request_, table_key_,
                             std::exchange(arrival_, engine::Arrival::waits), outcome, seen);
  }
  /// If this fails, the lease ends the claim.
  void give_back() override {
    if (outcome.answer != ClaimAnswer::granted) return;
    const OwnerCall owner{.key = request_.key, .epoch = outcome.epoch};
    static_cast<void>(engine::owner_call(engine_, *names_, OwnerVerb::release, owner));
  }
  [[nodiscard]] std::unique_ptr<ClaimAttempt> keep() const override {
    return std::make_unique<Asking>(*this);
  }

 private:
  engine::Arrival arrival_ = engine::Arrival::comes;  // its first try
};

/// As wait_for_claim(), of an engine by itself or of a replica.
[[nodiscard]] bool start_wait(Engine& engine, const engine::WaitStart& start, ClaimCallback& done,
                              WaitTicket& ticket, ClaimOutcome& outcome) {
  Engine::Impl& impl = engine::impl_of(engine);
  if (const engine::LoggedCall log = impl.log_for_call()) {
    const auto waits = impl.logged_waits;  // which `done` may end
    return waits->begin(start, done, ticket, outcome);
  }
  const TableKey key{start.names->prefix(), start.request.key};
  Asking first{engine, start.names, start.request, key.bytes()};
  return engine::wait_for_claim(impl.wait_queue(), first, start.deadline, done, ticket, outcome);
}

}  // namespace

engine::Verdict engine::try_claim(const ClaimContext& context, const ClaimRequest& request,
                                  Bytes table_key, Arrival arrival, ClaimOutcome& outcome,
                                  Seen& seen) {
  const bool arrives = arrival == Arrival::comes;
  ClaimFacts facts;
  if (arrives) facts.others_first = context.others_first(table_key);
  ClaimNote note{context, table_key};
  outcome = {};
  run_claim(context, request, facts, note, outcome, context.single(table_key));
  note.write(request, outcome, arrives);
  if (outcome.answer != ClaimAnswer::in_flight) {
    count_answer(context.impl, context.names, outcome);
    confirm(context, outcome);
    return Verdict::answered;
  }
  seen.now = context.now;
  seen.held_until = facts.held_until;
  seen.held_session = facts.held_session;
  seen.attempt = outcome.attempt;
  seen.owner = outcome.owner;
  return Verdict::waits;
}

ClaimOutcome Claims::claim_or_wait(const ClaimRequest& request, Timestamp deadline) {
  Engine::Impl& impl = engine::impl_of(*engine_);
  if (const engine::LoggedCall log = impl.log_for_call())
    return impl.logged_waits->wait(names_, request, deadline);
  const TableKey key{names_->prefix(), request.key};
  Asking asking{*engine_, names_, request, key.bytes()};
  return engine::wait_for_claim(impl.wait_queue(), asking, deadline, impl.clock());
}

WaitTicket Claims::claim_or_wait(const ClaimRequest& request, Timestamp deadline,
                                 ClaimCallback done) {
  // `this` may lie in a coroutine that `done` ends, so it is not touched after that.
  engine::CallbackWatch& callbacks = engine::impl_of(*engine_).core().callbacks();
  WaitTicket ticket = 0;
  ClaimOutcome outcome;
  if (start_wait(*engine_, {names_, request, deadline}, done, ticket, outcome)) return ticket;
  callbacks.run(Callback::waiter, [&] { done(std::move(outcome)); });
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
    const KeyRef waited{names_->policy().db, table_key.bytes()};
    return impl.wait_queue().cancel(ticket, &waited);
  } catch (const std::bad_alloc&) {
    return impl.wait_queue().cancel(ticket);
  }
}

ClaimWait Claims::claim_or_wait_async(const ClaimRequest& request, Timestamp deadline) {
  return ClaimWait{*this, request, deadline};
}

}  // namespace semel
