// See wait_queue.hpp. How waits end, and the blocked threads, are in wait_queue_end.cpp.
#include "engine/api/wait_queue.hpp"

#include <algorithm>
#include <new>

#include "base/assert.hpp"
#include "engine/core/namespaces.hpp"

namespace semel::engine {
namespace {

[[nodiscard]] ClaimOutcome refuse(ClaimAnswer answer, ErrorCode why) noexcept {
  ClaimOutcome outcome;
  outcome.answer = answer;
  outcome.error = why;
  return outcome;
}

/// A caller that cannot enter: busy when there is no room, in_flight when the engine ends.
[[nodiscard]] ClaimOutcome not_entered(ClaimOutcome&& last, ErrorCode why) noexcept {
  if (why != ErrorCode::closing) return refuse(ClaimAnswer::busy, why);
  last.error = why;
  return std::move(last);
}

/// What the heap takes for a node of a list, map or table besides its value, about.
constexpr std::size_t node_overhead = 64;
/// When a waiter is tried again after its claim failed for want of memory.
constexpr Millis ask_again{10};
/// How long one that was told to ask for itself may take, before the next one is told so as well.
/// If all were told at once, n of them would ask n times for each that is granted.
constexpr Millis ask_first{100};

}  // namespace

// --- entering -----------------------------------------------------------------------------------

/// All memory that a wait takes, in hand before anything is locked or counted.
struct WaitQueue::Entrance {
  Entrance(const WaitCall& call, ParkedThread* parked)
      : key(std::make_shared<const std::string>(call.table_key)) {
    Waiter& waiter = waiters.emplace_back();
    waiter.call = call;
    waiter.call.arrives = false;
    waiter.owner = call.request.owner;
    waiter.parked = parked;
    waiter.charged =
        sizeof(Waiter) + 2 * node_overhead + sizeof(Timers::value_type) + waiter.owner.size();
    Queue& queue = queues.try_emplace(Name{call.db, *key}).first->second;
    queue.key = key;
    queue.charged = sizeof(Entry) + 3 * node_overhead + sizeof(Timers::value_type) + key->size();
    Timers made;
    made.try_emplace(TimerKey{});
    queue_timer = made.extract(made.begin());
    made.try_emplace(TimerKey{});
    waiter_timer = made.extract(made.begin());
  }

  SharedKey key;
  Waiters waiters;
  Queues queues;
  Timers::node_type queue_timer;
  Timers::node_type waiter_timer;
};

bool WaitQueue::answered_at_once(const WaitCall& call, ClaimOutcome& outcome) {
  Seen seen;
  outcome = call.attempt(call, seen);
  if (outcome.answer != ClaimAnswer::in_flight) return true;
  if (call.deadline > seen.now) return false;
  outcome.error = ErrorCode::timed_out;
  return true;
}

WaitQueue::Entry& WaitQueue::line_of(Shard& shard, Entrance& entrance) {
  const auto known = shard.queues.find(entrance.queues.begin()->first);
  if (known != shard.queues.end()) return *known;
  // May throw, and then nothing has changed; what follows does not.
  Entry& entry = *shard.queues.insert(entrance.queues.extract(entrance.queues.begin())).position;
  region_.charge(static_cast<std::ptrdiff_t>(entry.second.charged));
  // mo: relaxed: tickets need to differ, not to be ordered.
  entry.second.ticket = tickets_.fetch_add(1, std::memory_order_relaxed);
  entrance.queue_timer.key() = {no_end, entry.second.ticket};
  entrance.queue_timer.mapped() = Target{&entry, true, {}};
  entry.second.timer = shard.timers.insert(std::move(entrance.queue_timer)).position;
  return entry;
}

WaitQueue::SharedKey WaitQueue::enter(const WaitCall& call, ParkedThread* parked,
                                      ClaimCallback& done, WaitTicket& ticket, ErrorCode& why) {
  Entrance entrance{call, parked};
  Shard& shard = shard_of({call.db, call.table_key});
  const std::size_t charge = entrance.waiters.front().charged;
  const std::size_t more = charge + entrance.queues.begin()->second.charged;
  why = ErrorCode::closing;
  const base::MutexLock lock{shard.mutex};
  // mo: relaxed: close() stores it before it takes this mutex.
  if (closed_.load(std::memory_order_relaxed)) return nullptr;
  why = ErrorCode::memory_full;
  if (region_.used_bytes() + more > region_.limit_bytes(Region::Use::record)) return nullptr;
  why = ErrorCode::waiters_full;
  // mo: relaxed: an early check, so that a full engine takes nothing
  if (waiting_.load(std::memory_order_relaxed) >= limits::waiters_total_max) return nullptr;
  Entry& entry = line_of(shard, entrance);
  Queue& queue = entry.second;
  if (queue.waiters.size() >= limits::waiters_per_key_max) return nullptr;
  // mo: seq_cst [wait_queue.waiting]: counted before the record is read again by drain_waiters().
  if (waiting_.fetch_add(1, std::memory_order_seq_cst) >= limits::waiters_total_max) {
    waiting_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: gives room back
    if (queue.waiters.empty() && !queue.busy) erase_queue(shard, entry);
    return nullptr;
  }
  region_.charge(static_cast<std::ptrdiff_t>(charge));
  const WaiterAt waiter = entrance.waiters.begin();
  waiter->done = std::move(done);
  waiter->shard = &shard;
  waiter->key = queue.key;
  waiter->call.table_key = *queue.key;
  waiter->call.request.key = Bytes{*queue.key}.substr(queue.key->size() - call.request.key.size());
  waiter->call.request.owner = waiter->owner;
  // mo: relaxed: tickets need to differ, not to be ordered.
  ticket = waiter->ticket = tickets_.fetch_add(1, std::memory_order_relaxed);
  queue.waiters.splice(queue.waiters.end(), entrance.waiters);
  if (call.deadline != no_end) {
    entrance.waiter_timer.key() = {call.deadline, waiter->ticket};
    entrance.waiter_timer.mapped() = Target{&entry, false, waiter};
    waiter->timer = shard.timers.insert(std::move(entrance.waiter_timer)).position;
    publish_next(shard);
  }
  why = ErrorCode::ok;
  return queue.key;
}

bool WaitQueue::wait(const WaitCall& call, ClaimCallback& done, WaitTicket& ticket,
                     ClaimOutcome& outcome) {
  ticket = 0;
  if (answered_at_once(call, outcome)) return false;
  ErrorCode why = ErrorCode::ok;
  const std::uint8_t db = call.db;
  const SharedKey key = enter(call, nullptr, done, ticket, why);
  if (key == nullptr) {
    outcome = not_entered(std::move(outcome), why);
    return false;
  }
  // From here on the callback may have run on another thread, and with it may be gone whatever
  // the call's bytes, `ticket` and `outcome` belonged to; `key` is our own.
  drain_waiters({db, *key}, key);
  return true;
}

// --- asking -------------------------------------------------------------------------------------

void WaitQueue::Deliveries::push(Waiter& waiter) noexcept {
  waiter.next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = &waiter;
  last_ = &waiter;
  ++count_;
}

WaitQueue::Waiter& WaitQueue::Deliveries::pop() noexcept {
  SEMEL_ASSERT(first_ != nullptr && count_ != 0);
  Waiter& waiter = *first_;
  first_ = waiter.next;
  if (first_ == nullptr) last_ = nullptr;
  --count_;
  return waiter;
}

void WaitQueue::Deliveries::append(Deliveries& more) noexcept {
  while (!more.empty()) push(more.pop());
}

void WaitQueue::take_out(Shard& shard, Entry& entry, WaiterAt waiter, Waiters& to) noexcept {
  if (waiter->call.deadline != no_end) shard.timers.erase(waiter->timer);
  to.splice(to.end(), entry.second.waiters, waiter);
  // mo: relaxed: an owner that still sees the old count looks up a queue in vain.
  const std::size_t before = waiting_.fetch_sub(1, std::memory_order_relaxed);
  SEMEL_ASSERT(before != 0);
}

void WaitQueue::end_wait(Shard& shard, Entry& entry, WaiterAt waiter, ClaimOutcome&& outcome,
                         Deliveries& out) noexcept {
  take_out(shard, entry, waiter, shard.leaving);
  waiter->state = Waiter::State::leaving;
  waiter->outcome = std::move(outcome);
  out.push(*waiter);
}

void WaitQueue::erase_queue(Shard& shard, Entry& entry) noexcept {
  shard.timers.erase(entry.second.timer);
  region_.charge(-static_cast<std::ptrdiff_t>(entry.second.charged));
  // The bytes of the name must outlive the search for it.
  const SharedKey key = entry.second.key;
  shard.queues.erase(Name{entry.first.db, *key});
}

void WaitQueue::close_queue(Shard& shard, Entry& entry, Deliveries& out) noexcept {
  Queue& queue = entry.second;
  while (!queue.waiters.empty()) {
    end_wait(shard, entry, queue.waiters.begin(),
             give_up(queue, queue.waiters.front(), queue.seen.now, ErrorCode::closing), out);
  }
}

ClaimOutcome WaitQueue::give_up(const Queue& queue, const Waiter& waiter, Timestamp now,
                                ErrorCode why) noexcept {
  ClaimOutcome outcome = refuse(ClaimAnswer::in_flight, why);
  try {
    outcome.owner = queue.owner;
  } catch (const std::bad_alloc&) {  // it is for people
  }
  outcome.attempt = queue.attempt;
  // By a time before it was seen, a lease would have more left than it got.
  outcome.remaining = std::max(Millis{0}, queue.seen.held_until - std::max(now, queue.seen.now));
  outcome.retry_after = std::min(outcome.remaining, waiter.call.names->policy().retry_after_max);
  return outcome;
}

/// False: there was no memory to ask, and nothing has changed.
bool WaitQueue::ask(const WaitCall& call, Seen& seen, ClaimOutcome& outcome) noexcept {
  try {
    outcome = call.attempt(call, seen);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void WaitQueue::ask_heads(Shard& shard, Entry& entry, Deliveries& out) noexcept {
  Queue& queue = entry.second;
  while (!queue.waiters.empty() && out.count() < delivery_batch) {
    // mo: relaxed: close() stores it before it takes this mutex.
    if (closed_.load(std::memory_order_relaxed)) return close_queue(shard, entry, out);
    const WaiterAt head = queue.waiters.begin();
    queue.again = false;
    head->state = Waiter::State::asked;
    shard.mutex.unlock();  // `busy` keeps the queue and its head where they are
    Seen seen;
    ClaimOutcome outcome;
    const bool asked = ask(head->call, seen, outcome);
    shard.mutex.lock();
    head->state = Waiter::State::waiting;
    if (!asked) {
      if (queue.again) continue;
      return set_recheck(shard, entry, queue.seen.now + ask_again);
    }
    if (outcome.answer != ClaimAnswer::in_flight || head->cancelled) {
      const bool is_first =
          head->call.asks_first && !head->cancelled && outcome.answer == ClaimAnswer::granted;
      end_wait(shard, entry, head, std::move(outcome), out);
      if (!is_first || queue.again) continue;
      return set_recheck(shard, entry, seen.now + ask_first);
    }
    queue.seen = seen;
    queue.owner = std::move(outcome.owner);
    queue.attempt = outcome.attempt;
    if (head->call.deadline <= seen.now) {
      end_wait(shard, entry, head, give_up(queue, *head, seen.now, ErrorCode::timed_out), out);
      continue;
    }
    if (queue.again) continue;
    return set_recheck(shard, entry, seen.held_until);
  }
}

/// True: the batch was full, there may be more.
bool WaitQueue::drain_batch(Shard& shard, const Name& name, SharedKey& key,
                            Deliveries& out) noexcept {
  const base::MutexLock lock{shard.mutex};
  const auto line = shard.queues.find(name);
  if (line == shard.queues.end()) return false;
  Entry& entry = *line;  // outlives `line`, which a rehash ends while we ask without the lock
  Queue& queue = entry.second;
  key = queue.key;
  if (queue.busy) {
    queue.again = true;
    return false;
  }
  queue.busy = true;
  ask_heads(shard, entry, out);
  queue.busy = false;
  const bool more = !queue.waiters.empty() && out.count() >= delivery_batch;
  if (queue.waiters.empty()) erase_queue(shard, entry);
  publish_next(shard);
  return more;
}

void WaitQueue::drain_waiters(Name name, SharedKey key) noexcept {
  Shard& shard = shard_of(name);
  bool more = true;
  while (more) {
    Deliveries out;
    more = drain_batch(shard, name, key, out);
    if (more) name.key = *key;
    deliver(out);
  }
}

void WaitQueue::drain_all_waiters(std::optional<SessionId> session) noexcept {
  // mo: relaxed: rounds need to differ.
  const std::uint64_t round = rounds_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::array<std::pair<std::uint8_t, SharedKey>, 64> found;
  for (Shard& shard : shards_) {
    for (std::size_t count = found.size(); count == found.size();) {
      count = 0;
      {
        const base::MutexLock lock{shard.mutex};
        for (auto& [name, queue] : shard.queues) {
          if (count == found.size()) break;
          if (queue.round == round) continue;
          queue.round = round;
          // What a busy queue is about to learn may be older than the end of the session.
          if (queue.busy || !session || queue.seen.held_session == *session) {
            found[count++] = {name.db, queue.key};
          }
        }
      }
      for (std::size_t i = 0; i < count; ++i) {
        drain_waiters({found[i].first, *found[i].second}, found[i].second);
        found[i].second.reset();
      }
    }
  }
}

void WaitQueue::changed_meanwhile(std::uint8_t db, Bytes table_key) noexcept {
  const Name name{db, table_key};
  Shard& shard = shard_of(name);
  const base::MutexLock lock{shard.mutex};
  const auto line = shard.queues.find(name);
  if (line == shard.queues.end()) return;
  if (line->second.busy) line->second.again = true;
  set_recheck(shard, *line, std::min(line->second.seen.now, line->second.timer->first.first));
  publish_next(shard);
}

bool WaitQueue::has_waiters_for(std::uint8_t db, Bytes table_key) noexcept {
  if (!has_waiters()) [[likely]]
    return false;
  const Name name{db, table_key};
  Shard& shard = shard_of(name);
  const base::MutexLock lock{shard.mutex};
  return shard.queues.contains(name);
}

}  // namespace semel::engine
