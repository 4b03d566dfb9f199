// Waits of a replica for one of several claims, as for a slot of a semaphore. The replicated log
// decides who gets it; the wait queue of the replica knows when to ask it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/function.hpp"

namespace semel::engine {

struct SlotWait {
  Bytes name;                         ///< of the namespace
  std::span<const std::string> keys;  ///< of the claims
  Timestamp deadline;
  /// Its place in the lines: the ticket of its first wait. 0: behind all others.
  WaitTicket arrival = 0;
};

/// Calls `done` once, when one of the claims is free (ok: ask the replicated log; of those that
/// wait for it, the first alone), or at the deadline of the group's time (timed_out). Perhaps on
/// the thread that applies entries: it must not block, nor call the engine. A waiter
/// that the log has refused is not told of a free claim for a moment: the log may refuse it again,
/// as for a semaphore with fewer permits than before. `ticket` is written before, and is for
/// stop_waiting(). Not ok: it is not called. Errors: waiters_full, memory_full, closing,
/// bad_namespace. std::bad_alloc.
[[nodiscard]] ErrorCode wait_for_slot(Engine& engine, const SlotWait& wait,
                                      Function<void(ErrorCode)> done, WaitTicket& ticket);

}  // namespace semel::engine
