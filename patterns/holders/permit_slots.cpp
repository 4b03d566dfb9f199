// See permit_slots.hpp.
#include "patterns/holders/permit_slots.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "semel/engine.hpp"
#include "semel/limits.hpp"
#include "semel/patterns/once.hpp"

namespace semel {
namespace detail {
namespace {

/// How long a number of permits is known after it was last asked for, and a lease, at least.
constexpr Millis width_ttl{86'400'000};
/// So often at most is it written for that.
constexpr Millis width_pause = width_ttl / 2;

PermitOutcome refused_permit(ErrorCode why) {
  PermitOutcome found;
  found.claim.answer = ClaimAnswer::busy;
  found.claim.error = why;
  return found;
}

/// What we have not written counts as the largest.
std::uint32_t number_of(std::string_view text) noexcept {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_ours = error == std::errc{} && end == text.data() + text.size();
  return is_ours ? std::clamp(number, 1U, limits::permits_max) : limits::permits_max;
}

}  // namespace

PermitWidth::PermitWidth(Claims& claims, Bytes key)
    : store_(claims.engine().store(claims.policy().db)),
      key_(std::string{claims.name()}.append(":").append(stem_of(key))) {}

Result<std::uint32_t> PermitWidth::get() {
  SEMEL_TRY(text, store_.get(key_));
  return text ? number_of(*text) : 0;
}

Status PermitWidth::widen(std::uint32_t permits, Millis lease, const IsAnyHeld& is_any_held) {
  const Millis least = width_ttl + std::min(lease, limits::ttl_max / 2);
  const Millis ttl = least + width_pause;
  for (;;) {
    SEMEL_TRY(seen, store_.get_versioned(key_));
    const std::uint32_t width = seen ? number_of(seen->value) : 0;
    if (width >= permits) {
      SEMEL_TRY(left, store_.ttl(key_));
      if (left.found && left.remaining >= least) return Done{};
      if (width > permits && !is_any_held(permits, width)) return Done{};
    }
    SEMEL_TRY(set, store_.compare_and_set(key_, seen ? seen->version : 0,
                                          width > permits ? seen->value : std::to_string(permits),
                                          Expiry::in(ttl)));
    if (set.stored) return Done{};  // else another has raised or renewed it
  }
}

PermitTry::PermitTry(Claims& claims, const ClaimRequest& request, std::uint32_t permits)
    : claims_(claims),
      lease_(request.lease.value_or(claims.policy().lease)),
      permits_(permits),
      width_(claims, request.key),
      slots_(claims, request, stem_of(request.key), permits) {}

Status PermitTry::begin() {
  return width_.widen(permits_, lease_, [this](std::uint32_t slot, std::uint32_t end) {
    while (slot < end && !is_held(slot)) ++slot;
    return slot < end;
  });
}

bool PermitTry::find_own(PermitOutcome& found) {
  SlotFound slot;
  if (!slots_.find_own(slot, slots())) return false;
  found = {.claim = std::move(slot.claim), .slot = slot.slot, .key = std::move(slot.key)};
  return true;
}

bool PermitTry::is_own(PermitOutcome& found, std::uint32_t number) {
  SlotFound slot;
  if (!slots_.is_own(slot, number)) return false;
  found = {.claim = std::move(slot.claim), .slot = slot.slot, .key = std::move(slot.key)};
  return true;
}

bool PermitTry::is_held(std::uint32_t slot) {
  const Result<ClaimView> view = claims_.get(slots_.key_of(slot));
  return !view.ok() || is_taken(*view);
}

void PermitTry::claim_lowest(PermitOutcome& found) {
  SlotFound slot;
  slots_.claim_lowest(slot);
  found = {.claim = std::move(slot.claim), .slot = slot.slot, .key = std::move(slot.key)};
}

std::uint32_t PermitTry::slots() {
  const Result<std::uint32_t> width = width_.get();
  return width.ok() ? std::max(*width, permits_) : limits::permits_max;
}

PermitTry::Held PermitTry::count_held(std::uint32_t slots, std::uint32_t but,
                                      std::uint32_t enough) {
  Held held;
  held.lowest_free = permits_;
  for (std::uint32_t slot = 0; slot < slots && held.count < enough; ++slot) {
    const std::string& key = slots_.key_of(slot);
    const Result<ClaimView> view = claims_.get(key);
    if (view.ok() && !is_taken(*view)) {
      held.lowest_free = std::min(held.lowest_free, slot);
      continue;
    }
    ++held.count;  // one that cannot be read counts
    if (slot != but && view.ok()) note_sooner(held.first, slot, key, *view);
  }
  return held;
}

void PermitTry::confirm(PermitOutcome& found) {
  if (found.claim.answer == ClaimAnswer::regranted) return;
  Held held;
  try {
    const std::uint32_t most = slots();
    if (most == permits_) return;  // as many as there can be
    held = count_held(most, found.slot);
  } catch (...) {
    give_back(claims_, found.key, found.claim);
    throw;
  }
  if (held.count <= permits_) return;
  give_back(claims_, found.key, found.claim);
  held.first.over = true;
  found = std::move(held.first);
}

void PermitTry::note_sooner(PermitOutcome& other, std::uint32_t slot, const std::string& key,
                            const ClaimView& view) const {
  if (is_in_flight(other.claim) && other.claim.remaining <= view.lease_remaining) return;
  other.claim = in_flight_of(claims_, view);
  other.slot = slot;
  other.key = key;
}

ErrorCode check_permit(const ClaimRequest& request, std::uint32_t permits) noexcept {
  if (request.key.empty()) return ErrorCode::key_empty;
  const bool is_possible = permits != 0 && permits <= limits::permits_max;
  return is_possible ? ErrorCode::ok : ErrorCode::bad_option;
}

}  // namespace detail

using detail::PermitTry;

std::string permit_key(Bytes key, std::uint32_t slot) {
  return detail::stem_of(key) + std::to_string(slot);
}

PermitOutcome claim_permit(Claims& claims, const ClaimRequest& request, std::uint32_t permits) {
  if (const ErrorCode bad = detail::check_permit(request, permits); bad != ErrorCode::ok) {
    return detail::refused_permit(bad);
  }
  PermitTry attempt{claims, request, permits};
  if (const Status wide = attempt.begin(); !wide) {
    return detail::refused_permit(wide.error().code);
  }
  PermitOutcome found;
  if (!request.claim_id || !attempt.find_own(found)) attempt.claim_lowest(found);
  if (detail::is_granted(found.claim)) attempt.confirm(found);
  return found;
}

Result<std::vector<PermitView>> permits_held(Claims& claims, Bytes key) {
  if (key.empty()) return Error{ErrorCode::key_empty, {}};
  SEMEL_TRY(width, detail::PermitWidth(claims, key).get());
  std::vector<PermitView> held;
  for (std::uint32_t slot = 0; slot < width; ++slot) {
    SEMEL_TRY(view, claims.get(permit_key(key, slot)));
    if (detail::is_taken(view)) held.push_back({.slot = slot, .claim = std::move(view)});
  }
  return held;
}

}  // namespace semel
