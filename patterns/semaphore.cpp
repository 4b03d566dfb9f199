// See semel/patterns/semaphore.hpp.
//
//   "{key}#0", "{key}#1", ..   claims, one a slot; the braces are Redis' hash tag, so that all of
//                              them are in one slot of a cluster
//   "ns:{key}#"                a string: the largest number of permits that was asked for within a
//                              day. It is raised before the first slot beyond it is claimed
//
// An attempt claims a slot first and counts afterwards, where there may be holders beyond its own
// number: of two that exceed it together, the later claim sees the earlier one. Both may give way,
// which is on the safe side; never do both stay.
#include "semel/patterns/semaphore.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/mutex.hpp"
#include "semel/engine.hpp"
#include "semel/limits.hpp"
#include "semel/patterns/once.hpp"
#include "semel/store.hpp"

namespace semel {
namespace {

/// How long a number of permits is known after it was last asked for.
constexpr Millis width_ttl{86'400'000};
/// A waiter stands in the line of one slot, and looks for others that often.
constexpr Millis look_again{20};

/// "{key}#", and room for a number.
std::string stem_of(Bytes key) {
  std::string stem;
  stem.reserve(key.size() + 8);
  return stem.append("{").append(key).append("}#");
}

/// Writes `slot` behind a stem of `stem_bytes`.
void set_slot(std::string& key, std::size_t stem_bytes, std::uint32_t slot) {
  key.resize(stem_bytes);
  key += std::to_string(slot);
}

PermitOutcome refused_permit(const Error& error) {
  PermitOutcome found;
  found.claim.answer = ClaimAnswer::busy;
  found.claim.error = error.code;
  return found;
}

/// The record of how many slots there may be.
class Width {
 public:
  Width(Claims& claims, Bytes key)
      : store_(claims.engine().store(claims.policy().db)),
        key_(std::string{claims.name()}.append(":").append(stem_of(key))) {}

  /// 0: unknown.
  [[nodiscard]] Result<std::uint32_t> get() {
    SEMEL_TRY(text, store_.get(key_));
    return text ? number_of(*text) : 0;
  }
  /// Makes it `permits` at least, for as long as a lease of this length and a day.
  [[nodiscard]] Status widen(std::uint32_t permits, Millis lease) {
    const Millis ttl = std::min(limits::ttl_max, width_ttl + std::min(lease, limits::ttl_max / 2));
    for (;;) {
      SEMEL_TRY(seen, store_.get_versioned(key_));
      const std::uint32_t width = seen ? number_of(seen->value) : 0;
      if (width > permits) return Done{};
      if (width == permits) {
        SEMEL_TRY(left, store_.ttl(key_));
        if (left.found && left.remaining >= ttl / 2) return Done{};
      }
      SEMEL_TRY(set, store_.compare_and_set(key_, seen ? seen->version : 0, std::to_string(permits),
                                            Expiry::in(ttl)));
      if (set.stored) return Done{};  // else another has raised or renewed it
    }
  }

 private:
  /// What we have not written counts as the largest.
  [[nodiscard]] static std::uint32_t number_of(std::string_view text) noexcept {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_ours = error == std::errc{} && end == text.data() + text.size();
    return is_ours ? std::clamp(number, 1U, limits::permits_max) : limits::permits_max;
  }

  Store store_;
  const std::string key_;
};

/// Of a slot that its holder may still have.
bool is_taken(const ClaimView& view) noexcept {
  if (view.state == ClaimState::held) return view.lease_remaining > Millis{0};
  return view.state != ClaimState::absent && view.state != ClaimState::vacant;
}

/// Held by another.
bool is_in_flight(const ClaimOutcome& outcome) noexcept {
  return outcome.answer == ClaimAnswer::in_flight && outcome.error == ErrorCode::ok;
}

bool is_granted(const ClaimOutcome& outcome) noexcept {
  return outcome.answer == ClaimAnswer::granted || outcome.answer == ClaimAnswer::regranted;
}

/// One attempt, in the steps of claim_permit().
class Attempt {
 public:
  Attempt(Claims& claims, const ClaimRequest& request, std::uint32_t permits)
      : claims_(claims),
        request_(request),
        permits_(permits),
        width_(claims, request.key),
        key_(stem_of(request.key)),
        stem_bytes_(key_.size()) {}

  [[nodiscard]] Status begin() {
    return width_.widen(permits_, request_.lease.value_or(claims_.policy().lease));
  }

  /// The permit that the request's claim id has. Only held slots are asked for, so a free
  /// one is not granted here, unless its lease has just ended.
  [[nodiscard]] bool find_own(PermitOutcome& found) {
    for (std::uint32_t slot = 0; slot < permits_; ++slot) {
      set_slot(key_, stem_bytes_, slot);
      const Result<ClaimView> view = claims_.get(key_);
      if (!view.ok() || view->state != ClaimState::held) continue;
      ClaimOutcome outcome = ask(slot);
      if (!is_granted(outcome)) continue;
      found = {.claim = std::move(outcome), .slot = slot, .key = key_};
      return true;
    }
    return false;
  }

  /// The lowest free slot; else the one that will be free first.
  void claim_lowest(PermitOutcome& found) {
    for (std::uint32_t slot = 0; slot < permits_; ++slot) {
      ClaimOutcome outcome = ask(slot);
      const bool is_first = slot == 0;
      const bool waits = is_in_flight(outcome);
      const bool decides = !waits && (is_granted(outcome) || outcome.error != ErrorCode::ok ||
                                      outcome.answer == ClaimAnswer::unprotected);
      const bool ends_sooner =
          waits && (!is_in_flight(found.claim) || outcome.remaining < found.claim.remaining);
      if (is_first || decides || ends_sooner) {
        found = {.claim = std::move(outcome), .slot = slot, .key = key_};
      }
      if (decides) return;
    }
  }

  /// Gives the granted permit back if too many are held with it.
  void confirm(PermitOutcome& found) {
    const Result<std::uint32_t> width = width_.get();
    const std::uint32_t slots = width.ok() ? std::max(*width, permits_) : limits::permits_max;
    if (width.ok() && slots == permits_) return;
    PermitOutcome other;
    std::uint32_t held = 0;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      set_slot(key_, stem_bytes_, slot);
      const Result<ClaimView> view = claims_.get(key_);
      if (view.ok() && !is_taken(*view)) continue;
      ++held;  // one that cannot be read counts
      if (slot != found.slot && view.ok()) note_sooner(other, slot, *view);
    }
    if (held <= permits_) return;
    detail::give_back(claims_, found.key, found.claim);
    other.over = true;
    found = std::move(other);
  }

 private:
  [[nodiscard]] ClaimOutcome ask(std::uint32_t slot) {
    set_slot(key_, stem_bytes_, slot);
    request_.key = key_;
    return claims_.claim(request_);
  }
  void note_sooner(PermitOutcome& other, std::uint32_t slot, const ClaimView& view) {
    if (is_in_flight(other.claim) && other.claim.remaining <= view.lease_remaining) return;
    other.claim.answer = ClaimAnswer::in_flight;
    other.claim.remaining = view.lease_remaining;
    other.claim.retry_after = std::min(claims_.policy().retry_after_max, view.lease_remaining);
    other.claim.attempt = view.attempts;
    other.claim.owner = view.owner;
    other.slot = slot;
    other.key = key_;
  }

  Claims& claims_;
  ClaimRequest request_;
  const std::uint32_t permits_;
  Width width_;
  std::string key_;
  const std::size_t stem_bytes_;
};

/// Waits for the slot of `found`, or for a moment. True: it is granted; the grant is in `found`.
bool wait_in_line(Claims& claims, ClaimRequest request, Timestamp deadline, PermitOutcome& found) {
  const Timestamp until = std::min(deadline, deadline_after(claims.engine().now(), look_again));
  if (found.over) {  // slots are free, so there is no line to stand in
    base::Mutex mutex;
    base::Condition never;
    base::MutexLock lock{mutex};
    never.wait_for(lock, look_again);
    return false;
  }
  request.key = found.key;
  ClaimOutcome outcome = claims.claim_or_wait(request, until);
  if (outcome.error == ErrorCode::timed_out) return false;
  found.claim = std::move(outcome);
  return is_granted(found.claim);
}

}  // namespace

std::string permit_key(Bytes key, std::uint32_t slot) {
  return stem_of(key) + std::to_string(slot);
}

PermitOutcome claim_permit(Claims& claims, const ClaimRequest& request, std::uint32_t permits) {
  if (request.key.empty()) return refused_permit({ErrorCode::key_empty, {}});
  if (permits == 0 || permits > limits::permits_max) {
    return refused_permit({ErrorCode::bad_option, {}});
  }
  Attempt attempt{claims, request, permits};
  if (const Status wide = attempt.begin(); !wide) return refused_permit(wide.error());
  PermitOutcome found;
  if (!request.claim_id || !attempt.find_own(found)) attempt.claim_lowest(found);
  if (is_granted(found.claim)) attempt.confirm(found);
  return found;
}

PermitOutcome claim_permit_or_wait(Claims& claims, const ClaimRequest& request,
                                   std::uint32_t permits, Timestamp deadline) {
  for (;;) {
    PermitOutcome found = claim_permit(claims, request, permits);
    if (!is_in_flight(found.claim) || claims.engine().now() >= deadline) return found;
    if (wait_in_line(claims, request, deadline, found)) {
      Attempt{claims, request, permits}.confirm(found);
    }
    if (!is_in_flight(found.claim)) return found;
  }
}

Result<std::vector<PermitView>> permits_held(Claims& claims, Bytes key) {
  if (key.empty()) return Error{ErrorCode::key_empty, {}};
  SEMEL_TRY(width, Width(claims, key).get());
  std::vector<PermitView> held;
  for (std::uint32_t slot = 0; slot < width; ++slot) {
    SEMEL_TRY(view, claims.get(permit_key(key, slot)));
    if (is_taken(view)) held.push_back({.slot = slot, .claim = std::move(view)});
  }
  return held;
}

Semaphore::Semaphore(const Claims& claims, Bytes key, const SemaphoreOptions& options)
    : claims_(claims), key_(key), owner_(options.owner), options_(options) {}

Semaphore::~Semaphore() = default;  // the hold gives itself back

ClaimRequest Semaphore::request() const noexcept {
  return {.key = key_, .lease = options_.lease, .owner = owner_, .session = options_.session};
}

bool Semaphore::refuse(ErrorCode code, std::string why) {
  error_ = {code, std::move(why)};
  return false;
}

/// The hold is a Lock of the slot: it gives a grant back whose lease is over.
bool Semaphore::take(PermitOutcome&& found) {
  const std::string& key = found.key.empty() ? key_ : found.key;
  auto hold = std::make_unique<Lock>(claims_, key,
                                     LockOptions{.lease = options_.lease,
                                                 .owner = owner_,
                                                 .session = options_.session,
                                                 .watchdog = options_.watchdog,
                                                 .moves = true});
  if (!hold->take(std::move(found.claim))) {
    error_ = hold->why_not();
    if (error_.code == ErrorCode::timed_out) error_.detail = "semaphore '" + key_ + "'";
    return false;
  }
  error_ = {};
  hold_ = std::move(hold);
  slot_ = found.slot;
  return true;
}

bool Semaphore::attempt(Timestamp deadline) {
  {
    const std::lock_guard guard{mutex_};
    if (hold_ != nullptr || asking_) {
      return refuse(ErrorCode::object_in_use, "semaphore '" + key_ + "'");
    }
    if (Status possible = Watchdog::check(options_.watchdog, claims_, options_.lease); !possible) {
      return refuse(possible.error().code, possible.error().detail);
    }
    asking_ = true;
  }
  PermitOutcome found;
  try {
    found = claim_permit_or_wait(claims_, request(), options_.permits, deadline);
    const std::lock_guard guard{mutex_};
    asking_ = false;
    return take(std::move(found));
  } catch (...) {
    if (is_granted(found.claim)) detail::give_back(claims_, found.key, found.claim);
    const std::lock_guard guard{mutex_};
    asking_ = false;
    throw;
  }
}

bool Semaphore::try_acquire() {
  return attempt(Timestamp::min());
}

bool Semaphore::try_acquire_for(Duration wait) {
  return attempt(deadline_after(claims_.engine().now(), wait));
}

void Semaphore::acquire() {
  if (attempt(no_end)) return;
  const Error why = why_not();
  throw std::system_error{static_cast<int>(why.code), error_category(), why.detail};
}

bool Semaphore::release() noexcept {
  const std::lock_guard guard{mutex_};
  if (hold_ == nullptr) return false;
  const bool was_held = hold_->unlock();
  hold_.reset();
  return was_held;
}

bool Semaphore::is_held() const {
  const std::lock_guard guard{mutex_};
  return hold_ != nullptr && hold_->is_held();
}

Epoch Semaphore::fencing_token() const noexcept {
  const std::lock_guard guard{mutex_};
  return hold_ == nullptr ? 0 : hold_->fencing_token();
}

std::uint32_t Semaphore::slot() const noexcept {
  const std::lock_guard guard{mutex_};
  return hold_ == nullptr ? 0 : slot_;
}

bool Semaphore::renew() {
  const std::lock_guard guard{mutex_};
  return hold_ != nullptr && hold_->renew();
}

Error Semaphore::why_not() const {
  const std::lock_guard guard{mutex_};
  return error_;
}

}  // namespace semel
