// Waits of a replica for elements of an object. The replicated log decides who gets them; the wait
// queue of the replica knows when to ask it.
#pragma once

#include <optional>
#include <span>

#include "engine/kinds/stream_keys.hpp"
#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/function.hpp"

namespace semel::engine {

struct ObjectWait {
  std::span<const KeyRef> keys;
  Kind kind;  ///< list, sorted_set or stream
  Timestamp deadline;
  /// Its place in the line: the ticket of its first wait. 0: behind all others. One that has asked
  /// in vain so stands before those that came after it.
  WaitTicket arrival = 0;
  /// Of streams: entries behind these ids, one of each key, or that the group has not read.
  std::span<const StreamId> behind{};
  std::optional<Bytes> group{};
};

/// Calls `done` once, when one of the objects has elements (ok: ask the replicated log; of those
/// that wait for it, the first alone, but of streams all that only read), or at the deadline of the
/// group's time (timed_out). Perhaps on the thread that applies entries: it must not block, nor
/// call the engine. `ticket` is written before, and is for stop_waiting(). Not ok: it is not
/// called. std::bad_alloc.
[[nodiscard]] ErrorCode wait_for_object(Engine& engine, const ObjectWait& wait,
                                        Function<void(ErrorCode)> done, WaitTicket& ticket);

/// The last id of the stream, as this replica has it; 0-0: there is no stream. None: a section
/// holds the key.
[[nodiscard]] std::optional<StreamId> last_id_of(Engine& engine, KeyRef key);

}  // namespace semel::engine
