// See semel/lock.hpp. A lock is a claim that is never completed.
#include "semel/lock.hpp"

#include <utility>

#include "semel/engine.hpp"

namespace semel {

Lock::Lock(const Claims& claims, Bytes key, const LockOptions& options)
    : claims_(claims), key_(key), owner_(options.owner), options_(options) {}

Lock::~Lock() {
  if (holds_ == 0) return;
  holds_ = 1;
  static_cast<void>(unlock());  // if it was lost, it is not ours to give back
}

ClaimRequest Lock::request() const noexcept {
  return {.key = key_, .lease = options_.lease, .owner = owner_, .session = options_.session};
}

/// Held already: once more, if it still is.
bool Lock::again() {
  if (!is_held()) {
    kept_ = {};
    holds_ = 0;
    return false;
  }
  ++holds_;
  return true;
}

bool Lock::take(ClaimOutcome&& outcome) {
  outcome_ = std::move(outcome);
  if (outcome_.answer != ClaimAnswer::granted) return false;
  epoch_ = outcome_.epoch;
  holds_ = 1;
  if (options_.watchdog != nullptr) {
    kept_ = options_.watchdog->keep(claims_, key_, epoch_, options_.lease);
  }
  return true;
}

bool Lock::try_lock() {
  if (holds_ > 0 && again()) return true;
  return take(claims_.claim(request()));
}

bool Lock::try_lock_for(Millis wait) {
  if (holds_ > 0 && again()) return true;
  return take(claims_.claim_or_wait(request(), claims_.engine().now() + wait));
}

void Lock::lock() {
  if (holds_ > 0 && again()) return;
  static_cast<void>(take(claims_.claim_or_wait(request(), no_end)));
}

bool Lock::unlock() {
  if (holds_ == 0) return false;
  if (--holds_ > 0) return is_held();
  kept_ = {};  // no renewal after this
  const OwnerOutcome outcome = claims_.release({.key = key_, .epoch = epoch_});
  return outcome.answer == OwnerAnswer::ok && !outcome.late;
}

bool Lock::is_held() const {
  if (holds_ == 0) return false;
  const Result<ClaimView> view = claims_.get(key_);
  return view && view->state == ClaimState::held && view->epoch == epoch_ &&
         view->lease_remaining > Millis{0};
}

bool Lock::renew() {
  if (holds_ == 0) return false;
  return claims_.renew({.key = key_, .epoch = epoch_, .lease = options_.lease}).answer ==
         OwnerAnswer::ok;
}

}  // namespace semel
