#include "storage/sync/waiters.hpp"

#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "semel/limits.hpp"
#include "storage/log/stopwatch.hpp"

namespace semel::storage {

namespace {

/// A slower disk is worth a sleep.
constexpr double yield_seconds_max = 1e-3;

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

Status Waiters::wait(Ticket ticket, Durability level) {
  if (level == Durability::memory) return Done{};
  if (level == Durability::quorum) return Error{ErrorCode::refused, "this storage has no replicas"};
  // Read before the failure: a joined commit that is no longer listed has reported its failure.
  const bool joins = joined_.any();
  if (JoinedCommit* const own = joins ? joined_.own() : nullptr; own != nullptr) {
    own->level = std::max(own->level, level);
    return Done{};  // the end of the commit waits for all its changes
  }
  if (health_.has_failed() || ticket == 0) return health_.unknown();
  if (level == Durability::logged && !joins) return Done{};
  return await_resolved(ticket, level);
}

Status Waiters::await_resolved(Ticket ticket, Durability level) {
  if (is_resolved(ticket, level)) {
    return health_.has_failed() ? Status{health_.unknown()} : Done{};
  }
  const bool syncs = level == Durability::synced;
  const Stopwatch time;
  const Counted counted{waiting_};
  if (syncs) {
    sync_.request(ticket);
    if (!joined_.any()) yield_for_rounds(ticket);
  }
  for (;;) {
    const std::uint32_t seen = progress_.seen();
    const bool resolved = is_resolved(ticket, level);
    if (health_.has_failed()) return health_.unknown();
    if (resolved) return Done{};
    const Millis left = confirm_within_ - time.passed();
    if (left <= Millis{0}) {
      return Error{ErrorCode::outcome_unknown, "the disk took longer than confirm_within = " +
                                                   std::to_string(confirm_within_.count()) + " ms"};
    }
    if (syncs) request_joined_sync(ticket);
    progress_.wait(seen, left,
                   syncs && !joined_.any() ? sync_.rounds_for(ticket) : Signal::everybody);
  }
}

/// Where more callers wait than there are processors, waking each costs more than a round of the
/// disk: an interrupt of another processor for almost every answer. They pass their processors to
/// each other instead, for as long as two rounds take; callers without an answer then sleep.
void Waiters::yield_for_rounds(Ticket ticket) const noexcept {
  static const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  if (waiting_.load(std::memory_order_relaxed) <= 2 * processors) return;  // mo: relaxed: a figure
  const double at_most = 2 * sync_.round_seconds();
  if (at_most > yield_seconds_max) return;
  const Stopwatch time;
  while (!is_resolved(ticket, Durability::synced) && time.seconds() < at_most) sched_yield();
}

bool Waiters::is_resolved(Ticket ticket, Durability level) const noexcept {
  if (level != Durability::logged && level != Durability::synced) return true;
  if (joined_.hold(ticket, level)) return joined_.own() != nullptr || health_.has_failed();
  return level == Durability::logged || sync_.synced() >= ticket || health_.has_failed();
}

void Waiters::request_joined_sync(Ticket ticket) noexcept {
  if (joined_.unsynced_before(ticket) && joined_.request_sync()) sync_.signal().raise();
}

void Waiters::when(Ticket ticket, Durability level, Function<void(Status)> then) {
  if (is_resolved(ticket, level)) return then(wait(ticket, level));
  std::list<Waiter> own;
  own.push_back({ticket, level, std::move(then)});
  {
    const base::MutexLock lock{mutex_};
    if (!is_resolved(ticket, level) && listed_.size() < limits::callbacks_max) {
      listed_.splice(listed_.end(), own);
    }
  }
  if (!own.empty()) return own.front().then(wait(ticket, level));
  if (level == Durability::synced) {
    sync_.request(ticket);
    request_joined_sync(ticket);
  }
}

Status Waiters::await_log(LogOffset end, const char* what) {
  const Stopwatch time;
  for (;;) {
    const std::uint32_t seen = progress_.seen();
    if (health_.has_failed()) return health_.unknown();
    if (sync_.synced() >= end) return Done{};
    sync_.request(end);
    const Millis left = confirm_within_ - time.passed();
    if (left <= Millis{0}) {
      return Error{ErrorCode::outcome_unknown, std::string{what} +
                                                   " could not be synced within confirm_within = " +
                                                   std::to_string(confirm_within_.count()) + " ms"};
    }
    progress_.wait(seen, left);
  }
}

void Waiters::complete(std::uint32_t rounds) noexcept {
  progress_.raise(rounds);
  std::list<Waiter> done;
  LogOffset left = 0;
  const bool had_failed = health_.has_failed();
  {
    const base::MutexLock lock{mutex_};
    for (auto at = listed_.begin(); at != listed_.end();) {
      const auto waiting = at++;
      if (is_resolved(waiting->ticket, waiting->level)) {
        done.splice(done.end(), listed_, waiting);
      } else if (waiting->level == Durability::synced) {
        left = std::max(left, waiting->ticket);
      }
    }
    SEMEL_ASSERT(!had_failed || listed_.empty());
    SEMEL_ASSERT(listed_.size() <= limits::callbacks_max);
  }
  // After the list was read: a waiter that a failure has resolved must see the failure.
  const bool failed = health_.has_failed();
  request_joined_sync(left);
  for (Waiter& waiting : done) {
    try {
      waiting.then(failed ? Status{health_.unknown()} : Done{});
    } catch (...) {
      // Its exception must not end the answers of others, nor this thread.
      callbacks_threw_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
    }
  }
}

}  // namespace semel::storage
