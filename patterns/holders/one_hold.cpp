// The part of semel/patterns/lock.hpp that Semaphore and ReadWriteLock are made of.

#include <system_error>
#include <utility>

#include "patterns/holders/slots.hpp"
#include "semel/engine.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/once.hpp"

namespace semel::detail {

OneHold::OneHold(const Claims& claims, Bytes key, const LockOptions& options, std::string name)
    : claims_(claims),
      key_(key),
      owner_(options.owner),
      name_(std::move(name)),
      options_(options) {}

OneHold::~OneHold() {
  static_cast<void>(give_back());  // if it was lost, it is not ours to give back
}

ClaimRequest OneHold::request() const noexcept {
  return {.key = key_, .lease = options_.lease, .owner = owner_, .session = options_.session};
}

bool OneHold::refuse(ErrorCode code, std::string why) {
  error_ = {code, std::move(why)};
  return false;
}

bool OneHold::begin() {
  const std::lock_guard guard{mutex_};
  if (epoch_ != 0 || asking_) return refuse(ErrorCode::object_in_use, name_);
  if (Status possible = Watchdog::check(options_.watchdog, claims_, options_.lease); !possible) {
    return refuse(possible.error().code, possible.error().detail);
  }
  asking_ = true;
  return true;
}

bool OneHold::attempt(const Ask& ask) {
  if (!begin()) return false;
  Attempted found;
  try {
    found = ask(claims_, request());
    return finish(found);
  } catch (...) {
    abandon(found);
    throw;
  }
}

/// A grant whose lease is over by now is none. It is not asked for again here: that is for the
/// attempt, which knows what else has to be looked at.
/// Until asking_ is cleared, no other thread holds or asks. The engine is called without the mutex:
/// a release runs callbacks of others, and they may come back here.
bool OneHold::finish(Attempted& found) {
  Watchdog::Guard kept;
  bool is_late = false;
  if (is_granted(found.claim)) {
    is_late = !is_live(claims_, found.key, found.claim.epoch);
    if (is_late) {
      detail::give_back(claims_, found.key, found.claim);
    } else if (options_.watchdog != nullptr) {
      kept = options_.watchdog->keep(claims_, found.key, found.claim.epoch, options_.lease);
    }
  }
  const std::lock_guard guard{mutex_};
  asking_ = false;
  if (is_late) return refuse(ErrorCode::timed_out, name_);
  return take(found, std::move(kept));
}

void OneHold::abandon(const Attempted& found) noexcept {
  if (is_granted(found.claim)) detail::give_back(claims_, found.key, found.claim);
  const std::lock_guard guard{mutex_};
  asking_ = false;
}

bool OneHold::take(Attempted& found, Watchdog::Guard&& kept) {
  if (!is_granted(found.claim)) {
    if (found.claim.error != ErrorCode::ok) return refuse(found.claim.error, name_);
    const bool theirs = found.claim.answer == ClaimAnswer::in_flight;
    const bool full = found.claim.answer == ClaimAnswer::unprotected;  // to run so holds nothing
    return refuse(theirs ? ErrorCode::timed_out
                  : full ? ErrorCode::memory_full
                         : ErrorCode::not_owner,
                  name_);
  }
  error_ = {};
  kept_ = std::move(kept);
  held_key_ = std::move(found.key);
  epoch_ = found.claim.epoch;
  kind_ = found.kind;
  token_ = found.token;
  return true;
}

/// Destructors give back while another exception is on its way. Of a heap without room for the call
/// the lease has to end.
bool OneHold::give_back() noexcept {
  Watchdog::Guard kept;
  std::string key;
  Epoch epoch = 0;
  {
    const std::lock_guard guard{mutex_};
    if (epoch_ == 0) return false;
    epoch = std::exchange(epoch_, 0);
    key = std::move(held_key_);
    kept = std::move(kept_);
  }
  try {
    kept = {};  // no renewal after this
    const OwnerOutcome outcome = claims_.release({.key = key, .epoch = epoch});
    return outcome.answer == OwnerAnswer::ok && !outcome.late;
  } catch (...) {
    return false;
  }
}

void OneHold::throw_why() const {
  const Error why = why_not();
  throw std::system_error{static_cast<int>(why.code), error_category(), why.detail};
}

bool OneHold::release() noexcept {
  return give_back();
}

bool OneHold::is_held() const {
  const std::lock_guard guard{mutex_};
  return epoch_ != 0 && is_live(claims_, held_key_, epoch_);
}

Epoch OneHold::token() const noexcept {
  const std::lock_guard guard{mutex_};
  return epoch_ == 0 ? 0 : token_;
}

std::uint32_t OneHold::kind() const noexcept {
  const std::lock_guard guard{mutex_};
  return epoch_ == 0 ? 0 : kind_;
}

bool OneHold::renew() {
  std::string key;
  Epoch epoch = 0;
  {
    const std::lock_guard guard{mutex_};
    if (epoch_ == 0) return false;
    key = held_key_;
    epoch = epoch_;
  }
  return claims_.renew({.key = key, .epoch = epoch, .lease = options_.lease}).answer ==
         OwnerAnswer::ok;
}

Error OneHold::why_not() const {
  const std::lock_guard guard{mutex_};
  return error_;
}

Timestamp OneHold::end_of(Duration wait) const {
  return deadline_after(claims_.engine().now(), wait);
}

}  // namespace semel::detail
