// The syncing thread: one msync for all waiters, and one for each interval without waiters.
#pragma once

#include <cstdint>
#include <thread>

#include "semel/types.hpp"
#include "storage/files/stored_files.hpp"
#include "storage/joint/joined_commits.hpp"
#include "storage/journal/log.hpp"
#include "storage/log/stopwatch.hpp"
#include "storage/start/context.hpp"
#include "storage/sync/checkpoint_keeper.hpp"
#include "storage/sync/health.hpp"
#include "storage/sync/sync_progress.hpp"
#include "storage/sync/waiters.hpp"

namespace semel::storage {

class Syncer {
 public:
  Syncer(const Context& context, Log& log, const StoredFiles& files, JoinedCommits& joined,
         SyncProgress& progress, Health& health, Waiters& waiters,
         CheckpointKeeper& checkpoints) noexcept
      : context_(context),
        log_(log),
        files_(files),
        joined_(joined),
        progress_(progress),
        health_(health),
        waiters_(waiters),
        checkpoints_(checkpoints) {}

  /// Throws std::system_error: there is no thread.
  void start() {
    thread_ = std::thread{[this] { run(); }};
  }
  /// Returns when the thread has ended, after Health::close(). False: it was never started.
  bool join() {
    if (!thread_.joinable()) return false;
    thread_.join();
    return true;
  }
  [[nodiscard]] Millis busy_for() const noexcept { return at_work_.busy_for(); }

 private:
  enum class Synced : std::uint8_t { yes, later, never };

  void run() noexcept;
  [[nodiscard]] Synced sync_round(bool of_interval) noexcept;
  [[nodiscard]] Synced sync_joined() noexcept;
  [[nodiscard]] LogOffset next_target() const noexcept;
  Synced fail(const Error& error) noexcept;

  const Context& context_;
  Log& log_;
  const StoredFiles& files_;
  JoinedCommits& joined_;
  SyncProgress& progress_;
  Health& health_;
  Waiters& waiters_;
  CheckpointKeeper& checkpoints_;
  WorkTimer at_work_;
  bool failure_reported_ = false;  // to the waiters
  std::thread thread_;
};

}  // namespace semel::storage
