// The engine as a state machine: entries of a replicated log in, answers and state out, the same
// on every replica whatever its threads, seeds, shards and clocks are.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/api/sessions.hpp"
#include "replication/state/answer.hpp"
#include "replication/state/answer_table.hpp"
#include "replication/state/apply.hpp"
#include "replication/state/entry.hpp"
#include "replication/state/feature_level.hpp"
#include "replication/state/log_clock.hpp"
#include "semel/engine.hpp"
#include "semel/engine_host.hpp"

namespace semel::replication {

/// What a snapshot has besides the engine's mutations.
struct ReplicaState {
  LogIndex applied = 0;
  std::int64_t unix_ms = 0;                     ///< of the newest entry
  std::vector<engine::OpenSession> sessions{};  ///< that are open, ascending
  std::string answers{};                        ///< of AnswerTable::encode()
  FeatureLevel level = 0;                       ///< that the group has decided; 0: none yet
  /// Of functions, by their names; none below feature_level_libraries.
  std::vector<SharedLibraryText> libraries{};
};

/// apply() by one thread at a time. The engine may be read by all.
class StateMachine {
 public:
  /// The engine is opened with `options`, whose clock and `replicated` are set here. `newest`: the
  /// newest level of features that this replica can carry out. Errors: those of Engine::open.
  [[nodiscard]] static Result<std::unique_ptr<StateMachine>> open(
      Options options, FeatureLevel newest = feature_level_newest);

  [[nodiscard]] Engine& engine() noexcept { return *engine_; }
  [[nodiscard]] LogIndex applied() const noexcept { return applied_; }
  /// Of the newest entry that is applied.
  [[nodiscard]] std::int64_t unix_ms() const noexcept { return clock_->unix_ms(); }
  /// The same, for any thread.
  [[nodiscard]] Timestamp now() const noexcept { return clock_->now(); }
  /// That the group has decided. 0: none yet, so it uses the first one.
  [[nodiscard]] FeatureLevel level() const noexcept { return level_; }
  /// For RequestCommand; must outlive this. Before the first apply(), after restore(). It gets
  /// the libraries that there are. Errors: those of libraries_changed(). std::bad_alloc.
  [[nodiscard]] Status set_runner(RequestRunner* runner);
  /// By their names.
  [[nodiscard]] std::vector<SharedLibraryText> libraries() const { return libraries_.all(); }

  /// Applies the next entry: `index` is applied() + 1. An answer for each command, in order; one
  /// that its node has had applied before gets the answer of then, or NotApplied.
  /// Errors: of an entry that cannot be read, has another index or goes back in time, and nothing
  /// was changed; or why this replica cannot go on (local_error, memory_full; storage_newer: the
  /// group uses what only a later release knows): then its state is
  /// that of no index, and the replica must stop. After an error every further call has one.
  [[nodiscard]] Result<std::vector<Answer>> apply(LogIndex index, Bytes entry);

  /// An entry that is not for the engine: of the consensus. `members`: if it says who they are; of
  /// other nodes no answers are remembered any more. Errors: bad_option (another index).
  [[nodiscard]] Status skip(LogIndex index, std::span<const std::uint64_t> members = {});
  /// Memory that the engine does not count: of the remembered answers and the libraries, about.
  /// From any thread.
  [[nodiscard]] std::size_t bytes_besides() const noexcept {
    return bytes_besides_.load(std::memory_order_relaxed);  // mo: relaxed: a figure
  }

  /// The state after one entry, while others are applied: `state` once, then each mutation, in
  /// another order on each replica. Errors: those of EngineHost::snapshot.
  [[nodiscard]] Status snapshot(const std::function<void(const ReplicaState&)>& state,
                                const std::function<void(const Mutation&)>& visit);
  /// Of a new one, before the mutations of the snapshot, which engine().host().restore() takes.
  /// Errors: bad_option (it is not new), storage_damaged (the answers, the libraries),
  /// storage_newer (the level).
  [[nodiscard]] Status restore(const ReplicaState& state);

 private:
  StateMachine() = default;
  [[nodiscard]] Status check(LogIndex index, std::int64_t unix_ms) const;
  [[nodiscard]] Answer decide(LogIndex index, const Command& command, const Origin& origin);
  [[nodiscard]] Answer carry_out(const Command& command);
  [[nodiscard]] Answer raise_level(FeatureLevel level);
  [[nodiscard]] Answer change_libraries(const LibraryCommand& command);
  void count_bytes() noexcept;

  std::unique_ptr<LogClock> clock_ = std::make_unique<LogClock>();
  std::unique_ptr<Engine> engine_;
  RequestRunner* runner_ = nullptr;
  AnswerTable answers_;     // changed within the scope of an entry alone, as a snapshot is cut
  LibraryTable libraries_;  // the same
  std::atomic<std::size_t> bytes_besides_{0};
  LogIndex applied_ = 0;
  FeatureLevel newest_ = feature_level_newest;
  FeatureLevel level_ = 0;
  bool stopped_ = false;
};

}  // namespace semel::replication
