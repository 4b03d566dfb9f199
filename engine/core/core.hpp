// The parts of one engine that all its operations use: memory, keys, threads, versions, journal,
// cold store, insight.
//
// Data flow of an operation: hash -> shard -> find -> decide (a pure function) -> one
// compare-and-set -> Mutation, timer, counters (record_step.hpp, core_update.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "engine/core/callbacks.hpp"
#include "engine/core/cold_side.hpp"
#include "engine/core/compactor.hpp"
#include "engine/core/insight.hpp"
#include "engine/keys/key_space.hpp"
#include "engine/keys/own_section.hpp"
#include "engine/memory/arena.hpp"
#include "engine/memory/decision_context.hpp"
#include "engine/memory/region.hpp"
#include "engine/memory/snapshot_cut.hpp"
#include "engine/memory/threads.hpp"
#include "engine/memory/versions.hpp"
#include "engine/rules/claim_codec.hpp"
#include "engine/rules/record.hpp"
#include "engine/table/entry.hpp"
#include "engine/time/bounded.hpp"
#include "engine/time/ttl_wheel.hpp"
#include "semel/engine.hpp"
#include "semel/engine_host.hpp"

namespace semel::engine {

class Operation;

/// What an operation that was refused memory has tried already.
enum class Room : std::uint8_t { nothing, retired, swept, gathered, moved, all };

class Core {
 public:
  /// Keys of one operation on several, see for_group().
  static constexpr std::size_t group_max = 16;

  explicit Core(const Options& options, const Clock& clock);
  ~Core();

  /// Errors: out_of_address_space, bad_option (the limit holds no table).
  [[nodiscard]] Status start();

  // --- operations and sections ------------------------------------------------------------
  [[nodiscard]] ThreadContext& context() { return threads_.context(); }
  /// Whether a call of this thread may begin. Errors: forked; memory_full (the first call of a
  /// thread needs room on the heap).
  [[nodiscard]] ErrorCode begin_call() noexcept {
    return threads_.try_context() != nullptr ? ErrorCode::ok : why_no_context();
  }
  [[nodiscard]] ErrorCode why_no_context() const noexcept {
    return threads_.is_forked() ? ErrorCode::forked : ErrorCode::memory_full;
  }
  /// The time of a call that begins now: in a section it stands still, and an entry of a
  /// replicated log brings its own.
  [[nodiscard]] Timestamp now(const ThreadContext& context) const noexcept {
    if (context.section != nullptr) [[unlikely]]
      return context.section->now();
    if (context.decision != nullptr) [[unlikely]]
      return bounded(context.decision->now);
    return now_of(clock_);
  }
  [[nodiscard]] Threads& threads() noexcept { return threads_; }
  [[nodiscard]] Region& region() noexcept { return region_; }
  [[nodiscard]] Arena& arena() noexcept { return arena_; }
  [[nodiscard]] VersionSource& versions() noexcept { return versions_; }
  [[nodiscard]] SnapshotCut& snapshot_cut() noexcept { return snapshot_cut_; }
  [[nodiscard]] KeySpace& keys() noexcept { return keys_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] Insight& insight() noexcept { return insight_; }
  [[nodiscard]] CallbackWatch& callbacks() noexcept { return callbacks_; }
  /// Null: none.
  [[nodiscard]] Journal* journal() const noexcept { return guarded_journal_.journal(); }
  [[nodiscard]] const GuardedJournal& guarded_journal() const noexcept { return guarded_journal_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  /// What follows a change that is visible now. `old` and `fresh` may be null, not both.
  void committed(ThreadContext& context, HashBits hash, const Entry* old, bool old_was_live,
                 const Entry* fresh, Timestamp wake) noexcept;

  /// Puts a mutation back as it was; a record of the same or a larger version stays. An erase of an
  /// absent key leaves a delete marker until `marker_end`, so that an older put has no effect
  /// later. What was flushed is passed over; see ask_cold_in_restores().
  [[nodiscard]] ErrorCode restore(const Mutation& mutation, Timestamp now, Timestamp marker_end);
  /// Whether restore() passes over what the cold store has as it is or newer: it had left the
  /// table, where there may be no room for it. No spill may run. Before other threads restore.
  void ask_cold_in_restores(bool asks) noexcept { asks_cold_ = asks && options_.cold != nullptr; }
  /// restore() of a marker that hides a copy in the cold store. Also while a spill runs.
  [[nodiscard]] ErrorCode restore_marker(const Mutation& erase, Timestamp now,
                                         Timestamp marker_end);

  /// See EngineHost::superseded().
  [[nodiscard]] std::uint32_t superseded(std::span<const HeldMutation> asked) noexcept;

  /// Brings what restore() will look at into the cache; at most group_max mutations.
  void prefetch_keys(std::span<const Mutation> group) noexcept;

  /// Ends `seen` in `word` outside of any decision (a restored flush). Under a section only, and
  /// not inside an operation: one of our own would keep the memory of all of them.
  void erase_exclusive(ShardTable::Word& word, SlotWord seen);

  // --- beyond the table (cold.cpp, spill.cpp) ----------------------------------------------
  /// Null: none.
  [[nodiscard]] ColdStore* cold() const noexcept { return cold_.store(); }
  [[nodiscard]] ColdSide& cold_side() noexcept { return cold_; }
  /// Records, table, wheel and what is charged: what a spill could make less, free lists apart.
  [[nodiscard]] std::uint64_t held_bytes() noexcept;

  // --- memory reclamation (compaction.cpp, reclaim.cpp) -----------------------------------------
  /// Replaces the record by a copy elsewhere. False: it stays where it is. Inside an operation that
  /// was admitted, and not while a snapshot runs.
  [[nodiscard]] bool move_record(ThreadContext& context, ShardTable::Word& word, SlotWord seen);
  void renew_timer(ThreadContext& context, const Entry& record);
  enum class AskCold : std::uint8_t { no, yes };
  [[nodiscard]] ErrorCode restore(const Mutation& mutation, Timestamp now, Timestamp marker_end,
                                  AskCold ask);
  /// Leaves the operation. False also if it cannot be read.
  [[nodiscard]] bool cold_has(Operation& operation, std::uint64_t rank, const Mutation& mutation);
  /// After a refusal for want of memory, outside of the operation: ends what is due, takes back
  /// what threads keep, moves records, each time the next of these. False: there is nothing more to
  /// try. Progress: bounded, without waiting.
  [[nodiscard]] bool make_room(ThreadContext& context, Room& tried);
  /// Region::try_charge(), but looks for room before it says no. Not inside an operation.
  [[nodiscard]] bool try_charge(std::size_t bytes);
  /// Moves everything together that can be. Returns the bytes that came free.
  std::size_t compact();
  /// Does a larger part of a pass that advance() has begun, for a thread that has the time.
  void go_on_compacting();

  // --- time -------------------------------------------------------------------------------
  /// `wait_for_turn`: if another thread is advancing, wait for it instead of returning.
  std::size_t advance(Timestamp now, std::size_t budget, bool wait_for_turn);
  /// Moves this thread's timers into the wheel unless another thread is using it.
  void drain_own_timers(ThreadContext& context);

  // --- databases (api/databases.cpp) --------------------------------------------------------
  [[nodiscard]] DatabaseMap& databases() noexcept { return keys_.databases(); }
  /// Under a section over everything: ends all records of a database, whose versions are all below
  /// `below`. Returns how many there were, with those ended by their ttl and not yet removed.
  std::uint64_t flush_database(std::uint8_t stored, Version below) noexcept;
  /// Takes out what was flushed, unless a snapshot or another thread's section is in the way: then
  /// advance() does. Progress: waits for a step of another thread that does the same.
  void sweep_flushed();
  /// Takes one of them out. False: it has changed, is frozen, or the heap has no room to remember
  /// it. Inside an operation that was admitted.
  [[nodiscard]] bool sweep_flushed(ThreadContext& context, ShardTable::Word& word, SlotWord seen);
  // --- insight ----------------------------------------------------------------------------
  [[nodiscard]] Stats stats();
  [[nodiscard]] std::uint64_t records_in(std::uint8_t stored_db);
  void check_invariants(std::vector<std::string>& broken);

 private:
  static constexpr std::size_t drain_budget = 256;  // timers that a drain may look at again
  void note_flushed(ThreadContext& context, const Entry& old) noexcept;
  void expire_batch(ThreadContext& context, std::span<const std::uint64_t> batch, Timestamp now);
  /// Retries a timer later that fired while a section held the shard for long. Inside an operation.
  void put_off(ThreadContext& context, HashBits hash, Timestamp now);
  /// Takes out an ended record or delete marker. False: it has changed or is frozen.
  [[nodiscard]] bool sweep(ThreadContext& context, HashBits hash, ShardTable::Word& word,
                           SlotWord seen, Timestamp now);
  void trim_record(std::uint8_t stored_db, Bytes key, Timestamp now);
  /// Records that the timer may be of, counted up to `at_most`.
  [[nodiscard]] unsigned timers_alive(std::uint64_t hash_bits, Timestamp wake, unsigned at_most);
  void drain(ThreadContext& context) SEMEL_REQUIRES(wheel_mutex_);
  void step_wheel_compaction(std::size_t budget) SEMEL_REQUIRES(wheel_mutex_);
  /// Takes out some of what was flushed. False: there was none, or something is in the way.
  [[nodiscard]] bool sweep_some_flushed(ThreadContext& context);
  /// Whether room was looked for in vain and nothing has ended since.
  [[nodiscard]] bool is_futile() noexcept;
  /// Used and not held: in spans of which a part lives, in caches, in retire lists.
  [[nodiscard]] std::size_t idle_bytes() noexcept;
  /// Releases idle memory, and moves records where that pays.
  void step_compaction(ThreadContext& context, std::size_t budget) SEMEL_REQUIRES(wheel_mutex_);
  const Options options_;
  CallbackWatch callbacks_{options_.on_callback_exception};
  const GuardedJournal guarded_journal_{options_.journal, options_.durability, callbacks_};
  const Clock& clock_;
  Region region_;
  const bool reserved_;
  Arena arena_;
  KeySpace keys_;
  Insight insight_{callbacks_};
  ColdSide cold_;
  bool asks_cold_ = false;  // set while no other thread restores
  SnapshotCut snapshot_cut_;
  alignas(64) VersionSource versions_;
  alignas(64) base::Mutex wheel_mutex_;
  std::unique_ptr<TtlWheel> wheel_ SEMEL_GUARDED_BY(wheel_mutex_);
  bool compacting_ SEMEL_GUARDED_BY(wheel_mutex_) = false;
  std::uint64_t advances_ SEMEL_GUARDED_BY(wheel_mutex_) = 0;
  std::size_t compact_above_ SEMEL_GUARDED_BY(wheel_mutex_) = 0;
  std::size_t compacted_to_ SEMEL_GUARDED_BY(wheel_mutex_) = 0;  // what it held after the last time
  unsigned compact_pause_ SEMEL_GUARDED_BY(wheel_mutex_) = 0;  // calls until a pass is tried again
  Compactor compactor_{*this};
  // futile_bytes_: relaxed; what lay idle when making room was last in vain. An old value
  // costs one try too many, or one too late.
  std::atomic<std::uint64_t> futile_bytes_{0};
  std::atomic<std::uint32_t> futile_skipped_{0};
  std::atomic<std::uint64_t> wheel_size_{0};
  std::atomic<std::uint64_t> wheel_bytes_{0};
  std::atomic<std::int64_t> wheel_time_{0};
  // Last: its contexts hold memory of the arena.
  Threads threads_;
};

}  // namespace semel::engine
