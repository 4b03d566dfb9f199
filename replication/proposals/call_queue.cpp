#include "replication/proposals/call_queue.hpp"

#include "base/assert.hpp"

namespace semel::replication {

void CallQueue::open() {
  const base::MutexLock lock{mutex_};
  is_closed_ = false;
}

void CallQueue::close() noexcept {
  const base::MutexLock lock{mutex_};
  is_closed_ = true;
}

CallQueue::Pushed CallQueue::push(Proposal& call) {
  const base::MutexLock lock{mutex_};
  if (is_closed_) return Pushed::closed;
  const std::size_t bytes = call.command.bytes.size();
  if (waiting_bytes_ + bytes > bytes_max_) return Pushed::full;
  new_.proposals.push_back(std::move(call));
  waiting_bytes_ += bytes;
  new_bytes_ += bytes;
  check_invariants();
  const bool fills_entry =
      new_bytes_ >= entry_bytes_max || new_.proposals.size() >= entry_commands_max;
  if (is_busy_ && !fills_entry) return Pushed::queued;
  return begin_wake_locked() ? Pushed::wakes : Pushed::queued;
}

CallQueue::Pushed CallQueue::push(Reader& call) {
  const base::MutexLock lock{mutex_};
  if (is_closed_) return Pushed::closed;
  new_.reads.push_back(std::move(call));
  return begin_wake_locked() ? Pushed::wakes : Pushed::queued;
}

bool CallQueue::begin_wake() {
  const base::MutexLock lock{mutex_};
  return begin_wake_locked();
}

bool CallQueue::begin_wake_locked() {
  if (std::exchange(is_woken_, true)) return false;
  posting_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: under the mutex, as is_closed_
  return true;
}

void CallQueue::end_wake(bool is_woken) noexcept {
  if (!is_woken) {
    const base::MutexLock lock{mutex_};
    is_woken_ = false;
  }
  // mo: release [calls.posting]: the last use of the replica
  posting_.fetch_sub(1, std::memory_order_release);
}

CallQueue::Calls CallQueue::take(Change change, bool is_busy) {
  const base::MutexLock lock{mutex_};
  is_woken_ = false;
  is_busy_ = shows_busy_ = is_busy;
  waiting_bytes_ += change.added;
  SEMEL_ASSERT(waiting_bytes_ >= change.freed);
  waiting_bytes_ -= change.freed;
  check_invariants();
  new_bytes_ = 0;
  return std::exchange(new_, {});
}

void CallQueue::show_busy() {
  shows_busy_ = true;
  const base::MutexLock lock{mutex_};
  is_busy_ = true;
}

CallQueue::Calls CallQueue::take_rest() noexcept {
  const base::MutexLock lock{mutex_};
  new_bytes_ = 0;
  return std::exchange(new_, {});
}

void CallQueue::check_invariants() const noexcept {
  SEMEL_ASSERT(new_bytes_ <= waiting_bytes_);
}

}  // namespace semel::replication
