// The wait queue's other half, how waits end: by time, by notification, by cancel(). See
// wait_queue.hpp.
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "engine/waits/wait_queue.hpp"

namespace semel::engine {

void WaitQueue::end_wait(Waiter& waiter, Deliveries& out) noexcept {
  lines_.take_out(waiter);
  waiter.state = Waiter::State::leaving;
  out.push(waiter);
}

void WaitQueue::give_up(Waiter& waiter, ErrorCode why, Timestamp now, Deliveries& out) noexcept {
  SEMEL_ASSERT(!waiter.places.empty());
  waiter.attempt->give_up(why, now, waiter.places.front().line->seen);
  end_wait(waiter, out);
}

// --- time ---------------------------------------------------------------------------------------

/// Leases before deadlines: a waiter that can be promoted in this millisecond is not answered
/// "timed out".
void WaitQueue::poll(Timestamp now) noexcept {
  if (!has_waiters() || !threads_.is_due(now)) return;
  drain_due(now);
  Deliveries out;
  {
    const base::MutexLock lock{mutex_};
    auto& deadlines = lines_.deadlines();
    for (auto timer = deadlines.begin(); timer != deadlines.end() && timer->first.first <= now;) {
      Waiter& waiter = *timer->second;
      ++timer;  // before this one is removed
      if (waiter.state == Waiter::State::asked) {
        waiter.asked_by->again = true;  // its asker ends the wait; until then the timer stays
      } else {
        give_up(waiter, ErrorCode::timed_out, now, out);
      }
    }
    threads_.publish(lines_.next());
  }
  deliver(out);
}

void WaitQueue::close() noexcept {
  Deliveries out;
  {
    const base::MutexLock lock{mutex_};
    closed_ = true;
    for (auto& [ticket, waiter] : lines_.waiters()) {
      if (waiter.state != Waiter::State::waiting) continue;  // its asker answers
      give_up(waiter, ErrorCode::closing, waiter.places.front().line->seen.now, out);
    }
    lines_.check_invariants();
    threads_.publish(lines_.next());
  }
  deliver(out);
  threads_.wait_until_empty();
}

// --- notification -------------------------------------------------------------------------------

void WaitQueue::Deliveries::push(Waiter& waiter) noexcept {
  waiter.next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = &waiter;
  last_ = &waiter;
  ++count_;
}

Waiter& WaitQueue::Deliveries::pop() noexcept {
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

/// Notes that this thread runs receivers, so that the receiver of a wait that ends inside of one
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
  while (!deliveries.empty()) run_receiver(deliveries.pop());
}

void WaitQueue::wake_blocked(Deliveries& deliveries) noexcept {
  Deliveries others;
  while (!deliveries.empty()) {
    Waiter& waiter = deliveries.pop();
    if (waiter.parked == nullptr) {
      others.push(waiter);
      continue;
    }
    ParkedThread& parked = *waiter.parked;
    {
      WaitLines::Ended ended;  // before the thread can end the queue
      const base::MutexLock lock{mutex_};
      ended = lines_.extract(waiter);
    }
    parked.answer();
  }
  deliveries = others;
}

void WaitQueue::run_receiver(Waiter& waiter) noexcept {
  bool cancelled = false;
  {
    const base::MutexLock lock{mutex_};
    cancelled = waiter.cancelled;
    waiter.state = Waiter::State::running;
    waiter.runner = std::this_thread::get_id();
  }
  callbacks_.run(Callback::waiter,
                 [&] { cancelled ? waiter.attempt->give_back() : waiter.receiver->answered(); });
  // What the receiver holds is destroyed before threads that wait for its end go on.
  callbacks_.run(Callback::waiter, [&] { waiter.receiver = nullptr; });
  WaitLines::Ended ended;
  const base::MutexLock lock{mutex_};
  ended = lines_.extract(waiter);
  if (cancellers_ != 0) receiver_ended_.notify_all();
}

// --- cancelled ----------------------------------------------------------------------------------

bool WaitQueue::cancel(WaitTicket ticket, const KeyRef* key) noexcept {
  // Whatever the receiver holds is let go without the lock.
  std::unique_ptr<Receiver> unused;
  WaitLines::Ended ended;
  bool found = false;
  {
    base::MutexLock lock{mutex_};
    Waiter* const waiter = lines_.find(ticket);
    if (waiter == nullptr || (key != nullptr && !waiter->may_be_of(*key))) return false;
    if (waiter->state == Waiter::State::running) {
      if (waiter->runner == std::this_thread::get_id()) return false;
      ++cancellers_;
      while (lines_.find(ticket) != nullptr) receiver_ended_.wait(lock);
      --cancellers_;
      return false;
    }
    found = !std::exchange(waiter->cancelled, true);
    unused = std::move(waiter->receiver);
    if (waiter->state == Waiter::State::waiting) {
      lines_.take_out(*waiter);
      ended = lines_.extract(*waiter);
      threads_.publish(lines_.next());
    }  // else its asker ends the wait, and the attempt gives back its grant
  }
  // Not even the destructor of what the receiver captured may break the promise.
  callbacks_.run(Callback::waiter, [&] { unused = nullptr; });
  return found;
}

}  // namespace semel::engine
