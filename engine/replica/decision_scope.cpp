#include "engine/replica/decision_scope.hpp"

#include <poll.h>

#include <memory>

#include "base/assert.hpp"
#include "engine/api/engine_impl.hpp"
#include "engine/claims/logged_waits.hpp"

namespace semel::engine {

DecisionScope::DecisionScope(Engine& engine, const DecisionContext& decision)
    : engine_(engine), decision_(decision), applying_(impl_of(engine).decision_mutex) {
  Core& core = impl_of(engine).core();
  ThreadContext& own = core.context();
  SEMEL_ASSERT(core.options().replicated);
  SEMEL_ASSERT(own.section == nullptr && own.decision == nullptr);
  SEMEL_ASSERT(may_follow(engine, decision.first) && decision.first < decision.end);
  // Before one of them is used: no change is newer than what was handed out.
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

std::vector<SessionId> open_sessions(Engine& engine) {
  return impl_of(engine).sessions().all_open();
}

void restore_session(Engine& engine, SessionId session) {
  impl_of(engine).sessions().open(session);
}

void set_call_log(Engine& engine, CallLog* log) {
  Engine::Impl& impl = impl_of(engine);
  SEMEL_ASSERT(log == nullptr || impl.core().options().replicated);
  if (impl.logged_waits != nullptr) {
    impl.logged_waits->close();
    impl.wait_queue().close();  // blocked threads would go on to the log that is taken away
  }
  impl.call_log.store(log, std::memory_order_seq_cst);  // mo: seq_cst [engine.logged_calls]
  // Those under way have been answered, or are in a moment.
  // mo: seq_cst [engine.logged_calls]
  while (log == nullptr && impl.logged_calls.load(std::memory_order_seq_cst) != 0) {
    poll(nullptr, 0, 1);
  }
  if (log != nullptr) impl.logged_waits = std::make_shared<LoggedWaits>(engine, *log);
}

bool poll_waits(Engine& engine, Timestamp now) noexcept {
  Engine::Impl& impl = impl_of(engine);
  if (impl.logged_waits != nullptr) impl.logged_waits->retry();
  if (!impl.wait_queue().has_waiters()) return false;
  impl.wait_queue().poll(now);
  return true;
}

}  // namespace semel::engine
