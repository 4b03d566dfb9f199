// Durability that is waited for without blocking: by a callback, or in a coroutine.
#include <atomic>
#include <coroutine>
#include <memory>
#include <utility>

#include "engine/api/engine_impl.hpp"
#include "engine/logged/call_log.hpp"

namespace semel {

void Engine::confirm_async(Durability level, Function<void(Status)> then) {
  engine::CallbackWatch& callbacks = impl_->core().callbacks();
  const auto shared = std::make_shared<Function<void(Status)>>(std::move(then));
  const auto notify = [&callbacks, shared](Status status) {
    callbacks.run(Callback::confirmation, [&] { (*shared)(std::move(status)); });
  };
  if (impl_->core().threads().is_forked()) return notify(Error{ErrorCode::forked, {}});
  if (const engine::LoggedCall log = impl_->log_for_call()) return log->read(notify);
  Journal* const journal = impl_->core().journal();
  if (journal == nullptr) return notify(Error{ErrorCode::bad_option, "no journal"});
  const bool taken =
      callbacks.run(Callback::journal, [&] { journal->when(journal->newest(), level, notify); });
  if (!taken) notify(Error{ErrorCode::outcome_unknown, {}});
}

Confirmation Engine::confirmed(Durability level) noexcept {
  return {*this, level};
}

struct Confirmation::Shared {
  enum Stage : int { asked, suspended, answered, destroyed };
  std::atomic<int> stage{asked};
  Status status{Done{}};
};

struct Confirmation::Held {
  std::shared_ptr<Shared> shared;
};

Confirmation::Confirmation(Engine& engine, Durability level) noexcept
    : engine_(engine), level_(level) {}

bool Confirmation::suspend(void* coroutine) {
  const auto waiting = std::coroutine_handle<>::from_address(coroutine);
  const auto shared = std::make_shared<Shared>();
  held_ = std::make_unique<Held>(Held{shared});
  engine_.confirm_async(level_, [shared, waiting](Status status) {
    shared->status = std::move(status);
    // mo: acq_rel [engine.confirmation]: the second of two sees what the first has done.
    if (shared->stage.exchange(Shared::answered, std::memory_order_acq_rel) == Shared::suspended) {
      waiting.resume();
    }
  });
  int stage = Shared::asked;
  // mo: acq_rel, failure acquire [engine.confirmation]. From here on `this` may be gone.
  return shared->stage.compare_exchange_strong(stage, Shared::suspended, std::memory_order_acq_rel,
                                               std::memory_order_acquire);
}

Status Confirmation::await_resume() {
  return std::move(held_->shared->status);
}

Confirmation::~Confirmation() {
  // mo: acq_rel [engine.confirmation]: an answer that comes later resumes no coroutine.
  if (held_ != nullptr) {
    held_->shared->stage.exchange(Shared::destroyed, std::memory_order_acq_rel);
  }
}

}  // namespace semel
