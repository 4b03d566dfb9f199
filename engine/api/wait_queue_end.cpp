// The wait queue's other half, how waits end: by time, by notification, by cancel(); and how
// threads sleep meanwhile. See wait_queue.hpp.
#include <algorithm>
#include <array>

#include "engine/api/wait_queue.hpp"

namespace semel::engine {
namespace {

/// How long the leader of the blocked waiters sleeps at most before it reads the clock by itself:
/// it must work without a background thread, and the engine's clock need not follow the real one.
constexpr Millis poll_interval_max{10};

}  // namespace

// --- time ---------------------------------------------------------------------------------------

void WaitQueue::publish_next(Shard& shard) noexcept {
  const Timestamp next = shard.timers.empty() ? no_end : shard.timers.begin()->first.first;
  // mo: relaxed: a hint; the timers are read again under the mutex.
  shard.next.store(next.time_since_epoch().count(), std::memory_order_relaxed);
  // mo: relaxed: a hint; the leader sleeps for poll_interval_max at most.
  if (next.time_since_epoch().count() < leader_wakes_.load(std::memory_order_relaxed)) {
    nudge_leader();
  }
}

void WaitQueue::set_recheck(Shard& shard, Entry& entry, Timestamp when) noexcept {
  Queue& queue = entry.second;
  if (queue.timer->first.first == when) return;
  auto timer = shard.timers.extract(queue.timer);
  timer.key().first = when;
  queue.timer = shard.timers.insert(std::move(timer)).position;
}

bool WaitQueue::is_due(Timestamp now) const noexcept {
  return std::any_of(shards_.begin(), shards_.end(), [&](const Shard& shard) {
    // mo: relaxed: a hint; the timers are read under the mutex.
    return shard.next.load(std::memory_order_relaxed) <= now.time_since_epoch().count();
  });
}

void WaitQueue::poll(Timestamp now) noexcept {
  if (!has_waiters()) return;
  std::array<std::pair<std::uint8_t, SharedKey>, 64> due;
  for (Shard& shard : shards_) {
    // mo: relaxed: as in is_due()
    if (shard.next.load(std::memory_order_relaxed) > now.time_since_epoch().count()) continue;
    for (std::size_t count = due.size(); count == due.size();) {
      count = 0;
      {
        const base::MutexLock lock{shard.mutex};
        for (auto timer = shard.timers.begin();
             timer != shard.timers.end() && timer->first.first <= now && count < due.size();) {
          const Target target = timer->second;
          ++timer;
          if (!target.lease) continue;
          set_recheck(shard, *target.entry, no_end);
          due[count++] = {target.entry->first.db, target.entry->second.key};
        }
        publish_next(shard);
      }
      // Leases before deadlines: a waiter that can be promoted in this millisecond is not answered
      // "timed out".
      for (std::size_t i = 0; i < count; ++i) {
        drain_waiters({due[i].first, *due[i].second}, due[i].second);
        due[i].second.reset();
      }
    }
    end_deadlines(shard, now);
  }
}

void WaitQueue::end_deadlines(Shard& shard, Timestamp now) noexcept {
  Deliveries out;
  {
    const base::MutexLock lock{shard.mutex};
    auto timer = shard.timers.begin();
    while (timer != shard.timers.end() && timer->first.first <= now) {
      const Target target = timer->second;
      ++timer;  // before end_wait removes this one
      if (target.lease) continue;
      Queue& queue = target.entry->second;
      if (queue.busy && target.waiter == queue.waiters.begin()) {
        queue.again = true;  // its asker ends the wait; until then the timer stays
        continue;
      }
      end_wait(shard, *target.entry, target.waiter,
               give_up(queue, *target.waiter, now, ErrorCode::timed_out), out);
      if (!queue.waiters.empty() || queue.busy) continue;
      if (timer == queue.timer) ++timer;
      erase_queue(shard, *target.entry);
    }
    publish_next(shard);
  }
  deliver(out);
}

// --- notification -------------------------------------------------------------------------------

/// Notes that this thread runs callbacks, so that the callback of a wait that ends inside of one
/// runs after it instead of inside it: a chain of waiters takes no stack.
class WaitQueue::DeliveringHere {
 public:
  DeliveringHere(const WaitQueue& queue, Deliveries& mine) noexcept
      : queue_(queue), mine_(mine), outer_(innermost_) {
    for (DeliveringHere* each = outer_; each != nullptr; each = each->outer_) {
      if (&each->queue_ != &queue) continue;
      each->mine_.append(mine);
      return;
    }
    innermost_ = this;
  }
  ~DeliveringHere() {
    if (innermost_ == this) innermost_ = outer_;
  }
  DeliveringHere(const DeliveringHere&) = delete;
  DeliveringHere& operator=(const DeliveringHere&) = delete;

 private:
  static constinit thread_local DeliveringHere* innermost_;

  const WaitQueue& queue_;
  Deliveries& mine_;
  DeliveringHere* const outer_;
};

constinit thread_local WaitQueue::DeliveringHere* WaitQueue::DeliveringHere::innermost_ = nullptr;

void WaitQueue::deliver(Deliveries deliveries) noexcept {
  wake_blocked(deliveries);
  if (deliveries.empty()) return;
  const DeliveringHere here{*this, deliveries};  // takes them all if this thread is inside one
  while (!deliveries.empty()) run_callback(deliveries.pop());
}

void WaitQueue::wake_blocked(Deliveries& deliveries) noexcept {
  Deliveries others;
  while (!deliveries.empty()) {
    Waiter& waiter = deliveries.pop();
    if (waiter.parked == nullptr) {
      others.push(waiter);
      continue;
    }
    Waiters ended;
    {
      Shard& shard = *waiter.shard;
      const base::MutexLock lock{shard.mutex};
      const auto is_it = [&](const Waiter& one) { return &one == &waiter; };
      ended.splice(ended.end(), shard.leaving,
                   std::find_if(shard.leaving.begin(), shard.leaving.end(), is_it));
    }
    {
      ParkedThread& parked = *waiter.parked;
      const base::MutexLock lock{parked.mutex};
      parked.outcome = std::move(waiter.outcome);
      parked.answered = true;
      parked.awake.notify_one();  // under the lock: once `answered` can be read, `parked` is gone
    }
    let_go(ended);
  }
  deliveries = others;
}

void WaitQueue::run_callback(Waiter& waiter) noexcept {
  Shard& shard = *waiter.shard;
  bool cancelled = false;
  {
    const base::MutexLock lock{shard.mutex};
    cancelled = waiter.cancelled;
    waiter.state = Waiter::State::running;
    waiter.runner = std::this_thread::get_id();
  }
  if (!cancelled) {
    callbacks_.run(Callback::waiter, [&] { waiter.done(std::move(waiter.outcome)); });
  } else if (waiter.outcome.answer == ClaimAnswer::granted) {
    callbacks_.run(Callback::waiter, [&] { waiter.call.give_back(waiter.call, waiter.outcome); });
  }
  // What the callback holds is destroyed before threads that wait for its end go on.
  callbacks_.run(Callback::waiter, [&] { waiter.done = nullptr; });
  Waiters ended;
  {
    const base::MutexLock lock{shard.mutex};
    const auto is_it = [&](const Waiter& one) { return &one == &waiter; };
    ended.splice(ended.end(), shard.leaving,
                 std::find_if(shard.leaving.begin(), shard.leaving.end(), is_it));
    if (shard.cancellers != 0) shard.callback_ended.notify_all();
  }
  let_go(ended);
}

// --- blocked threads ----------------------------------------------------------------------------

/// A thread in wait(), on the list of those that close() waits for.
class WaitQueue::Inside {
 public:
  Inside(WaitQueue& queue, ParkedThread& parked) noexcept : queue_(queue), parked_(parked) {
    const base::MutexLock lock{queue_.inside_mutex_};
    parked_.after = queue_.inside_;
    if (parked_.after != nullptr) parked_.after->before = &parked_;
    queue_.inside_ = &parked_;
    if (queue_.leader_ == nullptr) queue_.elect(nullptr);
  }
  /// The last touch of the queue: close() returns when no thread is inside.
  ~Inside() {
    const base::MutexLock lock{queue_.inside_mutex_};
    (parked_.before != nullptr ? parked_.before->after : queue_.inside_) = parked_.after;
    if (parked_.after != nullptr) parked_.after->before = parked_.before;
    if (queue_.leader_ == &parked_) queue_.elect(nullptr);
    if (queue_.inside_ == nullptr) queue_.nobody_inside_.notify_all();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  WaitQueue& queue_;
  ParkedThread& parked_;
};

ClaimOutcome WaitQueue::wait(const WaitCall& call, const Clock& clock) {
  ClaimOutcome outcome;
  if (answered_at_once(call, outcome)) return outcome;
  ParkedThread parked;
  const Inside inside{*this, parked};
  ClaimCallback none;
  WaitTicket ticket = 0;
  ErrorCode why = ErrorCode::ok;
  const SharedKey key = enter(call, &parked, none, ticket, why);
  if (key == nullptr) {
    if (why != ErrorCode::closing) outcome = {};
    outcome.error = why;
    return outcome;
  }
  drain_waiters({call.db, *key}, key);
  sleep(parked, clock);
  return std::move(parked.outcome);
}

void WaitQueue::elect(ParkedThread* not_this) noexcept {
  ParkedThread* next = inside_;
  if (next == not_this && next != nullptr) next = next->after;
  if (leader_ != nullptr && leader_ != next) {
    const base::MutexLock lock{leader_->mutex};
    leader_->leads = false;
  }
  leader_ = next;
  const Timestamp wakes = next == nullptr ? Timestamp::min() : no_end;
  // mo: relaxed: a hint for publish_next().
  leader_wakes_.store(wakes.time_since_epoch().count(), std::memory_order_relaxed);
  if (next == nullptr) return;
  const base::MutexLock lock{next->mutex};
  next->leads = true;
  next->awake.notify_one();
}

void WaitQueue::nudge_leader() noexcept {
  const base::MutexLock lock{inside_mutex_};
  if (leader_ == nullptr) return;
  const base::MutexLock parked_lock{leader_->mutex};
  leader_->nudged = true;
  leader_->awake.notify_one();
}

Millis WaitQueue::poll_interval(Timestamp now) const noexcept {
  Timestamp next = now + poll_interval_max;
  for (const Shard& shard : shards_) {
    // mo: relaxed: a hint; too late by poll_interval_max at most.
    const Millis due{shard.next.load(std::memory_order_relaxed)};
    next = std::min(next, Timestamp{due});
  }
  return std::max(Millis{1}, next - now);
}

void WaitQueue::sleep(ParkedThread& parked, const Clock& clock) noexcept {
  for (;;) {
    {
      base::MutexLock lock{parked.mutex};
      while (!parked.answered && !parked.leads) parked.awake.wait(lock);
      if (parked.answered) return;
      parked.nudged = false;
      const Timestamp now = clock.now();
      const Millis pause = poll_interval(now);
      // mo: relaxed: a hint for publish_next().
      leader_wakes_.store((now + pause).time_since_epoch().count(), std::memory_order_relaxed);
      parked.awake.wait_for(lock, pause);  // an early end costs one needless check
      if (parked.answered) return;
    }
    const Timestamp now = clock.now();
    if (!is_due(now)) continue;
    {
      const base::MutexLock lock{inside_mutex_};
      elect(&parked);  // the callbacks that poll() runs may take long
    }
    poll(now);
    const base::MutexLock lock{inside_mutex_};
    if (leader_ == nullptr) elect(nullptr);
  }
}

void WaitQueue::close() noexcept {
  // mo: relaxed: read under the mutexes that are taken next.
  closed_.store(true, std::memory_order_relaxed);
  for (Shard& shard : shards_) {
    Deliveries out;
    {
      const base::MutexLock lock{shard.mutex};
      for (auto line = shard.queues.begin(); line != shard.queues.end();) {
        Entry& entry = *line++;
        if (entry.second.busy) {  // its asker answers
          entry.second.again = true;
          continue;
        }
        close_queue(shard, entry, out);
        erase_queue(shard, entry);
      }
      publish_next(shard);
    }
    deliver(out);
  }
  base::MutexLock lock{inside_mutex_};
  while (inside_ != nullptr) nobody_inside_.wait(lock);
}

// --- cancelled ----------------------------------------------------------------------------------

std::pair<WaitQueue::Entry*, WaitQueue::WaiterAt> WaitQueue::find(Shard& shard, const Name* name,
                                                                  WaitTicket ticket) noexcept {
  const auto find_in = [&](Entry& entry) {
    Waiters& waiters = entry.second.waiters;
    const auto found = std::find_if(waiters.begin(), waiters.end(),
                                    [&](const Waiter& one) { return one.ticket == ticket; });
    return std::pair{found == waiters.end() ? nullptr : &entry, found};
  };
  if (name != nullptr) {
    const auto line = shard.queues.find(*name);
    return line == shard.queues.end() ? std::pair{static_cast<Entry*>(nullptr), WaiterAt{}}
                                      : find_in(*line);
  }
  for (Entry& entry : shard.queues) {
    if (const auto found = find_in(entry); found.first != nullptr) return found;
  }
  return {nullptr, WaiterAt{}};
}

bool WaitQueue::cancel(WaitTicket ticket) noexcept {
  return std::any_of(shards_.begin(), shards_.end(),
                     [&](Shard& shard) { return cancel_in(shard, nullptr, ticket); });
}

bool WaitQueue::cancel_in(Shard& shard, const Name* name, WaitTicket ticket) noexcept {
  const auto is_it = [&](const Waiter& one) { return one.ticket == ticket; };
  // Whatever the callback holds is let go without the lock.
  ClaimCallback unused;
  Waiters ended;
  bool found = false;
  {
    base::MutexLock lock{shard.mutex};
    const auto [line, waiter] = find(shard, name, ticket);
    if (line != nullptr) {
      Queue& queue = line->second;
      found = !waiter->cancelled;
      waiter->cancelled = true;
      unused = std::move(waiter->done);
      if (waiter->state == Waiter::State::waiting) {
        take_out(shard, *line, waiter, ended);
        if (queue.waiters.empty() && !queue.busy) erase_queue(shard, *line);
        publish_next(shard);
      }  // else its asker ends the wait, and gives back what was granted
    } else if (const auto leaver = std::find_if(shard.leaving.begin(), shard.leaving.end(), is_it);
               leaver == shard.leaving.end()) {
      return false;
    } else if (leaver->state == Waiter::State::leaving) {
      found = !leaver->cancelled;
      leaver->cancelled = true;
      unused = std::move(leaver->done);
    } else if (leaver->runner != std::this_thread::get_id()) {
      ++shard.cancellers;
      while (std::any_of(shard.leaving.begin(), shard.leaving.end(), is_it)) {
        shard.callback_ended.wait(lock);
      }
      --shard.cancellers;
    }
  }
  // Not even the destructor of what the callback captured may break the promise.
  callbacks_.run(Callback::waiter, [&] { unused = nullptr; });
  let_go(ended);
  return found;
}

void WaitQueue::let_go(Waiters& ended) noexcept {
  for (const Waiter& waiter : ended) region_.charge(-static_cast<std::ptrdiff_t>(waiter.charged));
  ended.clear();
}

}  // namespace semel::engine
