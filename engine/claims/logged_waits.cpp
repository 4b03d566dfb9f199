#include "engine/claims/logged_waits.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "engine/claims/claim_calls.hpp"

namespace semel::engine {
namespace {

/// Whether it was granted to this wait. An id of the caller may be that of a claim which is held
/// already: what another call was granted must not be released here.
[[nodiscard]] bool is_own_grant(const LoggedRequest& asked, const ClaimOutcome& outcome) noexcept {
  return outcome.answer == ClaimAnswer::granted ||
         (outcome.answer == ClaimAnswer::regranted && asked.has_own_id);
}

[[nodiscard]] ClaimOutcome refusal(ClaimAnswer answer, ErrorCode why) noexcept {
  ClaimOutcome outcome;
  outcome.answer = answer;
  outcome.error = why;
  return outcome;
}

}  // namespace

Verdict Looking::try_for(std::size_t, Seen& seen) {
  const ClaimContext context{engine_, *names_};
  outcome = {};
  outcome.answer = ClaimAnswer::granted;
  seen.now = context.now;
  // Between entries the replica's clock stands still; a lease that is over by the group's time can
  // be asked for. Within one, its time is the group's.
  const GroupTime* const clock = context.impl.group_clock;
  const bool is_deciding = context.impl.core().context().decision != nullptr;
  if (clock != nullptr && !is_deciding) seen.now = std::max(seen.now, clock->now());
  if (context.dropped()) return Verdict::answered_first;
  Version version = 0;
  static_cast<void>(context.single(table_key_)(
      [&](const RecordView* live, const auto&) {
        ClaimRecord record;
        const bool is_held = live != nullptr && live->kind == Kind::claim &&
                             decode(live->value, record) && record.state == ClaimState::held &&
                             record.lease_until > seen.now && !context.owner_dead(live);
        const bool is_finished = live != nullptr && live->kind == Kind::claim &&
                                 decode(live->value, record) && record.state != ClaimState::held &&
                                 record.state != ClaimState::vacant;
        if (is_finished) outcome.answer = ClaimAnswer::replay;  // for each that waits
        if (is_held) {
          outcome.answer = ClaimAnswer::in_flight;
          outcome.owner = record.owner;
          outcome.attempt = record.attempts;
          seen.held_until = record.lease_until;
          seen.held_session = record.session;
          seen.attempt = record.attempts;
          seen.owner = record.owner;
        }
        return Decision{};
      },
      version));
  switch (outcome.answer) {
    case ClaimAnswer::in_flight:
      return Verdict::waits;
    case ClaimAnswer::replay:
      return Verdict::answered;
    default:
      return Verdict::answered_first;
  }
}

// --- blocking -----------------------------------------------------------------------------------

ClaimOutcome LoggedWaits::wait(const Claims::NamespaceRef& names, const ClaimRequest& request,
                               Timestamp deadline) {
  const LoggedRequest asked{request};
  const TableKey key{names->prefix(), request.key};
  Engine::Impl& impl = impl_of(engine_);
  for (;;) {
    ClaimOutcome outcome = claim_logged(log_, engine_, *names, asked);
    if (outcome.answer != ClaimAnswer::in_flight) return outcome;
    if (deadline <= log_.clock().now()) {
      outcome.error = ErrorCode::timed_out;
      return outcome;
    }
    Looking looking{engine_, names, asked.request, key.bytes()};
    ClaimOutcome seen = wait_for_claim(impl.wait_queue(), looking, deadline, impl.clock());
    // The wait timed out, there are too many waiters, or the engine ends.
    if (seen.error != ErrorCode::ok) return seen;
  }
}

// --- with a callback ----------------------------------------------------------------------------

struct LoggedWaits::Wait {
  explicit Wait(const WaitStart& start)
      : names(start.names),
        key(start.request.key),
        labels(joined_labels(start.request)),
        asked(start.request),
        deadline(start.deadline) {
    asked.request.key = key;
    point_labels(asked.request, labels);
  }

  const Claims::NamespaceRef names;
  const std::string key;
  const std::string labels;
  LoggedRequest asked;
  const Timestamp deadline;
  // Under the mutex.
  ClaimCallback done;
  WaitTicket ticket = 0;
  WaitTicket queued = 0;     // in the wait queue; 0: it is not there
  bool is_over = false;      // its callback has begun, or never will
  bool is_unasked = false;   // there was no memory to ask
  std::thread::id runner{};  // while it runs: where
};

bool LoggedWaits::begin(const WaitStart& start, ClaimCallback& done, WaitTicket& ticket,
                        ClaimOutcome& outcome) {
  const auto wait = std::make_shared<Wait>(start);
  ticket = 0;
  {
    const base::MutexLock lock{mutex_};
    ErrorCode why = ErrorCode::ok;
    if (waits_.size() >= limits::waiters_total_max) why = ErrorCode::waiters_full;
    if (is_closed_) why = ErrorCode::closing;
    if (why != ErrorCode::ok) {
      outcome = refusal(ClaimAnswer::busy, why);
      return false;
    }
    wait->ticket = mark | next_++;
    waits_.emplace(wait->ticket, wait);
    wait->done = std::move(done);
    ticket = wait->ticket;
  }
  // From here on the callback may have run, and with it may be gone what `ticket` belonged to.
  ask(wait);
  return true;
}

/// From any thread, also the one that applies: it does not block. Without memory retry() asks.
void LoggedWaits::ask(const SharedWait& wait) noexcept {
  try {
    log_.decide(command_of(wait->names->name(), wait->asked.request), Repeat::safe,
                [self = shared_from_this(), wait](Result<replication::Answer> answer) {
                  self->answered(wait, outcome_of(std::move(answer)));
                });
  } catch (const std::bad_alloc&) {
    const base::MutexLock lock{mutex_};
    wait->is_unasked = has_unasked_ = true;
  }
}

void LoggedWaits::retry() noexcept {
  SharedWait found;
  {
    const base::MutexLock lock{mutex_};
    if (!has_unasked_) return;
    has_unasked_ = false;
    for (const auto& [ticket, wait] : waits_) {
      if (!wait->is_unasked) continue;
      if (found != nullptr) has_unasked_ = true;  // the next time
      if (found == nullptr) found = wait;
    }
    if (found != nullptr) found->is_unasked = false;
  }
  if (found != nullptr) ask(found);
}

void LoggedWaits::answered(const SharedWait& wait, ClaimOutcome&& outcome) {
  bool is_over = false;
  {
    const base::MutexLock lock{mutex_};
    is_over = wait->is_over;
  }
  if (is_over) {
    if (is_own_grant(wait->asked, outcome)) give_back(wait, outcome.epoch);
    return;
  }
  wait->asked.finish(outcome);
  open_if_full(wait->names->policy(), outcome);
  if (outcome.answer != ClaimAnswer::in_flight) return finish(wait, std::move(outcome));
  if (wait->deadline <= log_.clock().now()) {
    outcome.error = ErrorCode::timed_out;
    return finish(wait, std::move(outcome));
  }
  try {
    park(wait);
  } catch (const std::bad_alloc&) {
    finish(wait, refusal(ClaimAnswer::busy, ErrorCode::memory_full));
  }
}

/// Not on the thread that applies.
void LoggedWaits::park(const SharedWait& wait) {
  ClaimCallback woken{[self = shared_from_this(), wait](ClaimOutcome&& seen) {
    self->woken(wait, std::move(seen));
  }};
  const TableKey key{wait->names->prefix(), wait->key};
  WaitTicket queued = 0;
  ClaimOutcome at_once;
  WaitQueue& queue = impl_of(engine_).wait_queue();
  Looking first{engine_, wait->names, wait->asked.request, key.bytes()};
  if (!wait_for_claim(queue, first, wait->deadline, woken, queued, at_once)) {
    if (at_once.error == ErrorCode::ok) return ask(wait);
    return finish(wait, std::move(at_once));
  }
  bool is_over = false;
  {
    const base::MutexLock lock{mutex_};
    // It may have been woken meanwhile, and wait anew: then cancel() misses it in the queue, and it
    // ends when it is woken.
    wait->queued = queued;
    is_over = wait->is_over;
  }
  if (is_over) static_cast<void>(queue.cancel(queued));
}

/// This may be the thread that applies: nothing here blocks, or calls what others wrote.
void LoggedWaits::woken(const SharedWait& wait, ClaimOutcome&& seen) noexcept {
  {
    const base::MutexLock lock{mutex_};
    wait->queued = 0;
    if (wait->is_over) return;
  }
  if (seen.error == ErrorCode::ok) return ask(wait);
  try {
    log_.run([self = shared_from_this(), wait, seen = std::move(seen)]() mutable {
      self->finish(wait, std::move(seen));
    });
  } catch (const std::bad_alloc&) {
    ask(wait);  // its answer comes where it can be finished
  }
}

void LoggedWaits::finish(const SharedWait& wait, ClaimOutcome&& outcome) {
  ClaimCallback done;
  bool is_first = false;
  {
    const base::MutexLock lock{mutex_};
    is_first = !std::exchange(wait->is_over, true);
    if (is_first) {
      wait->runner = std::this_thread::get_id();
      done = std::move(wait->done);
    }
  }
  if (!is_first) {
    if (is_own_grant(wait->asked, outcome)) give_back(wait, outcome.epoch);
    return;
  }
  impl_of(engine_).core().callbacks().run(Callback::waiter, [&] { done(std::move(outcome)); });
  done = nullptr;  // what it has captured is gone before cancel() returns
  const base::MutexLock lock{mutex_};
  wait->runner = {};
  waits_.erase(wait->ticket);
  callback_ended_.notify_all();
}

/// If this fails, the lease ends it.
void LoggedWaits::give_back(const SharedWait& wait, Epoch epoch) {
  const OwnerCall call{.key = wait->key, .epoch = epoch};
  // `wait` has the bytes, which are read before this returns.
  log_.decide({replication::OwnerCommand{
                  .verb = OwnerVerb::release, .name = wait->names->name(), .call = call}},
              Repeat::safe, [](const Result<replication::Answer>&) {});
}

bool LoggedWaits::cancel(WaitTicket ticket) noexcept {
  SharedWait wait;
  WaitTicket queued = 0;
  ClaimCallback done;  // what it has captured is destroyed without the mutex
  {
    base::MutexLock lock{mutex_};
    const auto found = waits_.find(ticket);
    if (found == waits_.end()) return false;
    wait = found->second;
    if (wait->is_over) {  // it runs
      if (wait->runner == std::this_thread::get_id()) return false;
      while (waits_.count(ticket) != 0) callback_ended_.wait(lock);
      return false;
    }
    wait->is_over = true;
    done = std::move(wait->done);
    queued = std::exchange(wait->queued, 0);
    waits_.erase(found);
  }
  if (queued != 0) static_cast<void>(impl_of(engine_).wait_queue().cancel(queued));
  return true;
}

/// One at a time: it must need no memory.
void LoggedWaits::close() noexcept {
  for (;;) {
    SharedWait wait;
    WaitTicket queued = 0;
    {
      const base::MutexLock lock{mutex_};
      is_closed_ = true;
      const auto found = std::find_if(waits_.begin(), waits_.end(),
                                      [](const auto& each) { return !each.second->is_over; });
      if (found == waits_.end()) return;
      wait = found->second;
      queued = std::exchange(wait->queued, 0);
    }
    if (queued != 0) static_cast<void>(impl_of(engine_).wait_queue().cancel(queued));
    finish(wait, refusal(ClaimAnswer::in_flight, ErrorCode::closing));
  }
}

}  // namespace semel::engine
