#include "engine/object_api/object_waits.hpp"

#include "engine/api/engine_impl.hpp"

namespace semel::engine {

ErrorCode begin_wait(Engine& engine, std::unique_ptr<Attempt>& attempt,
                     std::unique_ptr<Receiver>& receiver, std::span<const KeyRef> keys,
                     Timestamp deadline, WaitTicket& ticket) {
  return impl_of(engine).wait_queue().wait(attempt, receiver, keys, deadline, ticket);
}

bool cancel_wait(Engine& engine, WaitTicket ticket) noexcept {
  Engine::Impl& impl = impl_of(engine);
  return !impl.core().threads().is_forked() && impl.wait_queue().cancel(ticket);
}

bool has_waits(Engine& engine, KeyRef key) noexcept {
  return impl_of(engine).wait_queue().has_waiters_for(key.db, key.key);
}

HoldWaits::HoldWaits(Engine& engine) noexcept : hold_(impl_of(engine).wait_queue()) {}

}  // namespace semel::engine
