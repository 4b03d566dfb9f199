#include "engine/waits/parked_threads.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace semel::engine {
namespace {

/// How long the leader of the blocked waiters sleeps at most before it reads the clock by itself:
/// it must work without a background thread, and the engine's clock need not follow the real one.
constexpr Millis poll_interval_max{10};

}  // namespace

void ParkedThreads::enter(ParkedThread& parked) noexcept {
  const base::MutexLock lock{mutex_};
  parked.after = inside_;
  if (parked.after != nullptr) parked.after->before = &parked;
  inside_ = &parked;
  if (leader_ == nullptr) elect(nullptr);
}

void ParkedThreads::leave(ParkedThread& parked) noexcept {
  const base::MutexLock lock{mutex_};
  SEMEL_ASSERT(inside_ != nullptr && (parked.before != nullptr || inside_ == &parked));
  (parked.before != nullptr ? parked.before->after : inside_) = parked.after;
  if (parked.after != nullptr) parked.after->before = parked.before;
  if (leader_ == &parked) elect(nullptr);
  SEMEL_ASSERT(leader_ != &parked);
  if (inside_ == nullptr) emptied_.notify_all();
}

void ParkedThreads::elect(ParkedThread* not_this) noexcept {
  ParkedThread* next = inside_;
  if (next == not_this && next != nullptr) next = next->after;
  if (leader_ != nullptr && leader_ != next) {
    const base::MutexLock lock{leader_->mutex};
    leader_->leads = false;
  }
  leader_ = next;
  const Timestamp wakes = next == nullptr ? Timestamp::min() : no_end;
  // mo: relaxed: a hint for publish().
  leader_wakes_.store(wakes.time_since_epoch().count(), std::memory_order_relaxed);
  if (next == nullptr) return;
  const base::MutexLock lock{next->mutex};
  next->leads = true;
  next->awake.notify_one();
}

void ParkedThreads::publish(Timestamp next) noexcept {
  // mo: relaxed: a hint; the timers are read again under the queue's mutex.
  next_.store(next.time_since_epoch().count(), std::memory_order_relaxed);
  // mo: relaxed: a hint; the leader sleeps for poll_interval_max at most.
  if (next.time_since_epoch().count() < leader_wakes_.load(std::memory_order_relaxed)) {
    nudge_leader();
  }
}

void ParkedThreads::nudge_leader() noexcept {
  const base::MutexLock lock{mutex_};
  if (leader_ == nullptr) return;
  const base::MutexLock parked_lock{leader_->mutex};
  leader_->awake.notify_one();
}

Millis ParkedThreads::poll_interval(Timestamp now) const noexcept {
  // mo: relaxed: a hint; too late by poll_interval_max at most.
  const Timestamp due{Millis{next_.load(std::memory_order_relaxed)}};
  if (due <= now) return Millis{1};
  return std::min(poll_interval_max, due - now);
}

bool ParkedThreads::sleep(ParkedThread& parked, const Clock& clock) noexcept {
  for (;;) {
    {
      base::MutexLock lock{parked.mutex};
      while (!parked.answered && !parked.leads) parked.awake.wait(lock);
      if (parked.answered) return true;
      const Timestamp now = clock.now();
      const Millis pause = poll_interval(now);
      // mo: relaxed: a hint for publish().
      leader_wakes_.store((now + pause).time_since_epoch().count(), std::memory_order_relaxed);
      parked.awake.wait_for(lock, pause);  // an early end costs one needless check
      if (parked.answered) return true;
    }
    if (!is_due(clock.now())) continue;
    const base::MutexLock lock{mutex_};
    elect(&parked);  // the callbacks that the caller runs now may take long
    return false;
  }
}

void ParkedThreads::resume() noexcept {
  const base::MutexLock lock{mutex_};
  if (leader_ == nullptr) elect(nullptr);
}

void ParkedThreads::wait_until_empty() noexcept {
  base::MutexLock lock{mutex_};
  while (inside_ != nullptr) emptied_.wait(lock);
}

}  // namespace semel::engine
