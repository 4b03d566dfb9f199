// See semel/patterns/lock.hpp. A lock is a claim that is never completed.
#include "semel/patterns/lock.hpp"

#include <utility>

#include "base/assert.hpp"
#include "semel/engine.hpp"

namespace semel {
namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "semel"; }
  [[nodiscard]] std::string message(int code) const override {
    return std::string{sentence_of(static_cast<ErrorCode>(code))};
  }
};

/// The one exception of this library: lock() has no other way to report an error.
[[noreturn]] void throw_error(const Error& error) {
  throw std::system_error{static_cast<int>(error.code), error_category(), error.detail};
}

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

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

bool Lock::refuse(ErrorCode code, std::string why) {
  outcome_ = {};
  outcome_.answer = ClaimAnswer::busy;
  outcome_.error = code;
  error_ = {code, std::move(why)};
  return false;
}

/// Locks once more what this owner holds. If the lease was lost, the lock is given up and the error
/// reported once: the first holder still relies on it, so it must not be locked anew here.
bool Lock::again() {
  SEMEL_ASSERT(holds_ > 0);
  if (!is_held()) {
    kept_ = {};
    holds_ = 0;
    return refuse(ErrorCode::not_owner, "the lock '" + key_ + "' was lost while it was held");
  }
  error_ = {};
  ++holds_;
  return true;
}

/// Checks the options, before any claim is made.
bool Lock::begin() {
  const Millis lease = options_.lease.value_or(claims_.policy().lease);
  if (options_.watchdog == nullptr || options_.watchdog->can_keep(lease)) return true;
  return refuse(ErrorCode::bad_option, "a lease of " + std::to_string(lease.count()) +
                                           " ms is less than twice the watchdog's period");
}

bool Lock::take(ClaimOutcome&& outcome) {
  outcome_ = std::move(outcome);
  if (outcome_.answer != ClaimAnswer::granted) {
    error_ = {outcome_.error, "lock '" + key_ + "'"};
    if (outcome_.error != ErrorCode::ok) return false;
    const bool theirs = outcome_.answer == ClaimAnswer::in_flight;
    const bool full =
        outcome_.answer == ClaimAnswer::unprotected;  // running unprotected is not a lock
    error_.code = theirs ? ErrorCode::timed_out
                  : full ? ErrorCode::memory_full
                         : ErrorCode::not_owner;
    return false;
  }
  error_ = {};
  SEMEL_ASSERT(outcome_.epoch != 0);
  epoch_ = outcome_.epoch;
  holds_ = 1;
  if (options_.watchdog == nullptr) return true;
  try {
    kept_ = options_.watchdog->keep(claims_, key_, epoch_, options_.lease);
  } catch (...) {  // a caller that gets an exception does not hold the lock
    static_cast<void>(unlock());
    throw;
  }
  return true;
}

bool Lock::try_lock() {
  if (holds_ > 0) return again();
  return begin() && take(claims_.claim(request()));
}

bool Lock::try_lock_for(Duration wait) {
  if (holds_ > 0) return again();
  const Timestamp deadline = deadline_after(claims_.engine().now(), wait);
  return begin() && take(claims_.claim_or_wait(request(), deadline));
}

void Lock::lock() {
  const bool held =
      holds_ > 0 ? again() : begin() && take(claims_.claim_or_wait(request(), no_end));
  if (!held) throw_error(error_);
}

bool Lock::unlock() noexcept {
  if (holds_ == 0) return false;
  // Destructors unlock while another exception is on its way. The engine catches what a journal
  // throws; of anything else, and of a heap without room for the call, the lease has to end.
  try {
    SEMEL_ASSERT(epoch_ != 0);
    if (--holds_ > 0) return is_held();
    kept_ = {};  // no renewal after this
    const OwnerOutcome outcome = claims_.release({.key = key_, .epoch = epoch_});
    return outcome.answer == OwnerAnswer::ok && !outcome.late;
  } catch (...) {
    return false;
  }
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
