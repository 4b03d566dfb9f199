// Whether a storage still works: it fails at most once, permanently, and it closes once.
//
// Concurrency
//   [storage.failed]    release store after a failure, acquire load before each change and wait.
//   [storage.stop]      release store of close(), acquire loads of the background threads.
//
// Invariant, with the mutex held: failed_ == !cause_; neither goes back.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/mutex.hpp"
#include "semel/result.hpp"
#include "storage/journal/log.hpp"
#include "storage/log/signal.hpp"

namespace semel::storage {

/// Thread-safe.
class Health {
 public:
  /// `syncer`, `drainer`: raised to wake these threads; `progress`: for all others that wait.
  Health(Log& log, Signal& syncer, Signal& drainer, Signal& progress,
         Millis confirm_within) noexcept
      : log_(log),
        syncer_(syncer),
        drainer_(drainer),
        progress_(progress),
        confirm_within_(confirm_within) {}

  [[nodiscard]] bool has_failed() const noexcept {
    return failed_.load(std::memory_order_acquire);  // mo: acquire [storage.failed]
  }
  /// The storage is being closed: no caller is left.
  [[nodiscard]] bool is_closing() const noexcept {
    return closing_.load(std::memory_order_acquire);  // mo: acquire [storage.stop]
  }
  /// After a failed sync the contents of the disk are unknown, and a second sync would report
  /// success. Nothing is acknowledged until the storage is opened again. The first error counts.
  void fail(const Error& error) noexcept;
  /// Returns `ticket`. The change is visible in memory already: if the journal refused it (0), the
  /// storage has failed.
  [[nodiscard]] Ticket fail_if_refused(Ticket ticket) {
    if (ticket == 0) [[unlikely]]
      refused();
    return ticket;
  }
  /// Ends the background threads, and all waits for a segment.
  void close() noexcept;
  /// Empty: it has not failed.
  [[nodiscard]] std::string cause() const;
  /// The answer to a caller whose change may be lost.
  [[nodiscard]] Error unknown() const noexcept;

  /// A round of a background thread found no memory, and is repeated.
  void count_starved() noexcept {
    starved_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  [[nodiscard]] std::uint64_t starved() const noexcept {
    return starved_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  void refused();

  Log& log_;
  Signal& syncer_;
  Signal& drainer_;
  Signal& progress_;
  const Millis confirm_within_;
  std::atomic<bool> failed_{false};   // [storage.failed]
  std::atomic<bool> closing_{false};  // [storage.stop]
  std::atomic<std::uint64_t> starved_{0};
  mutable base::Mutex mutex_;
  Status cause_ SEMEL_GUARDED_BY(mutex_){Done{}};  // an error: nothing is synced any more
};

}  // namespace semel::storage
