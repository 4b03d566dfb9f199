#include "engine/replica/decision_scope.hpp"

#include <poll.h>

#include <algorithm>
#include <memory>

#include "base/assert.hpp"
#include "engine/api/engine_impl.hpp"
#include "engine/claims/logged_waits.hpp"
#include "engine/core/core_update.hpp"

namespace semel::engine {

DecisionScope::DecisionScope(Engine& engine, const DecisionContext& decision)
    : engine_(engine), decision_(decision), applying_(impl_of(engine).decision_mutex) {
  Core& core = impl_of(engine).core();
  ThreadContext& own = core.context();
  SEMEL_ASSERT(core.options().replicated);
  SEMEL_ASSERT(own.section == nullptr && own.decision == nullptr);
  SEMEL_ASSERT(may_follow(engine, decision.first) && decision.first < decision.end);
  // Before one of them is used: no change has a version above the handed out ones.
  core.versions().raise(decision.end - 1);
  own.version_next = decision.first;
  own.version_end = decision.end;
  own.decision = &decision_;
  refused_before_ = own.count(Count::refused);
}

bool DecisionScope::lacked_memory() const noexcept {
  return impl_of(engine_).core().context().count(Count::refused) != refused_before_;
}

DecisionScope::~DecisionScope() {
  ThreadContext& own = impl_of(engine_).core().context();
  SEMEL_ASSERT(own.section == nullptr && own.decision == &decision_);
  own.decision = nullptr;
  own.version_next = own.version_end = 0;
}

Version next_version(Engine& engine) noexcept {
  return impl_of(engine).core().versions().next();
}

bool may_follow(Engine& engine, Version first) noexcept {
  return first != 0 && first >= next_version(engine);
}

std::vector<OpenSession> open_sessions(Engine& engine) {
  return impl_of(engine).sessions().all_open();
}

void restore_session(Engine& engine, const OpenSession& session) {
  impl_of(engine).sessions().open(session);
}

SessionId open_session(Engine& engine, const SessionOwner& owner) {
  Engine::Impl& impl = impl_of(engine);
  ThreadContext& own = impl.core().context();
  SEMEL_ASSERT(own.decision != nullptr);
  if (impl.sessions().count() >= limits::sessions_max) return 0;
  const SessionId session = impl.core().versions().take(own);
  return impl.sessions().open({session, owner}) ? session : 0;
}

std::size_t close_former_sessions(Engine& engine, const SessionOwner& owner) {
  Engine::Impl& impl = impl_of(engine);
  const std::vector<SessionId> closed = impl.sessions().close_former(owner);
  for (const SessionId each : closed) impl.wait_queue().session_closed(each);
  return closed.size();
}

void set_call_log(Engine& engine, CallLog* log) {
  Engine::Impl& impl = impl_of(engine);
  SEMEL_ASSERT(log == nullptr || impl.core().options().replicated);
  end_waits(engine);  // blocked threads would go on to the CallLog that is taken away
  impl.call_log.store(log, std::memory_order_seq_cst);  // mo: seq_cst [engine.logged_calls]
  // Those under way have been answered, or are in a moment.
  // mo: seq_cst [engine.logged_calls]
  while (log == nullptr && impl.logged_calls.load(std::memory_order_seq_cst) != 0) {
    poll(nullptr, 0, 1);
  }
  if (log != nullptr) impl.logged_waits = std::make_shared<LoggedWaits>(engine, *log);
}

void end_waits(Engine& engine) noexcept {
  Engine::Impl& impl = impl_of(engine);
  if (impl.logged_waits == nullptr) return;
  impl.logged_waits->close();
  impl.wait_queue().close();
}

void set_group_clock(Engine& engine, const GroupTime* clock) noexcept {
  impl_of(engine).group_clock = clock;
}

bool wait_for_change(Engine& engine, Bytes name, Bytes key, Timestamp deadline, ClaimCallback done,
                     WaitTicket& ticket, ClaimOutcome& outcome) {
  Engine::Impl& impl = impl_of(engine);
  outcome = {};
  const NamespaceHandle names = impl.namespaces().find(name);
  if (!names) return false;
  const TableKey table_key{names->prefix(), key};
  Looking first{engine, names, {.key = key}, table_key.bytes()};
  return wait_for_claim(impl.wait_queue(), first, deadline, done, ticket, outcome);
}

bool repeat_claim(Engine& engine, const Claims& claims, const ClaimRequest& request, Ends ends,
                  ClaimOutcome& outcome) {
  const GroupTime* const clock = impl_of(engine).group_clock;
  return clock != nullptr &&
         repeat_claim(engine, ClaimsParts::names_of(claims), *clock, request, ends, outcome);
}

bool stop_waiting(Engine& engine, WaitTicket ticket) noexcept {
  return impl_of(engine).wait_queue().cancel(ticket);
}

bool poll_waits(Engine& engine, Timestamp now) noexcept {
  Engine::Impl& impl = impl_of(engine);
  if (impl.logged_waits != nullptr) impl.logged_waits->retry();
  if (!impl.wait_queue().has_waiters()) return false;
  impl.wait_queue().poll(now);
  return true;
}

}  // namespace semel::engine
