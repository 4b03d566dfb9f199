// What an engine is opened with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>

#include "semel/function.hpp"
#include "semel/journal.hpp"
#include "semel/limits.hpp"
#include "semel/types.hpp"

namespace semel {

class Clock;
class ColdStore;

/// The user's code that the engine calls. It must not throw: if it does, the engine catches the
/// exception at the call, ends no other wait and releases all locks
/// (docs/process-life.md#exceptions).
enum class Callback : std::uint8_t {
  waiter,        ///< of claim_or_wait: it counts as notified
  expired_sink,  ///< of subscribe_expired: the others are called
  visitor,       ///< of scan and snapshot: the call ends with callback_threw
  journal,       ///< append: as if it had answered 0; wait: outcome_unknown
  confirmation,  ///< of confirm_async: it counts as notified
};

struct Options {
  const Clock* clock = nullptr;  ///< none: an own SystemClock. Must outlive the engine.
  Journal* journal = nullptr;    ///< none: nothing is journalled. Must outlive the engine.
  /// The durability of answers. Above `memory` a call returns when its changes, and the changes
  /// that it saw, have reached this level, or with outcome_unknown; this needs a journal.
  Durability durability = Durability::memory;
  /// A window larger than memory: the store that takes records when memory runs short; none: no
  /// store. Must outlive the engine. hash_seed is then the store's.
  ColdStore* cold = nullptr;
  unsigned spill_above = 60;     ///< percent of memory_bytes held from which on to spill; 5..90
  Millis spill_ttl_min{60'000};  ///< records that end sooner stay in memory; 0..limits::ttl_max
  std::size_t memory_bytes = limits::memory_bytes_default;  ///< hard limit of everything held
  /// Address space for a limit that Engine::set_memory_limit() raises; 0: for memory_bytes only.
  std::size_t memory_room_bytes = 0;
  std::size_t key_bytes_max = limits::key_bytes_max;
  std::size_t value_bytes_max = limits::value_bytes_default;
  /// The size of the decision log, from which Claims::explain() answers: a part of memory_bytes,
  /// and at most a quarter of it; 0: no log. A decision takes 273 bytes, and makes each call about
  /// claims slower (docs/decisions/0049-why.md).
  std::size_t decision_log_bytes = 0;
  bool counts_by_namespace = false;  ///< EngineHost::claim_counts(); takes 64 KiB of memory_bytes
  unsigned shard_count = 16;         ///< power of two, 1..limits::shard_count_max
  std::optional<std::uint64_t> hash_seed{};  ///< tests only; none: random per engine
  /// A thread of the engine's own runs advance() this often, 1..1000 ms, so that ended records are
  /// removed and their memory is reused. 0: every 100 ms, but no thread on a ManualClock, which
  /// only moves when it is set. None: no thread; call advance() now and then.
  std::optional<Millis> background{Millis{0}};
  /// A replica: only the entries of a replicated log change it (replication/state); all other
  /// writes are refused. Its clock is that of the replicated log, and it has no cold store.
  bool replicated = false;
  Version first_version = 1;  ///< recovery: larger than any version ever handed out
  /// Called with each exception that left a callback, on the callback's thread; may rethrow it to
  /// examine it, but must not let it out. Must be quick and must not call the engine. None: the
  /// engine only counts exceptions.
  Function<void(Callback, std::exception_ptr)> on_callback_exception{};
};

}  // namespace semel
