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

#include "engine/core/callbacks.hpp"
#include "engine/core/cold_side.hpp"
#include "engine/core/insight.hpp"
#include "engine/core/large_records.hpp"
#include "engine/core/upkeep.hpp"
#include "engine/keys/key_space.hpp"
#include "engine/keys/own_section.hpp"
#include "engine/memory/arena.hpp"
#include "engine/memory/decision_context.hpp"
#include "engine/memory/region.hpp"
#include "engine/memory/snapshot_cut.hpp"
#include "engine/memory/threads.hpp"
#include "engine/memory/use_table.hpp"
#include "engine/memory/versions.hpp"
#include "engine/rules/claim_codec.hpp"
#include "engine/rules/record.hpp"
#include "engine/table/entry.hpp"
#include "engine/time/bounded.hpp"
#include "engine/time/firing.hpp"
#include "engine/time/system_time.hpp"
#include "semel/engine.hpp"
#include "semel/engine_host.hpp"

namespace semel::engine {

class Operation;
struct Committed;

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
    return clock_now();
  }
  /// The time of a call that is in no section and applies no entry.
  [[nodiscard, gnu::always_inline]] Timestamp clock_now() const noexcept {
    if (is_system_clock_) [[likely]]
      return system_time();
    return now_of(clock_);
  }
  [[nodiscard]] Threads& threads() noexcept { return threads_; }
  [[nodiscard]] Region& region() noexcept { return region_; }
  [[nodiscard]] Arena& arena() noexcept { return arena_; }
  [[nodiscard]] VersionSource& versions() noexcept { return versions_; }
  [[nodiscard]] SnapshotCut& snapshot_cut() noexcept { return snapshot_cut_; }
  [[nodiscard]] KeySpace& keys() noexcept { return keys_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  /// Neither journal nor cold store nor group: a change is complete once it is in the table.
  [[nodiscard]] bool is_alone() const noexcept { return is_alone_; }
  [[nodiscard]] Insight& insight() noexcept { return insight_; }
  [[nodiscard]] CallbackWatch& callbacks() noexcept { return callbacks_; }
  [[nodiscard]] UseTable& uses() noexcept { return uses_; }
  [[nodiscard]] Firing& firing() noexcept { return firing_; }
  /// Null: none.
  [[nodiscard]] Journal* journal() const noexcept { return guarded_journal_.journal(); }
  [[nodiscard]] const GuardedJournal& guarded_journal() const noexcept { return guarded_journal_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  /// Call after a change became visible: updates figures and timers, and retires the old record.
  /// `old` and `fresh` may be null, not both.
  void committed(ThreadContext& context, HashBits hash, const Entry* old, bool old_was_live,
                 const Entry* fresh, Timestamp wake) noexcept;
  /// The same of a change of which more is known (committed.hpp).
  void committed(ThreadContext& context, const Committed& change) noexcept;

  [[nodiscard]] LargeRecords& large_records() noexcept { return large_records_; }

  /// Null: none.
  [[nodiscard]] ColdStore* cold() const noexcept { return cold_.store(); }
  [[nodiscard]] ColdSide& cold_side() noexcept { return cold_; }
  [[nodiscard]] DatabaseMap& databases() noexcept { return keys_.databases(); }

  /// Once, before operations.
  void serve(Upkeep& upkeep) noexcept { upkeep_ = &upkeep; }
  [[nodiscard]] Upkeep& upkeep() const noexcept { return *upkeep_; }

 private:
  const Options options_;
  const bool is_alone_ =
      options_.journal == nullptr && options_.cold == nullptr && !options_.replicated;
  CallbackWatch callbacks_{options_.on_callback_exception};
  const GuardedJournal guarded_journal_{options_.journal, options_.durability, callbacks_};
  const Clock& clock_;
  const bool is_system_clock_ = dynamic_cast<const SystemClock*>(&clock_) != nullptr;
  Region region_;
  const bool reserved_;
  Arena arena_;
  KeySpace keys_;
  Insight insight_{callbacks_};
  ColdSide cold_;
  SnapshotCut snapshot_cut_;
  UseTable uses_;
  Firing firing_;
  alignas(64) VersionSource versions_;
  Upkeep* upkeep_ = nullptr;
  // Its contexts hold memory of the arena.
  Threads threads_;
  LargeRecords large_records_{arena_, keys_, threads_};
};

}  // namespace semel::engine
