// See semel/patterns/once.hpp.
#include "semel/patterns/once.hpp"

#include <new>
#include <set>
#include <utility>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "semel/engine.hpp"

namespace semel::detail {
namespace {

/// Errors after which the same call may go through.
[[nodiscard]] bool is_busy(ErrorCode code) noexcept {
  return retry_of(code) == Retry::later;
}

/// The grants with a claim id that run in this process. Never destroyed: a run may outlive main().
class RunsHere {
 public:
  [[nodiscard]] static RunsHere& all() {
    static RunsHere* const runs = new RunsHere;
    return *runs;
  }
  /// The run is registered until the returned object is destroyed. Null: it runs already.
  [[nodiscard]] std::shared_ptr<void> begin(const Engine* engine, Epoch epoch) {
    {
      const base::MutexLock lock{mutex_};
      if (!runs_.emplace(engine, epoch).second) return nullptr;
    }
    return {this, [this, engine, epoch](void*) {
              const base::MutexLock lock{mutex_};
              runs_.erase({engine, epoch});
            }};
  }

 private:
  base::Mutex mutex_;
  std::set<std::pair<const Engine*, Epoch>> runs_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace

bool is_live(Claims& claims, Bytes key, Epoch epoch) {
  const Result<ClaimView> view = claims.get(key);
  return view.ok() && view->state == ClaimState::held && view->epoch == epoch &&
         view->lease_remaining > Millis{0};
}

ClaimOutcome ask_until(Claims& claims, const ClaimRequest& request, Timestamp deadline) {
  // A lease that is over each time is shorter than a grant takes to be written down.
  constexpr unsigned tries = 16;
  for (unsigned i = 0; i < tries; ++i) {
    ClaimOutcome outcome = claims.claim_or_wait(request, deadline);
    if (!is_granted(outcome) || is_live(claims, request.key, outcome.epoch)) return outcome;
    give_back(claims, request.key, outcome);
    if (claims.engine().now() >= deadline) break;
  }
  ClaimOutcome late;
  late.answer = ClaimAnswer::in_flight;
  late.error = ErrorCode::timed_out;
  late.retry_after = claims.policy().retry_after_max;
  return late;
}

/// Without a result: if this fails, the lease ends the claim, which may be a doubt. So it is tried
/// again where a heap or a table that is full now may have room in a moment.
void give_back(Claims& claims, Bytes key, const ClaimOutcome& grant) noexcept {
  constexpr unsigned tries = 3;
  for (unsigned i = 0; i < tries; ++i) {
    try {
      const OwnerOutcome outcome = claims.release({.key = key, .epoch = grant.epoch});
      if (outcome.error == ErrorCode::ok || retry_of(outcome.error) == Retry::never) return;
    } catch (const std::bad_alloc&) {
    }
  }
}

GuardedRun::GuardedRun(Claims& claims, const OnceCall& call, ClaimOutcome&& claim, Pickup pickup)
    : claims_(claims), call_(call), claim_(std::move(claim)) {
  if (call.key.empty() && call.without_key) {
    report_.answer = OnceAnswer::unguarded;
    runs_ = true;
  } else {
    answer(claim_);
  }
  try {
    if (open_ && pickup == Pickup::later && !is_live(claims_, call_.key, claim_.epoch)) ask_anew();
    if (open_ && call_.claim_id) run_once_here();
    if (!runs_) return;
    work_.emplace(claims_, call_.key, claim_);
    if (open_ && call.watchdog != nullptr) {
      kept_ = call.watchdog->keep(claims_, call.key, claim_.epoch, call.lease);
    }
  } catch (...) {  // nothing has run, and no destructor will give the grant back
    give_back();
    throw;
  }
}

/// The lease of a grant ended before its caller saw it. Nothing has run under it, so that is no
/// takeover and no doubt: it is given back, and claimed as if it came now.
void GuardedRun::ask_anew() {
  give_back();
  runs_ = false;
  report_ = {};
  claim_ = claims_.claim(request_of(call_));
  answer(claim_);
}

/// Two calls with one claim id at the same time are granted and regranted. The first that comes
/// here runs; the other finds it running, or finds its record.
void GuardedRun::run_once_here() {
  here_ = RunsHere::all().begin(&claims_.engine(), claim_.epoch);
  if (here_ != nullptr) {
    const Result<ClaimView> view = claims_.get(call_.key);
    if (view.ok() && view->state == ClaimState::held && view->epoch == claim_.epoch) return;
    here_.reset();
  }
  runs_ = open_ = false;
  report_.answer = OnceAnswer::in_flight;
  report_.retry_after = claims_.policy().retry_after_max;
}

void GuardedRun::answer(ClaimOutcome& claim) {
  report_.attempt = claim.attempt;
  report_.epoch = claim.epoch;
  report_.retry_after = claim.retry_after;
  switch (claim.answer) {
    case ClaimAnswer::granted:
    case ClaimAnswer::regranted:
      report_.takeover = claim.takeover;
      runs_ = open_ = true;
      return;
    case ClaimAnswer::unprotected:
      report_.answer = OnceAnswer::unguarded;
      runs_ = true;
      return;
    case ClaimAnswer::replay:
      report_.answer = claim.result_expired ? OnceAnswer::expired : OnceAnswer::replayed;
      if (!claim.result_expired) stored_ = std::move(claim.result);
      return;
    case ClaimAnswer::kept_failure:
      report_.answer = OnceAnswer::kept_failure;
      report_.failure = std::move(claim.result);
      return;
    case ClaimAnswer::in_flight:
      report_.answer = OnceAnswer::in_flight;
      if (claim.error != ErrorCode::ok) report_.error = {claim.error, {}};  // timed_out, closing
      return;
    case ClaimAnswer::mismatch:
      report_.answer = OnceAnswer::mismatch;
      return;
    case ClaimAnswer::in_doubt:
      report_.answer = OnceAnswer::in_doubt;
      return;
    case ClaimAnswer::too_old:
      report_.answer = OnceAnswer::too_old;
      return;
    case ClaimAnswer::too_new:
      report_.answer = OnceAnswer::too_new;
      return;
    case ClaimAnswer::unknown:
      report_.answer = OnceAnswer::unknown;
      return;
    case ClaimAnswer::busy:
    case ClaimAnswer::unanswered:
      report_.answer = is_busy(claim.error) ? OnceAnswer::busy : OnceAnswer::refused;
      report_.error = {claim.error, {}};
      return;
  }
}

void GuardedRun::complete_without(std::string why) {
  complete({}, ResultKeeping::none);
  if (report_.answer == OnceAnswer::ran) {
    report_.error = {ErrorCode::result_not_kept, std::move(why)};
  }
}

void GuardedRun::complete(Bytes result, ResultKeeping keeping) {
  SEMEL_ASSERT(runs_);
  if (!open_) return;  // unguarded: there is nothing to be written down
  open_ = false;
  OwnerOutcome outcome;
  // A repeat of the completion is answered ok if an earlier try counted; until it ends, the
  // watchdog, if there is one, keeps the lease.
  for (unsigned left = tries(); left > 0; --left) {
    const OwnerCall done{
        .key = call_.key, .epoch = claim_.epoch, .payload = result, .keeping = keeping};
    try {
      outcome = claims_.complete(done);
    } catch (const std::bad_alloc&) {  // for the result, most likely: the work is done without it
      if (keeping != ResultKeeping::none) ++left;  // which is not a try that the disk failed
      keeping = ResultKeeping::none;
      outcome.error = outcome.dropped = ErrorCode::memory_full;
      continue;
    }
    if (outcome.error == ErrorCode::ok || retry_of(outcome.error) == Retry::never) break;
  }
  report_.late = outcome.late;
  if (outcome.error != ErrorCode::ok) {
    report_.answer = OnceAnswer::unrecorded;
    report_.error = {outcome.error, {}};
    return;
  }
  switch (outcome.answer) {
    case OwnerAnswer::ok:
      report_.answer = OnceAnswer::ran;
      if (outcome.dropped == ErrorCode::ok && (keeping != ResultKeeping::none || result.empty())) {
        return;
      }
      report_.error = {
          ErrorCode::result_not_kept,
          std::to_string(result.size()) + " bytes: " +
              std::string{sentence_of(outcome.dropped == ErrorCode::ok ? ErrorCode::memory_full
                                                                       : outcome.dropped)}};
      return;
    case OwnerAnswer::refused:  // strict and late: no other owner, and nothing recorded
    case OwnerAnswer::unknown:  // it ended, or was taken away by an operator
    case OwnerAnswer::unanswered:
      report_.answer = OnceAnswer::unrecorded;
      return;
    case OwnerAnswer::stale_owner:
    case OwnerAnswer::conflict:
    case OwnerAnswer::not_owner:
      report_.answer = OnceAnswer::superseded;
      if (outcome.has_result) stored_ = std::move(outcome.result);
      return;
  }
}

OwnerOutcome GuardedRun::give_up(Bytes known, Policy::OnFailure then, unsigned tries) {
  SEMEL_ASSERT(open_);
  open_ = false;
  OwnerOutcome outcome;
  for (unsigned i = 0; i < tries; ++i) {
    outcome = claims_.fail(
        {.key = call_.key, .epoch = claim_.epoch, .payload = known, .on_failure = then});
    if (outcome.error == ErrorCode::value_too_long) {  // the text matters less than the failure
      outcome = claims_.fail({.key = call_.key, .epoch = claim_.epoch, .on_failure = then});
    }
    if (outcome.error == ErrorCode::ok || retry_of(outcome.error) == Retry::never) break;
  }
  return outcome;
}

void GuardedRun::fail(Error&& error) {
  SEMEL_ASSERT(runs_);
  if (is_unknown_outcome(error)) {
    std::string known = error.message();
    report_.error = std::move(error);
    return doubt(std::move(known));
  }
  report_.failure = error.message();
  report_.error = std::move(error);
  if (!open_) return;
  const OwnerOutcome outcome = give_up(report_.failure, claims_.policy().on_failure, tries());
  const bool ours = outcome.answer == OwnerAnswer::ok || outcome.error != ErrorCode::ok;
  report_.answer = ours ? OnceAnswer::failed : OnceAnswer::superseded;
}

void GuardedRun::doubt(std::string known) {
  SEMEL_ASSERT(runs_);
  report_.failure = std::move(known);
  if (!open_) return;
  const Policy::OnFailure then = claims_.policy().on_exception;
  const OwnerOutcome outcome = give_up(report_.failure, then, tries());
  const bool ours = outcome.answer == OwnerAnswer::ok || outcome.error != ErrorCode::ok;
  const bool doubted = then == Policy::OnFailure::in_doubt;
  report_.answer = !ours     ? OnceAnswer::superseded
                   : doubted ? OnceAnswer::in_doubt
                             : OnceAnswer::failed;
}

void GuardedRun::give_back() noexcept {
  if (!open_) return;
  open_ = false;
  kept_ = {};
  detail::give_back(claims_, call_.key, claim_);
}

void GuardedRun::abandon() noexcept {
  try {
    // The exception goes on to the caller, and with it no error of this call.
    static_cast<void>(give_up("exception", claims_.policy().on_exception, tries()));
  } catch (const std::bad_alloc&) {  // the claim stays held until its lease ends
  }
}

}  // namespace semel::detail
