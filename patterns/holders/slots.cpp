#include "patterns/holders/slots.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/mutex.hpp"
#include "semel/patterns/once.hpp"

namespace semel::detail {

bool is_taken(const ClaimView& view) noexcept {
  if (view.state == ClaimState::held) return view.lease_remaining > Millis{0};
  return view.state != ClaimState::absent && view.state != ClaimState::vacant;
}

bool is_in_flight(const ClaimOutcome& outcome) noexcept {
  return outcome.answer == ClaimAnswer::in_flight && outcome.error == ErrorCode::ok;
}

bool decides(const ClaimOutcome& outcome) noexcept {
  return is_granted(outcome) || outcome.error != ErrorCode::ok ||
         outcome.answer == ClaimAnswer::unprotected;
}

ClaimOutcome in_flight_of(const Claims& claims, const ClaimView& view) {
  ClaimOutcome outcome;
  outcome.answer = ClaimAnswer::in_flight;
  outcome.remaining = view.lease_remaining;
  outcome.retry_after = std::min(claims.policy().retry_after_max, view.lease_remaining);
  outcome.attempt = view.attempts;
  outcome.owner = view.owner;
  return outcome;
}

std::string stem_of(Bytes key) {
  std::string stem;
  stem.reserve(key.size() + 12);
  return stem.append("{").append(key).append("}#");
}

void pause_a_moment() {
  base::Mutex mutex;
  base::Condition never;
  base::MutexLock lock{mutex};
  never.wait_for(lock, look_again);
}

const std::string& Slots::key_of(std::uint32_t slot) {
  key_.resize(stem_bytes_);
  return key_ += std::to_string(slot);
}

ClaimOutcome Slots::ask(std::uint32_t slot) {
  request_.key = key_of(slot);
  return claims_.claim(request_);
}

bool Slots::find_own(SlotFound& found, std::uint32_t slots) {
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    if (is_own(found, slot)) return true;
  }
  return false;
}

bool Slots::is_own(SlotFound& found, std::uint32_t slot) {
  const Result<ClaimView> view = claims_.get(key_of(slot));
  if (!view.ok() || view->state != ClaimState::held || !is_taken(*view)) return false;
  ClaimOutcome outcome = ask(slot);
  if (outcome.answer == ClaimAnswer::regranted) {
    found = {.claim = std::move(outcome), .slot = slot, .key = key_};
    return true;
  }
  // Its lease has just ended. The id may have another slot, and this one may be out of its reach.
  if (outcome.answer == ClaimAnswer::granted) give_back(claims_, key_, outcome);
  return false;
}

void Slots::claim_lowest(SlotFound& found) {
  for (std::uint32_t slot = 0; slot < count_; ++slot) {
    ClaimOutcome outcome = ask(slot);
    const bool is_first = slot == 0;
    const bool is_last = decides(outcome);
    const bool ends_sooner = is_in_flight(outcome) && (!is_in_flight(found.claim) ||
                                                       outcome.remaining < found.claim.remaining);
    if (is_first || is_last || ends_sooner) {
      found = {.claim = std::move(outcome), .slot = slot, .key = key_};
    }
    if (is_last) return;
  }
}

}  // namespace semel::detail
