// Moves segments of the journal into files behind it: those of this process, and those that earlier
// ones left.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.hpp"
#include "semel/result.hpp"
#include "storage/drain/drain_batch.hpp"
#include "storage/drain/live_engine.hpp"
#include "storage/drain/spare_segments.hpp"
#include "storage/files/stored_files.hpp"
#include "storage/journal/log.hpp"
#include "storage/log/signal.hpp"
#include "storage/start/context.hpp"
#include "storage/sync/health.hpp"
#include "storage/sync/sync_progress.hpp"

namespace semel::storage {

/// Of the draining thread, but KeepsAll and figures.
class LogToFiles {
 public:
  /// Segments drained at once: fewer and larger files.
  static constexpr std::uint64_t batch_segments = LogExtent::segment_count / 4;

  LogToFiles(const Context& context, Log& log, StoredFiles& files, SyncProgress& sync,
             const Health& health, LiveEngine& engine, SpareSegments& spares,
             Signal& progress) noexcept
      : context_(context),
        log_(log),
        files_(files),
        sync_(sync),
        health_(health),
        engine_(engine),
        spares_(spares),
        progress_(progress) {}

  /// While this exists the files get everything that is drained: they are copied without the
  /// journal, in which the successors of dropped mutations are. Progress: waits for a batch under
  /// way.
  class KeepsAll {
   public:
    explicit KeepsAll(LogToFiles& drain) : drain_(drain) { drain_.count_keeps(1); }
    ~KeepsAll() { drain_.count_keeps(-1); }
    KeepsAll(const KeepsAll&) = delete;
    KeepsAll& operator=(const KeepsAll&) = delete;

   private:
    LogToFiles& drain_;
  };

  /// The first segment of this process that is not drained.
  [[nodiscard]] std::uint64_t next() const noexcept {
    return std::max(next_, log_.extent().oldest());
  }
  /// Drains and releases the segments before `end`, which are complete, except those with a group
  /// that ends in a later segment: they are read again with that one. Errors: storage_failed,
  /// storage_damaged, outcome_unknown, closing.
  [[nodiscard]] Status drain_to(std::uint64_t end) SEMEL_EXCLUDES(dropping_mutex_);
  /// Drains and removes all segments of earlier processes. Errors: likewise.
  [[nodiscard]] Status drain_old() SEMEL_EXCLUDES(dropping_mutex_);
  /// Of mutations drained so far.
  [[nodiscard]] DrainCounts counts() const noexcept;

 private:
  void count_keeps(int change) SEMEL_EXCLUDES(dropping_mutex_);
  [[nodiscard]] bool drops() const SEMEL_REQUIRES(dropping_mutex_) {
    return keeps_all_ == 0 && engine_.may_drop();
  }
  [[nodiscard]] Status read(DrainBatch& batch, std::uint64_t end) const;
  [[nodiscard]] Result<std::size_t> read_old(DrainBatch& batch) const SEMEL_REQUIRES(files_.mutex);
  [[nodiscard]] Status archive(const DrainBatch& batch, LogOffset drained)
      SEMEL_REQUIRES(files_.mutex);
  [[nodiscard]] Status sync_successors();
  void yield_cpu() const noexcept;

  const Context& context_;
  Log& log_;
  StoredFiles& files_;
  SyncProgress& sync_;
  const Health& health_;
  LiveEngine& engine_;
  SpareSegments& spares_;
  Signal& progress_;
  std::uint64_t next_ = 0;      // segments of this process before it are in files
  base::Mutex dropping_mutex_;  // held for a batch
  int keeps_all_ SEMEL_GUARDED_BY(dropping_mutex_) = 0;
  std::atomic<std::uint64_t> mutations_{0};
  std::atomic<std::uint64_t> ended_{0};
  std::atomic<std::uint64_t> superseded_{0};
};

}  // namespace semel::storage
