// The way back in: mutations of a journal are put back as they were, in any order, and the journal
// learns which of them it may forget.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "engine/core/core.hpp"
#include "engine/core/operation.hpp"

namespace semel::engine {

/// Thread-safe, except where a method names its caller.
class Restorer {
 public:
  explicit Restorer(Core& core) noexcept : core_(core) {}

  /// Puts a mutation back as it was; a record of the same or a larger version stays. An erase of an
  /// absent key leaves a delete marker until `marker_end`, so that an older put has no effect
  /// later. A flushed record is passed over; see ask_cold().
  [[nodiscard]] ErrorCode restore(const Mutation& mutation, Timestamp now, Timestamp marker_end);
  /// Whether restore() passes over what the cold store has as it is or newer: it had left the
  /// table, where there may be no room for it. No spill may run. Before other threads restore.
  void ask_cold(bool asks) noexcept { asks_cold_ = asks && core_.cold() != nullptr; }
  /// See semel::restore_deltas().
  [[nodiscard]] ErrorCode restore_deltas(std::span<const Mutation> deltas, Timestamp now,
                                         std::size_t& done);
  /// restore() of a marker that hides a copy in the cold store. Also while a spill runs.
  [[nodiscard]] ErrorCode restore_marker(const Mutation& erase, Timestamp now,
                                         Timestamp marker_end);
  /// Brings what restore() will look at into the cache; at most Core::group_max mutations.
  void prefetch_keys(std::span<const Mutation> group) noexcept;
  /// See EngineHost::superseded().
  [[nodiscard]] std::uint32_t superseded(std::span<const HeldMutation> asked) noexcept;
  /// Ends `seen` in `word` outside of any decision (a restored flush). Under a section only, and
  /// not inside an operation: one of our own would keep the memory of all of them.
  void erase_exclusive(ShardTable::Word& word, SlotWord seen);

  /// Counts a call of EngineHost::restore().
  void note_call() noexcept {
    calls_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: see is_recovering()
  }
  [[nodiscard]] std::uint64_t calls() const noexcept {
    return calls_.load(std::memory_order_relaxed);  // mo: relaxed: added before it is published
  }
  /// Asked by the engine's background thread each time it comes by. Nothing is swept while a
  /// recovery puts mutations back, in whatever order: a swept record no longer keeps an older one
  /// away.
  [[nodiscard]] bool is_recovering() noexcept;

 private:
  enum class AskCold : std::uint8_t { no, yes };
  [[nodiscard]] ErrorCode restore(const Mutation& mutation, Timestamp now, Timestamp marker_end,
                                  AskCold ask);
  /// Leaves the operation. False also if it cannot be read.
  [[nodiscard]] bool cold_has(Operation& operation, std::uint64_t rank, const Mutation& mutation);
  /// Of deltas that follow on the record `old`: makes the record after them. Null: `error` says
  /// why.
  [[nodiscard]] const Entry* make_successor(const Entry& old, std::span<const Mutation> deltas,
                                            ErrorCode& error);

  Core& core_;
  bool asks_cold_ = false;               // set while no other thread restores
  std::atomic<std::uint64_t> calls_{0};  // of EngineHost::restore()
  std::uint64_t calls_seen_ = 0;         // the background thread's
  unsigned pause_ = 0;                   // likewise: visits without a call
};

}  // namespace semel::engine
