// Threads that are blocked in a wait. One of them, the leader, sleeps with a timeout for the
// nearest timer of all waits; the others sleep until they are answered. The leader hands the lead
// over before it acts on a timer, as it may run others' callbacks then.
//
// Invariant: the leader is inside, and only it leads.
// Order of locks: that of the wait queue, mutex_, that of a ParkedThread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.hpp"
#include "semel/clock.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// Of a blocked caller, on its stack.
struct ParkedThread {
  base::Mutex mutex;
  base::Condition awake;
  bool answered SEMEL_GUARDED_BY(mutex) = false;
  bool leads SEMEL_GUARDED_BY(mutex) = false;
  ParkedThread* before = nullptr;  // of all that are inside, under the mutex of ParkedThreads
  ParkedThread* after = nullptr;

  /// It may be gone when this returns.
  void answer() noexcept {
    const base::MutexLock lock{mutex};
    answered = true;
    awake.notify_one();  // under the lock: once `answered` can be read, this is gone
  }
};

/// Safe from any thread.
class ParkedThreads {
 public:
  /// The thread is on the list of those that wait_until_empty() waits for.
  class Inside {
   public:
    Inside(ParkedThreads& all, ParkedThread& parked) noexcept : all_(all), parked_(parked) {
      all_.enter(parked_);
    }
    /// The last touch of `all`.
    ~Inside() { all_.leave(parked_); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    ParkedThreads& all_;
    ParkedThread& parked_;
  };

  /// The earliest timer there is. Called under the queue's mutex.
  void publish(Timestamp next) noexcept;
  /// Whether a timer may be due. A hint: a stale one is put right by the next publish().
  [[nodiscard]] bool is_due(Timestamp now) const noexcept {
    // mo: relaxed: a hint; the timers are read under the queue's mutex.
    return next_.load(std::memory_order_relaxed) <= now.time_since_epoch().count();
  }

  /// True: answered. False: a timer is due; the caller acts on it, calls resume() and sleeps again.
  [[nodiscard]] bool sleep(ParkedThread& parked, const Clock& clock) noexcept;
  void resume() noexcept;
  void wait_until_empty() noexcept;

 private:
  void enter(ParkedThread& parked) noexcept;
  void leave(ParkedThread& parked) noexcept;
  void elect(ParkedThread* not_this) noexcept SEMEL_REQUIRES(mutex_);
  void nudge_leader() noexcept;
  [[nodiscard]] Millis poll_interval(Timestamp now) const noexcept;

  base::Mutex mutex_;
  base::Condition emptied_;
  ParkedThread* inside_ SEMEL_GUARDED_BY(mutex_) = nullptr;
  ParkedThread* leader_ SEMEL_GUARDED_BY(mutex_) = nullptr;  // of them
  std::atomic<std::int64_t> next_{no_end.time_since_epoch().count()};
  // When the leader will look at the timers; the earliest time there is: there is no leader.
  std::atomic<std::int64_t> leader_wakes_{Timestamp::min().time_since_epoch().count()};
};

}  // namespace semel::engine
