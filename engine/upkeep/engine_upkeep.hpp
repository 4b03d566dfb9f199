// Upkeep of one engine: ends records whose time has come, takes out flushed ones, and frees memory:
// before an operation is refused, and in steps in advance().
//
// Used memory is held by records, table, wheel and charges, or it lies idle: in spans of which only
// a part lives, in the threads' caches, in retire lists. A refusal is right only when no idle
// memory could come free at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "engine/core/core.hpp"
#include "engine/core/upkeep.hpp"
#include "engine/upkeep/compactor.hpp"
#include "engine/upkeep/evictor.hpp"
#include "engine/upkeep/idle_trend.hpp"
#include "engine/upkeep/timers.hpp"

namespace semel::engine {

/// Thread-safe.
class EngineUpkeep final : public Upkeep {
 public:
  /// Serves `core` from now on, which must not have begun an operation.
  explicit EngineUpkeep(Core& core) noexcept;
  /// After Core::start().
  void start();

  [[nodiscard]] bool make_room(ThreadContext& context, Room& tried) override;
  [[nodiscard]] bool try_charge(std::size_t bytes) override;
  void drain_own_timers(ThreadContext& context) override;

  /// Ends records that are due by `now`, at most about `budget` timers; returns the budget that is
  /// left. `wait_for_turn`: if another thread is advancing, wait for it instead of returning.
  std::size_t advance(Timestamp now, std::size_t budget, bool wait_for_turn);
  /// Moves everything together that can be. Returns the bytes that came free.
  std::size_t compact();
  /// Frees all nodes of large objects that wait for it.
  void free_all_large() noexcept;
  /// Does a larger part of a pass that advance() has begun, for a thread that has the time.
  void go_on_compacting();
  /// Under a section over everything: ends all records of a database, whose versions are all below
  /// `below`. Returns how many there were, with those ended by their ttl and not yet removed.
  std::uint64_t flush_database(std::uint8_t stored, Version below) noexcept;
  /// Takes out flushed records, unless a snapshot or another thread's section is in the way: then
  /// advance() does. Progress: waits for a step of another thread that does the same.
  void sweep_flushed();

  [[nodiscard]] Evictor& evictor() noexcept { return evictor_; }
  /// Whether counted_bytes() is within the limit of the eviction's terms, if they have one; evicts
  /// until it is. True also where it could not evict enough at once, but some. Not inside an
  /// operation. Progress: waits for another thread that evicts.
  [[nodiscard]] bool keeps_within_limit(ThreadContext& context);

  /// Bytes of records, table, wheel and charges: a spill can lower these, free lists apart.
  [[nodiscard]] std::uint64_t held_bytes() noexcept;
  /// The same without charges: what an eviction, or the end of a key, lowers.
  [[nodiscard]] std::uint64_t counted_bytes() noexcept;
  void add_to(Stats& stats) const noexcept;
  /// See check_records(); of the wheel as well. No record ends during the check.
  void check_invariants(std::vector<std::string>& broken);

 private:
  /// Takes out some flushed records. False: there was none, or something is in the way.
  [[nodiscard]] bool sweep_some_flushed(ThreadContext& context);
  /// Gives the system what the arena and the shards keep for themselves.
  void purge_idle();
  /// Whether room was looked for in vain and nothing has ended since.
  [[nodiscard]] bool is_futile() noexcept;
  /// For an operation that was refused memory. False: there is nothing that may be evicted.
  [[nodiscard]] bool evict_some(ThreadContext& context);
  /// Used and not held: in spans of which a part lives, in caches, in retire lists.
  [[nodiscard]] std::size_t idle_bytes() noexcept;
  /// Releases idle memory, and moves records where that pays.
  void step_compaction(ThreadContext& context, std::size_t budget) SEMEL_REQUIRES(mutex_);
  /// The figures of the wheel, for threads without the mutex.
  void publish() noexcept SEMEL_REQUIRES(mutex_);

  Core& core_;
  Compactor compactor_{core_};
  Evictor evictor_{core_};
  alignas(64) base::Mutex mutex_;
  Timers timers_ SEMEL_GUARDED_BY(mutex_){core_};
  std::uint64_t advances_ SEMEL_GUARDED_BY(mutex_) = 0;
  unsigned compact_pause_ SEMEL_GUARDED_BY(mutex_) = 0;  // calls until a pass is tried again
  IdleTrend idle_trend_ SEMEL_GUARDED_BY(mutex_);
  // futile_bytes_: relaxed; what lay idle when making room was last in vain. An old value
  // costs one try too many, or one too late.
  std::atomic<std::uint64_t> futile_bytes_{0};
  std::atomic<std::uint32_t> futile_skipped_{0};
  std::atomic<std::uint64_t> wheel_size_{0};
  std::atomic<std::uint64_t> wheel_bytes_{0};
  std::atomic<std::int64_t> wheel_time_{0};
};

}  // namespace semel::engine
