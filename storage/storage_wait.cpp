// Callers: what they append, and what they wait for.
#include <sched.h>

#include <algorithm>
#include <thread>

#include "storage/log/stopwatch.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

using storage::Signal;

namespace {

/// One more while this exists.
class Counted {
 public:
  explicit Counted(std::atomic<unsigned>& count) noexcept : count_(count) {
    count_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a figure
  }
  ~Counted() { count_.fetch_sub(1, std::memory_order_relaxed); }  // mo: relaxed: as above
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<unsigned>& count_;
};

}  // namespace

Ticket Storage::Impl::append_group(std::span<const Mutation> group) {
  bool has_terms = false;
  for (const Mutation& mutation : group) {
    if (mutation.type == Mutation::Type::db_map) [[unlikely]]
      remember_map(mutation);
    has_terms = has_terms || mutation.kind == Kind::name_space;
  }
  const Ticket end = joined_commits_.any()
                         ? append_beside_joined(group)
                         : fail_if_refused(log_->append(group, durable_clock_, clock_.now()));
  if (has_terms) [[unlikely]] {
    // mo: relaxed: only the word itself is compared. release [storage.terms]: they are in the log.
    storage::LogOffset before = terms_end_.load(std::memory_order_relaxed);
    while (before < end && !terms_end_.compare_exchange_weak(before, end, std::memory_order_release,
                                                             std::memory_order_relaxed)) {
    }
  }
  return end;
}

Ticket Storage::Impl::append(std::span<const Mutation> group) {
  try {
    return append_group(group);
  } catch (...) {
    // No memory. The engine keeps the change, and nothing older may be dropped because of it.
    lost_one_.store(true, std::memory_order_release);  // mo: release [storage.lost]
    if (storage::JoinedCommit* const own = joined_commits_.own(); own != nullptr) own->lost = true;
    throw;
  }
}

/// The change is already visible in memory. If the log refused it, the storage has failed.
Ticket Storage::Impl::fail_if_refused(Ticket ticket) {
  // mo: acquire [storage.stop]: the destructor has stopped the log; no caller waits
  if (ticket == 0 && !stop_.load(std::memory_order_acquire)) [[unlikely]] {
    set_failed({ErrorCode::outcome_unknown,
                "the log could not be written, or a change was larger than the room left in it and "
                "no more "
                "became free within " +
                    std::to_string(options_.confirm_within.count()) +
                    " ms; open the storage again"});
  }
  return ticket;
}

Status Storage::Impl::wait(Ticket ticket, Durability level) {
  if (level == Durability::memory) return Done{};
  if (level == Durability::quorum) return Error{ErrorCode::refused, "this storage has no replicas"};
  // Read before failed_: a joined commit that is no longer listed has set failed_ already, if it
  // failed.
  const bool joins = joined_commits_.any();
  if (storage::JoinedCommit* const own = joins ? joined_commits_.own() : nullptr; own != nullptr) {
    own->level = std::max(own->level, level);
    return Done{};  // end_joined() waits for all changes of the commit
  }
  // mo: acquire [storage.failed]
  if (failed_.load(std::memory_order_acquire) || ticket == 0) return unknown();
  if (level == Durability::logged && !joins) return Done{};
  return await_resolved(ticket, level);
}

/// Back-pressure for writers; readers are never throttled.
void Storage::Impl::pace() {
  // A joined commit waits at its end, for all its changes.
  if (log_->is_crowded() && !(joined_commits_.any() && joined_commits_.own() != nullptr))
    wait_for_room();
}

Error Storage::Impl::unknown() const noexcept {
  const base::MutexLock lock{mutex_};
  try {
    return {ErrorCode::outcome_unknown, sync_status_ ? std::string{} : sync_status_.error().detail};
  } catch (...) {
    return {ErrorCode::outcome_unknown, storage::no_memory};
  }
}

/// Writers that outpace draining wait here, where they hold no lock; otherwise the log would fill
/// up and refuse them. After an error of syncing or draining waiting would not help.
void Storage::Impl::wait_for_room() {
  const storage::Stopwatch time;
  while (log_->is_crowded() && time.passed() < options_.confirm_within) {
    const std::uint32_t seen = waiters_signal_.seen();
    {
      const base::MutexLock lock{mutex_};
      if (!drain_status_ || !sync_status_) return;
    }
    waiters_signal_.wait(seen, Millis{20});
  }
}

Status Storage::Impl::await_resolved(Ticket ticket, Durability level) {
  if (is_resolved(ticket, level)) {
    // mo: acquire [storage.failed]
    return failed_.load(std::memory_order_acquire) ? Status{unknown()} : Done{};
  }
  const bool syncs = level == Durability::synced;
  const storage::Stopwatch time;
  const Counted counted{waiting_};
  if (syncs) {
    request_sync(ticket);
    if (!joined_commits_.any()) yield_for_rounds(ticket);
  }
  Status status = Done{};
  for (;;) {
    const std::uint32_t seen = waiters_signal_.seen();
    const bool resolved = is_resolved(ticket, level);
    if (failed_.load(std::memory_order_acquire)) status = unknown();  // mo: [storage.failed]
    if (resolved || !status) break;
    const Millis left = options_.confirm_within - time.passed();
    if (left <= Millis{0}) {
      status = Error{ErrorCode::outcome_unknown,
                     "the disk took longer than confirm_within = " +
                         std::to_string(options_.confirm_within.count()) + " ms"};
      break;
    }
    if (syncs) request_joined_sync(ticket);
    waiters_signal_.wait(seen, left,
                         syncs && !joined_commits_.any() ? rounds_for(ticket) : Signal::everybody);
  }
  return status;
}

/// Where more callers wait than there are processors, waking each costs more than a round of the
/// disk: an interrupt of another processor for almost every answer. They pass their processors to
/// each other instead, for as long as two rounds take; who has no answer then sleeps.
void Storage::Impl::yield_for_rounds(Ticket ticket) const noexcept {
  static const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  // mo: relaxed: figures, both
  if (waiting_.load(std::memory_order_relaxed) <= 2 * processors) return;
  const double at_most = 2 * round_seconds_.load(std::memory_order_relaxed);
  if (at_most > yield_seconds_max) return;
  const storage::Stopwatch time;
  while (!is_resolved(ticket, Durability::synced) && time.seconds() < at_most) sched_yield();
}

/// The bits of the rounds that may sync this ticket. Of 64 callers a third arrive during a round
/// that does not cover them; waking them for it would cost as much as waking them for their own.
std::uint32_t Storage::Impl::rounds_for(Ticket ticket) const noexcept {
  // mo: acquire [storage.round]: in this order. The target belongs to this round or to the next; to
  // a later one only if a round has ended meanwhile, and then wait() returns at once.
  const std::uint32_t round = round_.load(std::memory_order_acquire);
  const bool covered = ticket <= target_.load(std::memory_order_acquire);
  const std::uint32_t first = covered ? round : round + 1;
  return bit_of_round(first) | bit_of_round(first + 1);
}

bool Storage::Impl::is_resolved(Ticket ticket, Durability level) const noexcept {
  if (level != Durability::logged && level != Durability::synced) return true;
  if (joined_commits_.hold(ticket, level)) {
    // mo: acquire [storage.failed]
    return joined_commits_.own() != nullptr || failed_.load(std::memory_order_acquire);
  }
  // mo: acquire [storage.synced] [storage.failed]
  return level == Durability::logged || synced_.load(std::memory_order_acquire) >= ticket ||
         failed_.load(std::memory_order_acquire);
}

void Storage::Impl::request_sync(Ticket ticket) {
  // mo: seq_cst [storage.wanted]: either the syncing thread sees this request, or we see its round.
  storage::LogOffset before = requested_.load(std::memory_order_seq_cst);
  while (before < ticket &&
         !requested_.compare_exchange_weak(before, ticket, std::memory_order_seq_cst)) {
  }
  // If an earlier request is still open, its caller has woken the syncing thread already.
  // mo: seq_cst [storage.wanted]
  if (before <= synced_.load(std::memory_order_seq_cst)) sync_signal_.raise();
}

void Storage::Impl::when(Ticket ticket, Durability level, std::function<void(Status)> then) {
  if (is_resolved(ticket, level)) return then(wait(ticket, level));
  std::list<Waiter> own;
  own.push_back({ticket, level, std::move(then)});
  {
    const base::MutexLock lock{mutex_};
    // complete_waiters() takes the mutex after the round, the joined commit or the failure, so this
    // check under the mutex cannot miss one.
    if (!is_resolved(ticket, level) && waiters_.size() < limits::callbacks_max) {
      waiters_.splice(waiters_.end(), own);
    }
  }
  if (!own.empty()) return own.front().then(wait(ticket, level));
  if (level == Durability::synced) {
    request_sync(ticket);
    request_joined_sync(ticket);
  }
}

}  // namespace semel
