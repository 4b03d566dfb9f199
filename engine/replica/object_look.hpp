// Waits of a replica for elements of an object. The replicated log decides who gets them; the wait
// queue of the replica knows when to ask it.
#pragma once

#include <span>

#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/function.hpp"

namespace semel::engine {

struct ObjectWait {
  std::span<const KeyRef> keys;
  Kind kind;  ///< list, or sorted_set
  Timestamp deadline;
  /// Its place in the line: the ticket of its first wait. 0: behind all others. One that has asked
  /// in vain so stands before those that came after it.
  WaitTicket arrival = 0;
};

/// Calls `done` once, when one of the objects has elements (ok: ask the replicated log; of those
/// that wait for it, the first alone), or at the deadline of the group's time (timed_out). Perhaps
/// on the thread that applies entries: it must not block, nor call the engine. `ticket` is written
/// before, and is for stop_waiting(). Not ok: it is not called. std::bad_alloc.
[[nodiscard]] ErrorCode wait_for_object(Engine& engine, const ObjectWait& wait,
                                        Function<void(ErrorCode)> done, WaitTicket& ticket);

}  // namespace semel::engine
