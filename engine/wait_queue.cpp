// See wait_queue.hpp.
#include "engine/wait_queue.hpp"

#include <algorithm>
#include <iterator>

#include "engine/namespaces.hpp"

namespace semel::engine {
namespace {

/// How long a blocked waiter sleeps at most before it looks at the clock by itself: it must work
/// without a background thread, and the engine's clock need not follow the real one.
constexpr Millis nap_max{10};

[[nodiscard]] ClaimOutcome refuse(ClaimAnswer answer, ErrorCode why) {
  ClaimOutcome outcome;
  outcome.answer = answer;
  outcome.error = why;
  return outcome;
}

/// A caller that is not let in: busy when there is no room, in_flight when the engine ends.
[[nodiscard]] ClaimOutcome not_entered(ClaimOutcome&& last, ErrorCode why) {
  if (why == ErrorCode::waiters_full) return refuse(ClaimAnswer::busy, why);
  last.error = why;
  return std::move(last);
}

}  // namespace

/// Notes that this thread runs callbacks, so that a wait that ends inside of one is told after it
/// instead of inside it: a chain of waiters takes no stack.
class WaitQueue::DeliveringHere {
 public:
  DeliveringHere(WaitQueue& queue, Deliveries& mine)
      : queue_(queue), self_(std::this_thread::get_id()) {
    const std::lock_guard lock{queue_.delivering_mutex_};
    const auto outer = find();
    if (outer != queue_.delivering_.end()) {
      std::move(mine.begin(), mine.end(), std::back_inserter(*outer->second));
      mine.clear();
      return;
    }
    queue_.delivering_.emplace_back(self_, &mine);
    outermost_ = true;
  }
  ~DeliveringHere() {
    if (!outermost_) return;
    const std::lock_guard lock{queue_.delivering_mutex_};
    queue_.delivering_.erase(find());
  }
  DeliveringHere(const DeliveringHere&) = delete;
  DeliveringHere& operator=(const DeliveringHere&) = delete;

 private:
  [[nodiscard]] std::vector<std::pair<std::thread::id, Deliveries*>>::iterator find() {
    return std::find_if(queue_.delivering_.begin(), queue_.delivering_.end(),
                        [&](const auto& one) { return one.first == self_; });
  }

  WaitQueue& queue_;
  std::thread::id self_;
  bool outermost_ = false;
};

WaitQueue::QueueKey WaitQueue::queue_key(std::uint8_t db, Bytes table_key) {
  QueueKey key;
  key.reserve(table_key.size() + 1);
  key.push_back(static_cast<char>(db));
  key.append(table_key);
  return key;
}

WaitQueue::Shard& WaitQueue::shard_of(const QueueKey& key) noexcept {
  return shards_[std::hash<QueueKey>{}(key) % shard_count];
}

ClaimOutcome WaitQueue::give_up(const Queue& queue, const Waiter& waiter, Timestamp now,
                                ErrorCode why) {
  ClaimOutcome outcome = refuse(ClaimAnswer::in_flight, why);
  outcome.owner = queue.owner;
  outcome.attempt = queue.attempt;
  outcome.remaining = std::max(Millis{0}, queue.seen.held_until - now);
  outcome.retry_after = std::min(outcome.remaining, waiter.call.names->policy().retry_after_max);
  return outcome;
}

Millis WaitQueue::nap(const Shard& shard, Timestamp now) noexcept {
  // mo: relaxed: a hint; too late by nap_max at most.
  const Timestamp next{Millis{shard.next.load(std::memory_order_relaxed)}};
  if (next >= now + nap_max) return nap_max;
  return std::max(Millis{1}, next - now);
}

void WaitQueue::publish_next(Shard& shard) noexcept {
  const Timestamp next = shard.timers.empty() ? no_end : shard.timers.begin()->first.first;
  // mo: relaxed: a hint; who acts on it reads the timers under the mutex.
  shard.next.store(next.time_since_epoch().count(), std::memory_order_relaxed);
}

void WaitQueue::set_recheck(Shard& shard, Entry& entry, Timestamp when) {
  Queue& queue = entry.second;
  if (queue.recheck == when) return;
  if (queue.recheck != no_end) shard.timers.erase({queue.recheck, queue.ticket});
  if (when != no_end) {
    shard.timers.emplace(TimerKey{when, queue.ticket}, Target{&entry, true, {}});
  }
  queue.recheck = when;
}

// --- entering -----------------------------------------------------------------------------------

bool WaitQueue::answered_at_once(const WaitCall& call, ClaimOutcome& outcome) {
  Seen seen;
  outcome = call.attempt(call, seen);
  if (outcome.answer != ClaimAnswer::in_flight) return true;
  if (call.deadline > seen.now) return false;
  outcome.error = ErrorCode::timed_out;
  return true;
}

ErrorCode WaitQueue::enter(const WaitCall& call, const QueueKey& key, Bed* bed, ClaimCallback& done,
                           WaitTicket& ticket) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock{shard.mutex};
  // mo: relaxed: close() stores it before it takes this mutex.
  if (closed_.load(std::memory_order_relaxed)) return ErrorCode::closing;
  // mo: seq_cst [wait_queue.waiting]: counted before the record is read again by settle().
  if (waiting_.fetch_add(1, std::memory_order_seq_cst) >= limits::waiters_total_max) {
    waiting_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: gives room back
    return ErrorCode::waiters_full;
  }
  const auto [place, fresh] = shard.queues.try_emplace(key);
  Queue& queue = place->second;
  if (queue.waiters.size() >= limits::waiters_per_key_max) {
    waiting_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: gives room back
    return ErrorCode::waiters_full;
  }
  // mo: relaxed: tickets need to differ, not to be ordered.
  if (fresh) {
    queue.key = call.table_key;
    queue.ticket = tickets_.fetch_add(1, std::memory_order_relaxed);
  }
  const WaiterAt waiter = queue.waiters.emplace(queue.waiters.end());
  waiter->call = call;
  waiter->call.arrives = false;
  waiter->owner = call.request.owner;
  waiter->bed = bed;
  waiter->done = std::move(done);
  ticket = tickets_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as above
  waiter->ticket = ticket;
  waiter->call.table_key = queue.key;
  waiter->call.request.key = Bytes{queue.key}.substr(queue.key.size() - call.request.key.size());
  waiter->call.request.owner = waiter->owner;
  if (call.deadline != no_end) {
    shard.timers.emplace(TimerKey{call.deadline, waiter->ticket}, Target{&*place, false, waiter});
    publish_next(shard);
  }
  return ErrorCode::ok;
}

WaitTicket WaitQueue::wait(const WaitCall& call, ClaimCallback done) {
  ClaimOutcome outcome;
  if (answered_at_once(call, outcome)) {
    done(std::move(outcome));
    return 0;
  }
  const QueueKey key = queue_key(call.db, call.table_key);
  WaitTicket ticket = 0;
  const ErrorCode entered = enter(call, key, nullptr, done, ticket);
  if (entered != ErrorCode::ok) {
    done(not_entered(std::move(outcome), entered));
    return 0;
  }
  // From here on the callback may have run on another thread, and with it may be gone whatever
  // the call's bytes belonged to; `key` is our own.
  settle(key);
  return ticket;
}

ClaimOutcome WaitQueue::wait(const WaitCall& call, const Clock& clock) {
  ClaimOutcome outcome;
  if (answered_at_once(call, outcome)) return outcome;
  {
    const std::lock_guard lock{inside_mutex_};
    ++inside_;
  }
  const QueueKey key = queue_key(call.db, call.table_key);
  Bed bed;
  ClaimCallback none;
  WaitTicket ticket = 0;
  const ErrorCode entered = enter(call, key, &bed, none, ticket);
  if (entered != ErrorCode::ok) {
    outcome = not_entered(std::move(outcome), entered);
  } else {
    settle(key);
    std::unique_lock lock{bed.mutex};
    while (!bed.answered) {
      bed.awake.wait_for(lock, nap(shard_of(key), clock.now()));
      if (bed.answered) break;
      lock.unlock();
      poll(clock.now());
      lock.lock();
    }
    outcome = std::move(bed.outcome);
  }
  // The last touch of the queue: close() returns when nobody is inside.
  const std::lock_guard lock{inside_mutex_};
  if (--inside_ == 0) nobody_inside_.notify_all();
  return outcome;
}

// --- asking -------------------------------------------------------------------------------------

void WaitQueue::end_wait(Shard& shard, Entry& entry, WaiterAt waiter, ClaimOutcome&& outcome,
                         Deliveries& out) {
  if (waiter->call.deadline != no_end) {
    shard.timers.erase({waiter->call.deadline, waiter->ticket});
  }
  out.push_back({waiter->bed, std::move(waiter->done), std::move(outcome)});
  entry.second.waiters.erase(waiter);
  // mo: relaxed: an owner that still sees the old count looks up a queue in vain.
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void WaitQueue::close_queue(Shard& shard, Entry& entry, Deliveries& out) {
  Queue& queue = entry.second;
  while (!queue.waiters.empty()) {
    end_wait(shard, entry, queue.waiters.begin(),
             give_up(queue, queue.waiters.front(), queue.seen.now, ErrorCode::closing), out);
  }
}

void WaitQueue::ask_heads(std::unique_lock<std::mutex>& lock, Shard& shard, Entry& entry,
                          Deliveries& out) {
  Queue& queue = entry.second;
  while (!queue.waiters.empty() && out.size() < delivery_batch) {
    // mo: relaxed: close() stores it before it takes this mutex.
    if (closed_.load(std::memory_order_relaxed)) return close_queue(shard, entry, out);
    const WaiterAt head = queue.waiters.begin();
    queue.again = false;
    lock.unlock();  // `busy` keeps the queue and its head where they are
    Seen seen;
    ClaimOutcome outcome = head->call.attempt(head->call, seen);
    lock.lock();
    if (outcome.answer != ClaimAnswer::in_flight) {
      end_wait(shard, entry, head, std::move(outcome), out);
      continue;
    }
    queue.seen = seen;
    queue.owner = std::move(outcome.owner);
    queue.attempt = outcome.attempt;
    if (head->cancelled) {
      head->done = [unheard = std::move(head->done)](ClaimOutcome&&) {};
      end_wait(shard, entry, head, ClaimOutcome{}, out);
      continue;
    }
    if (head->call.deadline <= seen.now) {
      end_wait(shard, entry, head, give_up(queue, *head, seen.now, ErrorCode::timed_out), out);
      continue;
    }
    if (queue.again) continue;
    return set_recheck(shard, entry, seen.held_until);
  }
}

/// True: the batch was full, there may be more.
bool WaitQueue::settle_some(Shard& shard, const QueueKey& key, Deliveries& out) {
  std::unique_lock lock{shard.mutex};
  const auto place = shard.queues.find(key);
  if (place == shard.queues.end()) return false;
  Entry& entry = *place;  // outlives `place`, which a rehash ends while we ask without the lock
  Queue& queue = entry.second;
  if (queue.busy) {
    queue.again = true;
    return false;
  }
  queue.busy = true;
  ask_heads(lock, shard, entry, out);
  queue.busy = false;
  const bool more = !queue.waiters.empty() && out.size() >= delivery_batch;
  if (queue.waiters.empty()) {
    set_recheck(shard, entry, no_end);
    shard.queues.erase(key);
  }
  publish_next(shard);
  return more;
}

void WaitQueue::settle(const QueueKey& key) {
  Shard& shard = shard_of(key);
  bool more = true;
  while (more) {
    Deliveries out;
    more = settle_some(shard, key, out);
    deliver(std::move(out));
  }
}

bool WaitQueue::cancel(std::uint8_t db, Bytes table_key, WaitTicket ticket) {
  const QueueKey key = queue_key(db, table_key);
  Shard& shard = shard_of(key);
  Deliveries unheard;  // whatever the callback holds is let go without the lock
  const std::lock_guard lock{shard.mutex};
  const auto place = shard.queues.find(key);
  if (place == shard.queues.end()) return false;
  Queue& queue = place->second;
  const auto waiter = std::find_if(queue.waiters.begin(), queue.waiters.end(),
                                   [&](const Waiter& one) { return one.ticket == ticket; });
  if (waiter == queue.waiters.end()) return false;
  if (queue.busy && waiter == queue.waiters.begin()) {
    waiter->cancelled = true;  // its asker ends the wait
    return false;
  }
  end_wait(shard, *place, waiter, {}, unheard);
  if (queue.waiters.empty() && !queue.busy) {
    set_recheck(shard, *place, no_end);
    shard.queues.erase(place);
  }
  publish_next(shard);
  return true;
}

bool WaitQueue::has_waiters_for(std::uint8_t db, Bytes table_key) {
  if (!has_waiters()) [[likely]]
    return false;
  const QueueKey key = queue_key(db, table_key);
  Shard& shard = shard_of(key);
  const std::lock_guard lock{shard.mutex};
  return shard.queues.contains(key);
}

void WaitQueue::changed(std::uint8_t db, Bytes table_key) {
  settle(queue_key(db, table_key));
}

void WaitQueue::session_closed(SessionId session) {
  settle_all(session);
}

void WaitQueue::all_changed() {
  settle_all(std::nullopt);
}

void WaitQueue::settle_all(std::optional<SessionId> session) {
  for (Shard& shard : shards_) {
    std::vector<QueueKey> keys;
    {
      const std::lock_guard lock{shard.mutex};
      for (const auto& [key, queue] : shard.queues) {
        // What a busy queue is about to learn may be older than the end of the session.
        if (queue.busy || !session || queue.seen.held_session == *session) keys.push_back(key);
      }
    }
    for (const QueueKey& key : keys) settle(key);
  }
}

// --- time ---------------------------------------------------------------------------------------

void WaitQueue::poll(Timestamp now) {
  if (!has_waiters()) return;
  for (Shard& shard : shards_) {
    // mo: relaxed: a hint; the timers are read under the mutex.
    if (shard.next.load(std::memory_order_relaxed) > now.time_since_epoch().count()) continue;
    std::vector<QueueKey> keys;
    {
      const std::lock_guard lock{shard.mutex};
      for (auto timer = shard.timers.begin();
           timer != shard.timers.end() && timer->first.first <= now;) {
        const Target target = timer->second;
        ++timer;
        if (!target.lease) continue;
        set_recheck(shard, *target.entry, no_end);
        keys.push_back(target.entry->first);
      }
      publish_next(shard);
    }
    // Leases before deadlines: who can be promoted in this millisecond is not told "timed out".
    for (const QueueKey& key : keys) settle(key);
    end_deadlines(shard, now);
  }
}

void WaitQueue::end_deadlines(Shard& shard, Timestamp now) {
  Deliveries out;
  {
    const std::lock_guard lock{shard.mutex};
    auto timer = shard.timers.begin();
    while (timer != shard.timers.end() && timer->first.first <= now) {
      const Target target = timer->second;
      ++timer;  // before end_wait removes the one we look at
      if (target.lease) continue;
      Queue& queue = target.entry->second;
      if (queue.busy && target.waiter == queue.waiters.begin()) {
        queue.again = true;  // its asker ends the wait; until then the timer stays
        continue;
      }
      end_wait(shard, *target.entry, target.waiter,
               give_up(queue, *target.waiter, now, ErrorCode::timed_out), out);
      if (!queue.waiters.empty() || queue.busy) continue;
      const Timestamp recheck = queue.recheck;
      if (timer != shard.timers.end() && timer->first == TimerKey{recheck, queue.ticket}) ++timer;
      set_recheck(shard, *target.entry, no_end);
      shard.queues.erase(shard.queues.find(target.entry->first));
    }
    publish_next(shard);
  }
  deliver(std::move(out));
}

// --- telling ------------------------------------------------------------------------------------

void WaitQueue::deliver(Deliveries&& deliveries) {
  std::erase_if(deliveries, [](Delivery& delivery) {
    if (delivery.bed == nullptr) return false;
    const std::lock_guard lock{delivery.bed->mutex};
    delivery.bed->outcome = std::move(delivery.outcome);
    delivery.bed->answered = true;
    delivery.bed->awake.notify_one();  // under the lock: the bed is gone once it can be read
    return true;
  });
  if (deliveries.empty()) return;
  const DeliveringHere here{*this, deliveries};  // takes them all if this thread is inside one
  while (!deliveries.empty()) {
    Delivery delivery = std::move(deliveries.front());
    deliveries.pop_front();
    delivery.done(std::move(delivery.outcome));
  }
}

void WaitQueue::close() {
  // mo: relaxed: read under the mutexes that are taken next.
  closed_.store(true, std::memory_order_relaxed);
  for (Shard& shard : shards_) {
    Deliveries out;
    {
      const std::lock_guard lock{shard.mutex};
      for (auto place = shard.queues.begin(); place != shard.queues.end();) {
        if (place->second.busy) {  // its asker answers
          ++place;
          continue;
        }
        close_queue(shard, *place, out);
        set_recheck(shard, *place, no_end);
        place = shard.queues.erase(place);
      }
      publish_next(shard);
    }
    deliver(std::move(out));
  }
  std::unique_lock lock{inside_mutex_};
  nobody_inside_.wait(lock, [&] { return inside_ == 0; });
}

}  // namespace semel::engine
