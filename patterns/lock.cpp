// See semel/patterns/lock.hpp. A lock is a claim that is never completed.
#include "semel/patterns/lock.hpp"

#include <utility>

#include "base/assert.hpp"
#include "semel/engine.hpp"
#include "semel/patterns/once.hpp"

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
  kept_ = {};                          // no renewal after this
  static_cast<void>(release(epoch_));  // if it was lost, it is not ours to give back
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

bool Lock::is_mine() const noexcept {
  return holds_ > 0 && (options_.moves || holder_ == std::this_thread::get_id());
}

bool Lock::is_live(Epoch epoch) const {
  Claims claims = claims_;
  return detail::is_live(claims, key_, epoch);
}

/// A thread locks once more what it holds. If the lease was lost, the lock is given up and the
/// error reported once: the first holder still relies on it, so it must not be locked anew here.
Lock::Begun Lock::begin() {
  const std::lock_guard guard{mutex_};
  const bool is_other = (holds_ > 0 || asking_) && holder_ != std::this_thread::get_id();
  if (is_other || asking_) {
    static_cast<void>(refuse(ErrorCode::object_in_use, "lock '" + key_ + "'"));
    return Begun::refused;
  }
  if (holds_ > 0) {
    if (!is_live(epoch_)) {
      kept_ = {};
      holds_ = 0;
      static_cast<void>(
          refuse(ErrorCode::not_owner, "the lock '" + key_ + "' was lost while it was held"));
      return Begun::refused;
    }
    error_ = {};
    ++holds_;
    return Begun::held;
  }
  if (Status possible = Watchdog::check(options_.watchdog, claims_, options_.lease); !possible) {
    static_cast<void>(refuse(possible.error().code, possible.error().detail));
    return Begun::refused;
  }
  asking_ = true;
  holder_ = std::this_thread::get_id();
  return Begun::asks;
}

bool Lock::take_locked(ClaimOutcome&& outcome) {
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
  if (options_.watchdog != nullptr) {
    kept_ = options_.watchdog->keep(claims_, key_, outcome_.epoch, options_.lease);
  }
  epoch_ = outcome_.epoch;
  holds_ = 1;
  holder_ = std::this_thread::get_id();
  return true;
}

/// Until asking_ is cleared, no other thread holds or asks. The engine claims and releases without
/// the mutex: a release runs callbacks of others, and they may come back here.
template <class Ask>
bool Lock::finish(Ask&& ask) {
  Epoch granted = 0;
  try {
    ClaimOutcome outcome = ask();
    if (outcome.answer == ClaimAnswer::granted) granted = outcome.epoch;
    const std::lock_guard guard{mutex_};
    asking_ = false;
    return take_locked(std::move(outcome));
  } catch (...) {  // a caller that gets an exception does not hold the lock
    if (granted != 0) static_cast<void>(release(granted));
    const std::lock_guard guard{mutex_};
    asking_ = false;
    throw;
  }
}

bool Lock::take(ClaimOutcome&& outcome) {
  bool is_free = false;
  {
    const std::lock_guard guard{mutex_};
    is_free = holds_ == 0 && !asking_;
    if (is_free) {
      asking_ = true;
      holder_ = std::this_thread::get_id();
    }
  }
  if (!is_free) {  // another thread uses this object now
    if (outcome.answer == ClaimAnswer::granted) static_cast<void>(release(outcome.epoch));
    const std::lock_guard guard{mutex_};
    return refuse(ErrorCode::object_in_use, "lock '" + key_ + "'");
  }
  return finish([&] {
    // A grant that arrived unnoticed and whose lease is over is not a lock.
    if (outcome.answer != ClaimAnswer::granted || is_live(outcome.epoch)) return std::move(outcome);
    detail::give_back(claims_, key_, outcome);
    return claims_.claim(request());
  });
}

template <class Ask>
bool Lock::attempt(Ask&& ask) {
  const Begun begun = begin();
  return begun == Begun::asks ? finish(ask) : begun == Begun::held;
}

bool Lock::try_lock() {
  return attempt([&] { return claims_.claim(request()); });
}

bool Lock::try_lock_for(Duration wait) {
  return attempt([&] {
    return detail::ask_until(claims_, request(), deadline_after(claims_.engine().now(), wait));
  });
}

void Lock::lock() {
  const auto ask = [&] { return detail::ask_until(claims_, request(), no_end); };
  if (!attempt(ask)) throw_error(why_not());
}

/// Destructors unlock while another exception is on its way. The engine catches what a journal
/// throws; of anything else, and of a heap without room for the call, the lease has to end.
bool Lock::release(Epoch epoch) noexcept {
  SEMEL_ASSERT(epoch != 0);
  try {
    const OwnerOutcome outcome = claims_.release({.key = key_, .epoch = epoch});
    return outcome.answer == OwnerAnswer::ok && !outcome.late;
  } catch (...) {
    return false;
  }
}

bool Lock::unlock() noexcept {
  Watchdog::Guard kept;
  Epoch epoch = 0;
  bool is_last = false;
  {
    const std::lock_guard guard{mutex_};
    if (!is_mine()) return false;
    epoch = epoch_;
    is_last = --holds_ == 0;
    if (is_last) kept = std::move(kept_);
  }
  if (is_last) {
    kept = {};  // no renewal after this
    return release(epoch);
  }
  try {
    return is_live(epoch);
  } catch (...) {  // no memory to ask
    return false;
  }
}

Epoch Lock::fencing_token() const noexcept {
  const std::lock_guard guard{mutex_};
  return is_mine() ? epoch_ : 0;
}

bool Lock::is_held() const {
  const Epoch epoch = fencing_token();
  return epoch != 0 && is_live(epoch);
}

bool Lock::renew() {
  const Epoch epoch = fencing_token();
  if (epoch == 0) return false;
  return claims_.renew({.key = key_, .epoch = epoch, .lease = options_.lease}).answer ==
         OwnerAnswer::ok;
}

Error Lock::why_not() const {
  const std::lock_guard guard{mutex_};
  return error_;
}
ClaimOutcome Lock::why() const {
  const std::lock_guard guard{mutex_};
  return outcome_;
}

}  // namespace semel
