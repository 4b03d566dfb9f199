// See semel/steps.hpp. The memos are the fields of one hash beside the claim: its key begins with
// "steps/", which no namespace can, so that it is nobody's claim.
#include "semel/steps.hpp"

#include <array>

#include "semel/hashes.hpp"
#include "semel/store.hpp"

namespace semel {
namespace {

struct Places {
  std::string claim;
  std::string memos;
  std::uint8_t db;
  [[nodiscard]] std::array<KeyRef, 2> refs() const noexcept {
    return {KeyRef{db, claim}, KeyRef{db, memos}};
  }
};

[[nodiscard]] Places places_of(const Claims& claims, Bytes key) {
  std::string claim{claims.name()};
  claim.append(":").append(key);
  return {.claim = claim, .memos = "steps/" + claim, .db = claims.policy().db};
}

}  // namespace

Result<std::optional<std::string>> Steps::recall(Bytes name) {
  used_ = true;
  const Places places = places_of(claims_, key_);
  return claims_.engine().hashes(places.db).hget(places.memos, name);
}

Status Steps::remember(Bytes name, Bytes bytes) {
  used_ = true;
  const Places places = places_of(claims_, key_);
  SEMEL_TRY(section, claims_.engine().section(places.refs()));
  // Both in one step: an owner that was replaced while it ran must not leave memos to the next.
  SEMEL_TRY(view, claims_.get(key_));
  if (view.state != ClaimState::held || view.epoch != epoch_ || view.lease_remaining == Millis{0}) {
    return Error{ErrorCode::not_owner, "step '" + std::string{name} + "'"};
  }
  SEMEL_TRY(fresh, claims_.engine().hashes(places.db).hset(places.memos, name, bytes));
  static_cast<void>(fresh);
  // As long as the claim itself is remembered if its owner goes silent now.
  const Millis kept = view.lease_remaining + claims_.policy().attempts_ttl;
  const Expiry expiry = Expiry::in(std::min(kept, limits::ttl_max));
  SEMEL_TRY(expires, claims_.engine().store(places.db).expire(places.memos, expiry));
  static_cast<void>(expires);
  return section.commit();
}

OwnerOutcome Steps::complete(Bytes result) {
  const OwnerCall call{.key = key_, .epoch = epoch_, .payload = result};
  if (!used_) return claims_.complete(call);
  const Places places = places_of(claims_, key_);
  Result<Section> section = claims_.engine().section(places.refs());
  if (!section) {
    OwnerOutcome refused;
    refused.answer = OwnerAnswer::refused;
    refused.error = section.error().code;
    return refused;
  }
  OwnerOutcome outcome = claims_.complete(call);
  if (outcome.error == ErrorCode::ok && outcome.answer == OwnerAnswer::ok) {
    const Result<bool> gone = claims_.engine().store(places.db).del(places.memos);
    // The memos end by themselves; that the work is done must not depend on them.
    static_cast<void>(gone);
  }
  if (const Status ended = section->commit(); !ended) {
    outcome = {};
    outcome.answer = OwnerAnswer::refused;
    outcome.error = ended.error().code;
  }
  return outcome;
}

}  // namespace semel
