// See semel/patterns/debounce.hpp.
//
// Protocol of run_once_more_after
//   caller during a run   1. writes the mark, which gives it a new version   2. claims: in flight
//   runner at the end     1. releases the claim   2. compares the mark with the version that it
//                         read when it began, and runs again if it differs
// At least one of them sees the other's first step, so no call that was answered "will run again"
// is lost.
#include "semel/patterns/debounce.hpp"

#include <algorithm>
#include <exception>
#include <new>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "base/assert.hpp"
#include "semel/store.hpp"

namespace semel {
namespace {

/// No name of a namespace begins with it, so it cannot be the key of a claim.
[[nodiscard]] std::string asked_key_of(const Claims& claims, Bytes key) {
  std::string name{"asked/"};
  return name.append(claims.name()).append(":").append(key);
}

constexpr Millis mark_ttl_min{86'400'000};  // longer than a run takes

}  // namespace

Debounce::Turn::Turn(Debounce& debounce, Bytes key) : debounce_(debounce), key_(key) {
  if (!debounce.options_.run_once_more_after || announce()) ask();
}

/// Writes the mark. False: it cannot be written, and nothing runs.
bool Debounce::Turn::announce() {
  asked_key_ = asked_key_of(debounce_.claims_, key_);
  Store store = debounce_.engine_->store(debounce_.claims_.policy().db);
  const Millis ttl = std::max(debounce_.options_.interval, mark_ttl_min);
  const auto marked = store.set(asked_key_, "1", {.expiry = Expiry::in(ttl)});
  if (marked.ok()) return true;
  const bool later = retry_of(marked.error().code) == Retry::later;
  answer_ = later ? DebounceAnswer::busy : DebounceAnswer::refused;
  return false;
}

Debounce::Turn::~Turn() {
  if (!runs_) return;
  // The function threw. Whatever becomes of the release, the claim ends with its interval.
  if (!debounce_.options_.remove_on_error && !debounce_.options_.run_once_more_after) return;
  try {
    static_cast<void>(debounce_.claims_.release({.key = key_, .epoch = epoch_}));
  } catch (const std::bad_alloc&) {
  }
}

/// Takes the mark away if it is still the one that the run began with.
bool Debounce::Turn::others_asked() {
  SEMEL_ASSERT(!asked_key_.empty());
  const StoreOp op{.verb = Verb::delex,
                   .db = debounce_.claims_.policy().db,
                   .condition = Condition::if_version,
                   .key = asked_key_,
                   .expected = seen_};
  StoreOutcome outcome;
  debounce_.engine_->apply(op, outcome);
  return outcome.error == ErrorCode::ok && outcome.found && !outcome.applied;
}

void Debounce::Turn::ask() {
  SEMEL_ASSERT(!runs_);
  const DebounceOptions& options = debounce_.options_;
  const ClaimOutcome claim = debounce_.claims_.claim({.key = key_, .lease = options.interval});
  runs_ = claim.answer == ClaimAnswer::granted;
  if (runs_) {
    SEMEL_ASSERT(claim.epoch != 0);
    epoch_ = claim.epoch;
    if (options.run_once_more_after) {
      Store store = debounce_.engine_->store(debounce_.claims_.policy().db);
      const auto mark = store.get_versioned(asked_key_);
      seen_ = mark.ok() && *mark ? (*mark)->version : 0;
    }
    if (options.watchdog != nullptr) {
      kept_ = options.watchdog->keep(debounce_.claims_, key_, epoch_, options.interval);
    }
    return;
  }
  // Another run serves the callers of this one.
  if (answer_ == DebounceAnswer::ran || answer_ == DebounceAnswer::failed) return;
  if (claim.answer == ClaimAnswer::in_flight) {
    answer_ =
        options.run_once_more_after ? DebounceAnswer::will_run_again : DebounceAnswer::suppressed;
    return;
  }
  const bool later = retry_of(claim.error) == Retry::later;
  answer_ = later ? DebounceAnswer::busy : DebounceAnswer::refused;
}

void Debounce::Turn::run(const std::function<bool()>& function) {
  std::exception_ptr thrown;
  while (runs_) {
    try {
      end(function());
#ifdef __GLIBCXX__
    } catch (const abi::__forced_unwind&) {
      throw;  // the thread is being cancelled, and that cannot be caught
#endif
    } catch (...) {
      if (!debounce_.options_.run_once_more_after) throw;
      if (thrown == nullptr) thrown = std::current_exception();
      end(false);
    }
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void Debounce::Turn::end(bool ok) {
  SEMEL_ASSERT(runs_);
  const DebounceOptions& options = debounce_.options_;
  kept_ = {};
  runs_ = false;
  answer_ = ok ? DebounceAnswer::ran : DebounceAnswer::failed;
  const bool removes =
      options.run_once_more_after || (ok ? options.remove_on_finish : options.remove_on_error);
  if (!removes) return;
  const OwnerAnswer released = debounce_.claims_.release({.key = key_, .epoch = epoch_}).answer;
  // Another answer than ok: the run took longer than its interval. If another run has begun, it
  // serves all earlier callers. If there is none (unknown), callers still wait for this one.
  if (released != OwnerAnswer::ok && released != OwnerAnswer::unknown) return;
  if (options.run_once_more_after && others_asked()) ask();
}

Result<Millis> Debounce::remaining(Bytes key) {
  SEMEL_TRY(view, claims_.get(key));
  return view.state == ClaimState::held ? view.lease_remaining : Millis{0};
}

}  // namespace semel
