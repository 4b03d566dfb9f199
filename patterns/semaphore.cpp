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
#include <utility>

#include "patterns/slots.hpp"
#include "semel/engine.hpp"
#include "semel/limits.hpp"
#include "semel/patterns/once.hpp"
#include "semel/store.hpp"

namespace semel {
namespace {

/// How long a number of permits is known after it was last asked for.
constexpr Millis width_ttl{86'400'000};

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
        key_(std::string{claims.name()}.append(":").append(detail::stem_of(key))) {}

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

using detail::is_granted;
using detail::is_in_flight;
using detail::is_taken;

/// One attempt, in the steps of claim_permit().
class Attempt {
 public:
  Attempt(Claims& claims, const ClaimRequest& request, std::uint32_t permits)
      : claims_(claims),
        lease_(request.lease.value_or(claims.policy().lease)),
        permits_(permits),
        width_(claims, request.key),
        slots_(claims, request, detail::stem_of(request.key), permits) {}

  [[nodiscard]] Status begin() { return width_.widen(permits_, lease_); }

  /// The permit that the request's claim id has, if `has_id`; else the lowest free one.
  void claim(PermitOutcome& found, bool has_id) {
    detail::SlotFound slot;
    if (!has_id || !slots_.find_own(slot)) slots_.claim_lowest(slot);
    found = {.claim = std::move(slot.claim), .slot = slot.slot, .key = std::move(slot.key)};
  }

  /// Gives the granted permit back if too many are held with it.
  void confirm(PermitOutcome& found) {
    const Result<std::uint32_t> width = width_.get();
    const std::uint32_t slots = width.ok() ? std::max(*width, permits_) : limits::permits_max;
    if (width.ok() && slots == permits_) return;
    PermitOutcome other;
    std::uint32_t held = 0;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      const std::string& key = slots_.key_of(slot);
      const Result<ClaimView> view = claims_.get(key);
      if (view.ok() && !is_taken(*view)) continue;
      ++held;  // one that cannot be read counts
      if (slot != found.slot && view.ok()) note_sooner(other, slot, key, *view);
    }
    if (held <= permits_) return;
    detail::give_back(claims_, found.key, found.claim);
    other.over = true;
    found = std::move(other);
  }

 private:
  void note_sooner(PermitOutcome& other, std::uint32_t slot, const std::string& key,
                   const ClaimView& view) {
    if (is_in_flight(other.claim) && other.claim.remaining <= view.lease_remaining) return;
    other = {.claim = detail::in_flight_of(claims_, view), .slot = slot, .key = key};
  }

  Claims& claims_;
  const Millis lease_;
  const std::uint32_t permits_;
  Width width_;
  detail::Slots slots_;
};

/// Waits in the line of the slot of `found`, or for a moment. True: it is granted; the grant is in
/// `found`.
bool wait_in_line(Claims& claims, ClaimRequest request, Timestamp deadline, PermitOutcome& found) {
  const Timestamp until =
      std::min(deadline, deadline_after(claims.engine().now(), detail::look_again));
  if (found.over) {  // slots are free, so there is no line to stand in
    detail::pause_a_moment();
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
  return detail::stem_of(key) + std::to_string(slot);
}

PermitOutcome claim_permit(Claims& claims, const ClaimRequest& request, std::uint32_t permits) {
  if (request.key.empty()) return refused_permit({ErrorCode::key_empty, {}});
  if (permits == 0 || permits > limits::permits_max) {
    return refused_permit({ErrorCode::bad_option, {}});
  }
  Attempt attempt{claims, request, permits};
  if (const Status wide = attempt.begin(); !wide) return refused_permit(wide.error());
  PermitOutcome found;
  attempt.claim(found, request.claim_id.has_value());
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
    : permits_(options.permits),
      hold_(claims, key,
            {.lease = options.lease,
             .owner = options.owner,
             .session = options.session,
             .watchdog = options.watchdog},
            std::string{"semaphore '"}.append(key).append("'")) {}

bool Semaphore::attempt(Timestamp deadline) {
  return hold_.attempt([&](Claims& claims, const ClaimRequest& request) {
    PermitOutcome found = claim_permit_or_wait(claims, request, permits_, deadline);
    const Epoch token = found.claim.epoch;
    return detail::Attempted{.claim = std::move(found.claim),
                             .key = std::move(found.key),
                             .kind = found.slot,
                             .token = token};
  });
}

bool Semaphore::try_acquire() {
  return attempt(Timestamp::min());
}

bool Semaphore::try_acquire_for(Duration wait) {
  return attempt(hold_.end_of(wait));
}

void Semaphore::acquire() {
  if (!attempt(no_end)) hold_.throw_why();
}

}  // namespace semel
