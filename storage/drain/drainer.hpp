// The draining thread: decides when segments of the journal are made and drained, when a rewrite
// begins, and when ended spans leave.
#pragma once

#include <cstdint>
#include <thread>

#include "semel/result.hpp"
#include "storage/drain/drain_requests.hpp"
#include "storage/drain/live_engine.hpp"
#include "storage/drain/log_to_files.hpp"
#include "storage/drain/rewriter.hpp"
#include "storage/drain/spare_segments.hpp"
#include "storage/files/stored_files.hpp"
#include "storage/journal/log.hpp"
#include "storage/log/signal.hpp"
#include "storage/log/stopwatch.hpp"
#include "storage/start/context.hpp"
#include "storage/sync/health.hpp"
#include "storage/sync/sync_progress.hpp"

namespace semel::storage {

class Drainer {
 public:
  /// `progress` is raised after each step that callers may wait for. `has_reserve`: the opening
  /// found it.
  Drainer(const Context& context, Log& log, StoredFiles& files, SyncProgress& sync, Health& health,
          LiveEngine& engine, DrainRequests& requests, Rewriter& rewriter, Signal& progress,
          bool has_reserve) noexcept
      : context_(context),
        log_(log),
        files_(files),
        health_(health),
        engine_(engine),
        requests_(requests),
        rewriter_(rewriter),
        spares_(context, log, sync, progress),
        log_to_files_(context, log, files, sync, health, engine, spares_, progress),
        has_reserve_(has_reserve) {}

  [[nodiscard]] LogToFiles& log_to_files() noexcept { return log_to_files_; }
  [[nodiscard]] DrainCounts counts() const noexcept { return log_to_files_.counts(); }

  /// Makes segments until the journal accepts new work. Where a full disk allows less, the status
  /// of draining says why. Errors: storage_failed.
  [[nodiscard]] Status begin_log(bool is_new);
  /// Throws std::system_error: there is no thread.
  void start() {
    thread_ = std::thread{[this] { run(); }};
  }
  /// Returns when the thread has ended, after Health::close().
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] Millis busy_for() const noexcept { return at_work_.busy_for(); }

 private:
  void run() noexcept;
  [[nodiscard]] Status try_round() noexcept;
  [[nodiscard]] Status round();
  void record(const Status& status) noexcept;
  [[nodiscard]] Status drain_some(bool all);
  [[nodiscard]] std::uint64_t count_complete(std::uint64_t first, std::uint64_t at_most) const;
  [[nodiscard]] Status drain_old_again();
  [[nodiscard]] Status forget_ended();
  void keep_reserve();

  const Context& context_;
  Log& log_;
  StoredFiles& files_;
  Health& health_;
  const LiveEngine& engine_;
  DrainRequests& requests_;
  Rewriter& rewriter_;
  SpareSegments spares_;
  LogToFiles log_to_files_;
  bool has_reserve_;
  Status old_status_{Done{}};      // of the newest drain_old()
  Stopwatch old_failed_;           // when it failed
  std::size_t old_failed_at_ = 0;  // bytes that were free then
  SpanNumber running_span_ = 0;    // when ended spans were forgotten
  WorkTimer at_work_;
  std::thread thread_;
};

}  // namespace semel::storage
