// Callers that want the journal in files behind it, and what the draining thread says of its
// rounds.
//
// Concurrency
//   [storage.drain_to]  the furthest offset that drain() was called for, and the request itself:
//                       release by callers, acquire by the draining thread.
#pragma once

#include <atomic>
#include <string>

#include "base/mutex.hpp"
#include "semel/result.hpp"
#include "storage/files/stored_files.hpp"
#include "storage/journal/log.hpp"
#include "storage/log/signal.hpp"
#include "storage/sync/health.hpp"

namespace semel::storage {

class DrainRequests {
 public:
  /// `drainer` wakes the draining thread; `progress` is raised after each of its rounds.
  DrainRequests(const Log& log, const StoredFiles& files, Signal& drainer,
                Signal& progress) noexcept
      : log_(log), files_(files), drainer_(drainer), progress_(progress), log_begin_(log.tail()) {}

  /// Returns when everything appended so far is in files behind the journal. Progress: blocks for
  /// the disk. Errors: storage_failed.
  [[nodiscard]] Status drain();

  /// Back-pressure: writers that outpace draining wait here, where they hold no lock; otherwise the
  /// journal would fill up and refuse them. After an error of syncing or draining waiting would not
  /// help. Progress: blocks, at most that long.
  void await_room(const Health& health, Millis at_most) const;
  /// On a full disk the journal may have no segment yet: draining may free the space for it. False:
  /// it has none after that time.
  [[nodiscard]] bool await_begun(Millis at_most) const;

  // --- the draining thread -----------------------------------------------------------------------
  [[nodiscard]] Signal& signal() noexcept { return drainer_; }
  /// Whether a caller of drain() waits for more than is drained by now. Callers repeat the request
  /// whenever they wake; without this check a late repeat would drain records written afterwards.
  [[nodiscard]] bool take() noexcept;
  /// Of its newest round.
  void set_status(Status status) noexcept;

  /// Empty: the newest round had no error.
  [[nodiscard]] std::string trouble() const {
    const base::MutexLock lock{mutex_};
    return status_ ? std::string{} : status_.error().detail;
  }
  [[nodiscard]] bool has_trouble() const noexcept {
    const base::MutexLock lock{mutex_};
    return !status_;
  }

 private:
  const Log& log_;
  const StoredFiles& files_;
  Signal& drainer_;
  Signal& progress_;
  const LogOffset log_begin_;
  std::atomic<bool> requested_{false};  // [storage.drain_to]
  std::atomic<LogOffset> to_{0};        // [storage.drain_to]
  mutable base::Mutex mutex_;
  Status status_ SEMEL_GUARDED_BY(mutex_){Done{}};
};

}  // namespace semel::storage
