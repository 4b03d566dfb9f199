// Callers that wait until their changes are on disk: on their own thread, or with a callback.
//
// A waiter is listed under the mutex, after a check that nothing has resolved it. complete() takes
// the mutex after each round, joined commit or failure, so that check cannot miss one.
// Invariants after complete(): if the storage had failed when it began, listed == 0;
// listed <= limits::callbacks_max.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>

#include "base/mutex.hpp"
#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "storage/joint/joined_commits.hpp"
#include "storage/log/signal.hpp"
#include "storage/sync/health.hpp"
#include "storage/sync/sync_progress.hpp"

namespace semel::storage {

class Waiters {
 public:
  /// `progress`: raised whenever something may be resolved.
  Waiters(SyncProgress& sync, JoinedCommits& joined, const Health& health, Signal& progress,
          Millis confirm_within) noexcept
      : sync_(sync),
        joined_(joined),
        health_(health),
        progress_(progress),
        confirm_within_(confirm_within) {}

  /// Returns when `ticket` has reached `level`. Within a joined commit: at once, as the commit
  /// waits at its end. Errors: outcome_unknown, refused. Progress: blocks for the disk.
  [[nodiscard]] Status wait(Ticket ticket, Durability level);
  /// Calls `then` with the same, here or on another thread.
  void when(Ticket ticket, Durability level, Function<void(Status)> then);
  /// Returns when the log is synced up to `end`, whatever joined commits do. `what` names it in
  /// errors: outcome_unknown.
  [[nodiscard]] Status await_log(LogOffset end, const char* what);
  /// Wakes waiters of these rounds, and runs the callbacks of resolved ones.
  void complete(std::uint32_t rounds = Signal::everybody) noexcept;

  [[nodiscard]] std::uint64_t callbacks_threw() const noexcept {
    return callbacks_threw_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  struct Waiter {
    Ticket ticket;
    Durability level;
    Function<void(Status)> then;
  };
  /// No reason to wait: `ticket` has reached `level`, or the storage has failed.
  [[nodiscard]] bool is_resolved(Ticket ticket, Durability level) const noexcept;
  [[nodiscard]] Status await_resolved(Ticket ticket, Durability level);
  void yield_for_rounds(Ticket ticket) const noexcept;
  void request_joined_sync(Ticket ticket) noexcept;

  SyncProgress& sync_;
  JoinedCommits& joined_;
  const Health& health_;
  Signal& progress_;
  const Millis confirm_within_;
  std::atomic<unsigned> waiting_{0};  // callers in wait()
  std::atomic<std::uint64_t> callbacks_threw_{0};
  base::Mutex mutex_;
  // For a sync or a joined commit. A list: the thread that answers them needs no memory for it.
  std::list<Waiter> listed_ SEMEL_GUARDED_BY(mutex_);  // at most limits::callbacks_max
};

}  // namespace semel::storage
