// Moving records from the table into the cold store: see semel/cold.hpp and
// docs/decisions/0007-window-larger-than-memory.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "engine/core/core.hpp"
#include "engine/core/namespaces.hpp"
#include "engine/core/operation.hpp"
#include "engine/upkeep/engine_upkeep.hpp"
#include "engine/upkeep/restorer.hpp"
#include "semel/engine.hpp"

namespace semel::engine {

/// One spill: a walk over the table in the order of ranks, in parts. For each part: collect, write
/// and sync; wait until every operation knows the part's filter; bar the way back
/// for records that changed since; let lookups find the part; take the others out of the table.
class Spill {
 public:
  Spill(Core& core, const Namespaces& namespaces, Restorer& restorer);

  [[nodiscard]] Result<SpillReport> run();
  /// Lets go of generations that have ended.
  [[nodiscard]] Status drop_ended();

 private:
  /// Where a walk is: a shard and a directory index with its bits reversed (scan.cpp).
  struct Stop {
    std::uint32_t shard = 0;
    std::uint32_t reversed_index = 0;
    friend bool operator==(const Stop&, const Stop&) = default;
  };

  [[nodiscard]] Result<SpillReport> run_generation();
  [[nodiscard]] Status check_memory() const;
  [[nodiscard]] Status walk();
  /// From the beginning of a segment of this depth to that of the next.
  static void step_over(Stop& at, std::uint32_t depth) noexcept;
  void collect(Stop& at);
  void take(const Entry& entry, Timestamp now);
  [[nodiscard]] bool may_leave(const Entry& entry, Timestamp now) const noexcept;
  void keep(const Entry& entry, Timestamp now);
  [[nodiscard]] Status finish_part(Stop end);
  /// Marks those that no longer match the table, so that they are not brought back.
  [[nodiscard]] Status bar_changed();
  void remove_unchanged();
  /// False: it has changed.
  [[nodiscard]] bool remove(Operation& operation, const ColdPlace& collected);
  void tidy_segments(Stop end);
  void count_out(std::size_t index);

  Core& core_;
  const Namespaces& namespaces_;
  Restorer& restorer_;
  ColdStore& cold_;
  ThreadContext& own_;
  const unsigned shard_bits_;
  const std::size_t part_bytes_;
  const bool keeps_;  // the journal wants what stays
  Stop part_begin_;
  std::vector<SlotWord> words_;
  std::vector<Mutation> kept_;
  std::deque<std::string> kept_bytes_;  // of large objects among them
  std::string whole_;                   // of a large object that is collected
  std::vector<std::uint32_t> changed_;  // of the collected
  SpillReport report_;
};

/// Runs spills, one at a time, and a thread that starts them.
class Spiller {
 public:
  Spiller(Core& core, const Namespaces& namespaces, EngineUpkeep& upkeep,
          Restorer& restorer) noexcept
      : core_(core), namespaces_(namespaces), upkeep_(upkeep), restorer_(restorer) {}
  ~Spiller() { stop(); }
  Spiller(const Spiller&) = delete;
  Spiller& operator=(const Spiller&) = delete;

  [[nodiscard]] Result<SpillReport> spill();
  [[nodiscard]] bool is_due() noexcept;
  /// Lets go of generations that have ended.
  [[nodiscard]] Status drop_ended();
  void start(Millis every);
  void stop();

  [[nodiscard]] std::uint64_t spills() const noexcept {
    return spills_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  [[nodiscard]] std::uint64_t failed() const noexcept {
    return failed_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  [[nodiscard]] bool is_recovered() const noexcept;
  /// The thread: until stop().
  void run(Millis every);
  /// What it does each time; returns how long it may rest.
  [[nodiscard]] Millis step(Millis every);

  Core& core_;
  const Namespaces& namespaces_;
  EngineUpkeep& upkeep_;
  Restorer& restorer_;
  Timestamp next_drop_{};                       // of the thread
  Millis failed_pause_{0};                      // of the thread; 0: the last spill did not fail
  base::Mutex one_;                             // spill at a time
  std::atomic<std::uint64_t> refused_seen_{0};  // when the last spill began
  std::atomic<std::uint64_t> spills_{0};
  std::atomic<std::uint64_t> failed_{0};
  base::Mutex mutex_;
  base::Condition wake_;
  bool stop_ SEMEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace semel::engine
