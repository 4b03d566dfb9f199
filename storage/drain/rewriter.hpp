// Writes all live records anew, when files hold much more than these, and makes everything older
// void.
//
// Concurrency
//   [storage.rewriting] release store at the end of a rewrite, acquire load before the next.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "semel/engine.hpp"
#include "semel/result.hpp"
#include "storage/drain/drain_requests.hpp"
#include "storage/drain/live_engine.hpp"
#include "storage/files/stored_files.hpp"
#include "storage/journal/log.hpp"
#include "storage/start/context.hpp"
#include "storage/sync/health.hpp"
#include "storage/sync/waiters.hpp"

namespace semel::storage {

class Rewriter {
 public:
  Rewriter(const Context& context, const Log& log, StoredFiles& files, LiveEngine& engine,
           DrainRequests& requests, Waiters& waiters, Health& health) noexcept
      : context_(context),
        log_(log),
        files_(files),
        engine_(engine),
        requests_(requests),
        waiters_(waiters),
        health_(health) {}

  /// Rewrites all records of `engine`, which lives until the call returns. Progress: blocks; the
  /// engine goes on. Errors: storage_failed, snapshot_running, closing.
  [[nodiscard]] Status rewrite(Engine& engine);
  /// Starts a thread that does so, if there is enough to free and none is at it. Of the draining
  /// thread. `is_write_rate_low`: less is worth it then.
  void start_if_due(bool is_write_rate_low);
  /// Returns when the thread has ended; the draining thread has ended before.
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::uint64_t rewrites() const noexcept {
    return rewrites_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  void run() noexcept;
  [[nodiscard]] bool is_due(bool is_write_rate_low) const SEMEL_EXCLUDES(engine_.mutex);

  const Context& context_;
  const Log& log_;
  StoredFiles& files_;
  LiveEngine& engine_;
  DrainRequests& requests_;
  Waiters& waiters_;
  Health& health_;
  std::thread thread_;                  // of the draining thread
  std::atomic<bool> rewriting_{false};  // [storage.rewriting]
  std::atomic<std::uint64_t> rewrites_{0};
  std::atomic<double> bytes_ratio_{1};  // of files to records, after a rewrite
};

}  // namespace semel::storage
