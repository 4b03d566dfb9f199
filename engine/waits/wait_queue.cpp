// See wait_queue.hpp. How waits end is in wait_queue_end.cpp.
#include "engine/waits/wait_queue.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>

#include "base/assert.hpp"

namespace semel::engine {
namespace {

/// When a waiter is tried again after it failed for want of memory.
constexpr Millis ask_again{10};
/// How long one that was answered first may take to change the key, before the next is tried as
/// well. If all were told at once, n of them would ask n times for each that gets something.
constexpr Millis ask_first{100};

}  // namespace

class WaitQueue::HeldBy {
 public:
  HeldBy(const WaitQueue& queue, HeldChanges& changes) noexcept
      : outer_(std::exchange(held_, {&queue, &changes})) {}
  ~HeldBy() { held_ = outer_; }
  HeldBy(const HeldBy&) = delete;
  HeldBy& operator=(const HeldBy&) = delete;

 private:
  const Held outer_;
};

constinit thread_local WaitQueue::Held WaitQueue::held_;

// --- entering -----------------------------------------------------------------------------------

/// `entered`: called under the lock. After it the receiver may run on another thread, and with it
/// may be gone whatever the caller's arguments belonged to; the entrance is our own.
template <class Entered>
ErrorCode WaitQueue::enter(WaitLines::Entrance& entrance, const Entered& entered) {
  {
    const base::MutexLock lock{mutex_};
    if (closed_) return ErrorCode::closing;
    if (const ErrorCode why = lines_.enter(entrance); why != ErrorCode::ok) return why;
    threads_.publish(lines_.next());
    entered();
  }
  HeldChanges made;
  for (const WaitLines::Entrance::OfKey& each : entrance.keys) {
    drain_line(each.name, each.key, made);
  }
  Hold::drain(*this, made);
  return ErrorCode::ok;
}

ErrorCode WaitQueue::wait(Attempt& attempt, std::span<const KeyRef> keys, Timestamp deadline,
                          const Clock& clock) {
  ParkedThread parked;
  const ParkedThreads::Inside inside{threads_, parked};
  WaitLines::Entrance entrance{keys, deadline};
  entrance.waiter().attempt = &attempt;
  entrance.waiter().parked = &parked;
  if (const ErrorCode why = enter(entrance, [] {}); why != ErrorCode::ok) return why;
  while (!threads_.sleep(parked, clock)) {
    poll(clock.now());
    threads_.resume();
  }
  return ErrorCode::ok;
}

ErrorCode WaitQueue::wait(std::unique_ptr<Attempt>& attempt, std::unique_ptr<Receiver>& receiver,
                          std::span<const KeyRef> keys, Timestamp deadline, WaitTicket& ticket,
                          WaitTicket arrival) {
  WaitLines::Entrance entrance{keys, deadline};
  Waiter& waiter = entrance.waiter();
  waiter.arrival = arrival;
  waiter.attempt = attempt.get();
  return enter(entrance, [&] {
    waiter.owned = std::move(attempt);
    waiter.receiver = std::move(receiver);
    ticket = waiter.ticket;
  });
}

// --- asking -------------------------------------------------------------------------------------

/// Tries for one waiter of a busy line. Returns the place to try next; null: none, before
/// `pass.recheck`.
WaitPlace* WaitQueue::ask(WaitLine& line, WaitPlace& place, Pass& pass) noexcept {
  Waiter& waiter = *place.waiter;
  const std::uint32_t kind = 1U << static_cast<unsigned>(place.kind);
  if (waiter.state == Waiter::State::asked) {  // by another of its lines, which then looks here
    waiter.again = true;
    pass.stopped |= kind;
    return WaitLines::next_of(line, place.after, pass.stopped);
  }
  SEMEL_ASSERT(line.busy && waiter.state == Waiter::State::waiting);
  line.again = false;
  waiter.state = Waiter::State::asked;
  waiter.asked_by = &line;
  Seen seen;
  std::optional<Verdict> verdict;
  mutex_.unlock();  // `busy` keeps the line, and `asked` the waiter and its places
  try {
    const HeldBy here{*this, pass.made};
    verdict = waiter.attempt->try_for(place.key, seen);
  } catch (const std::bad_alloc&) {  // nothing has changed
  }
  mutex_.lock();
  WaitPlace* next = place.after;
  while (next != nullptr && next->waiter == &waiter) next = next->after;  // the same key twice
  const bool has_answer = verdict == Verdict::answered || verdict == Verdict::answered_first;
  if (verdict && !has_answer) line.seen = std::move(seen);
  const bool is_late = verdict && waiter.deadline <= line.seen.now;
  bool stops = !verdict || verdict == Verdict::waits;
  if (has_answer || waiter.cancelled) {
    stops = verdict == Verdict::answered_first && !waiter.cancelled;
    if (stops) pass.recheck = std::min(pass.recheck, seen.now + ask_first);
    end_wait(waiter, pass.out);
  } else if (closed_ || is_late) {
    stops = false;
    give_up(waiter, closed_ ? ErrorCode::closing : ErrorCode::timed_out, line.seen.now, pass.out);
  } else {
    const Timestamp when = verdict ? line.seen.held_until : line.seen.now + ask_again;
    pass.recheck = std::min(pass.recheck, when);
    lines_.leave_in_line(waiter);
  }
  if (line.again) {
    pass.recheck = no_end;
    pass.stopped = 0;
    return line.first;
  }
  if (stops) pass.stopped |= kind;
  return WaitLines::next_of(line, next, pass.stopped);
}

/// Unlocks the mutex while it tries, and has locked it again when it returns.
void WaitQueue::ask_line(WaitLine& line, Deliveries& out, HeldChanges& made) noexcept {
  Pass pass{.out = out, .made = made};
  WaitPlace* place = line.first;
  while (place != nullptr && out.count() < delivery_batch) place = ask(line, *place, pass);
  if (line.size != 0) lines_.set_recheck(line, place == nullptr ? pass.recheck : Timestamp::min());
}

/// True: there is more to do, in the line that `name` and `key` are now.
bool WaitQueue::drain_batch(LineName& name, SharedKey& key, Deliveries& out,
                            HeldChanges& made) noexcept {
  const base::MutexLock lock{mutex_};
  if (WaitLine* const line = lines_.find(name); line != nullptr && line->busy) {
    line->again = true;
  } else if (line != nullptr) {
    key = line->key;
    WaitLines::begin_asking(*line);
    ask_line(*line, out, made);
    lines_.end_asking(*line);
  }
  WaitLine* const due = lines_.take_due(Timestamp::min());
  threads_.publish(lines_.next());
  if (due == nullptr) return false;
  key = due->key;
  name = {due->name.db, *key};
  return true;
}

void WaitQueue::drain_line(LineName name, SharedKey key, HeldChanges& made) noexcept {
  bool more = true;
  while (more) {
    Deliveries out;
    more = drain_batch(name, key, out, made);
    deliver(out);
  }
}

void WaitQueue::Hold::drain(WaitQueue& queue, HeldChanges& changes) noexcept {
  while (const auto next = changes.take()) {
    if (queue.marks_.may_have({next->db, next->key})) {
      queue.drain_line({next->db, next->key}, nullptr, changes);
    }
  }
  if (changes.take_incomplete()) queue.all_changed();
}

void WaitQueue::drain_due(Timestamp now) noexcept {
  std::array<SharedKey, 64> keys;
  std::array<std::uint8_t, 64> databases{};
  for (std::size_t count = keys.size(); count == keys.size();) {
    count = 0;
    {
      const base::MutexLock lock{mutex_};
      while (count < keys.size()) {
        WaitLine* const line = lines_.take_due(now);
        if (line == nullptr) break;
        databases[count] = line->name.db;
        keys[count++] = line->key;
      }
      threads_.publish(lines_.next());
    }
    for (std::size_t i = 0; i < count; ++i) {
      HeldChanges made;
      drain_line({databases[i], *keys[i]}, keys[i], made);
      Hold::drain(*this, made);
      keys[i].reset();
    }
  }
}

// --- changes ------------------------------------------------------------------------------------

WaitQueue::Hold::Hold(WaitQueue& queue) noexcept {
  if (held_.queue == &queue) return;
  queue_ = &queue;
  outer_ = std::exchange(held_, {&queue, &changes_});
}

WaitQueue::Hold::~Hold() {
  if (queue_ == nullptr) return;
  held_ = outer_;
  drain(*queue_, changes_);
}

void WaitQueue::changed(std::uint8_t db, Bytes key) noexcept {
  if (!marks_.may_have({db, key})) return;
  if (held_.queue == this) return held_.changes->add(db, key);
  HeldChanges made;
  drain_line({db, key}, nullptr, made);
  Hold::drain(*this, made);
}

void WaitQueue::changed_meanwhile(std::uint8_t db, Bytes key) noexcept {
  const base::MutexLock lock{mutex_};
  WaitLine* const line = lines_.find({db, key});
  if (line == nullptr) return;
  if (line->busy) line->again = true;
  lines_.set_recheck(*line, std::min(line->seen.now, line->timer->first.first));
  threads_.publish(lines_.next());
}

void WaitQueue::session_closed(SessionId session) noexcept {
  {
    const base::MutexLock lock{mutex_};
    // What a busy line is about to learn may be older than the end of the session.
    lines_.look_again(
        [&](const WaitLine& line) { return line.busy || line.seen.held_session == session; });
  }
  drain_due(Timestamp::min());
}

void WaitQueue::all_changed() noexcept {
  if (held_.queue == this) return held_.changes->add_all();
  {
    const base::MutexLock lock{mutex_};
    lines_.look_again([](const WaitLine&) { return true; });
  }
  drain_due(Timestamp::min());
}

bool WaitQueue::has_waiters_for(std::uint8_t db, Bytes key) noexcept {
  if (!marks_.may_have({db, key})) [[likely]]
    return false;
  const base::MutexLock lock{mutex_};
  return lines_.find({db, key}) != nullptr;
}

void WaitQueue::check_invariants() noexcept {
  const base::MutexLock lock{mutex_};
  lines_.check_invariants();
}

}  // namespace semel::engine
