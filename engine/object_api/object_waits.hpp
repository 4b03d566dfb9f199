// Calls that wait for an object: for an element of a list, of a sorted set, for an entry of a
// stream. What such a call tries is an Attempt of its own (engine/waits/attempt.hpp).
#pragma once

#include <memory>
#include <span>

#include "engine/waits/attempt.hpp"
#include "engine/waits/wait_queue.hpp"
#include "semel/claims.hpp"
#include "semel/engine.hpp"

namespace semel::engine {

/// Waits for a change of one of `keys` that answers `attempt`, until `deadline` on the engine's
/// clock; no_end: for ever. The attempt is tried at once, behind those that wait already. Then, or
/// later, `receiver` is called once, on the thread that ends the wait. `ticket` is written before.
/// Errors: waiters_full, memory_full, closing: both are left where they are. std::bad_alloc.
[[nodiscard]] ErrorCode begin_wait(Engine& engine, std::unique_ptr<Attempt>& attempt,
                                   std::unique_ptr<Receiver>& receiver,
                                   std::span<const KeyRef> keys, Timestamp deadline,
                                   WaitTicket& ticket);
/// True: it waited, and its receiver is not called. What it was given while it was being tried is
/// given back. False: its receiver has been called; if another thread is in it, this waits for
/// that.
bool cancel_wait(Engine& engine, WaitTicket ticket) noexcept;
/// Whether any call waits for the key.
[[nodiscard]] bool has_waits(Engine& engine, KeyRef key) noexcept;

/// While it lives, the waits of others do not see what this thread changes; then they do, in the
/// order of the changes. So a command is finished before those that it serves. Those within another
/// one have no effect. To be ended by the thread that began it.
class HoldWaits {
 public:
  explicit HoldWaits(Engine& engine) noexcept;

 private:
  WaitQueue::Hold hold_;
};

}  // namespace semel::engine
