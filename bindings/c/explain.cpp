// Why a key was answered so.
#include <vector>

#include "bindings/c/sized.hpp"

using namespace semel;

static_assert(SEMEL_DECIDED_CLAIM == static_cast<int>(DecisionCall::claim));
static_assert(SEMEL_DECIDED_COMPLETE == static_cast<int>(DecisionCall::complete));
static_assert(SEMEL_DECIDED_FAIL == static_cast<int>(DecisionCall::fail));
static_assert(SEMEL_DECIDED_RENEW == static_cast<int>(DecisionCall::renew));
static_assert(SEMEL_DECIDED_RELEASE == static_cast<int>(DecisionCall::release));
static_assert(SEMEL_DECIDED_ISSUE == static_cast<int>(DecisionCall::issue));
static_assert(SEMEL_DECIDED_FORGET == static_cast<int>(DecisionCall::forget));
static_assert(SEMEL_DECIDED_RESOLVE == static_cast<int>(DecisionCall::resolve));
static_assert(SEMEL_DECIDED_ENDED == static_cast<int>(DecisionCall::ended));

namespace {

void fill_decision(c::Answer<semel_decision>& to, const ClaimDecision& from) noexcept {
  to.set(to->outcome, from.outcome);
  if (!from.owner.empty()) to.set(to->owner, from.owner);
  if (!from.seen_owner.empty()) to.set(to->seen_owner, from.seen_owner);
  to.set(to->why, from.why);
  to->first_unix_ms = from.first_unix_ms;
  to->last_unix_ms = from.last_unix_ms;
  to->times = from.times;
  to->epoch = from.epoch;
  to->seen_epoch = from.seen_epoch;
  to->attempt = from.attempt;
  to->call = static_cast<int>(from.call);
  to->seen = static_cast<int>(from.seen);
}

}  // namespace

int semel_explain(semel_claims* claims, const void* key, size_t key_length,
                  semel_decision* decisions, size_t count, size_t* found) {
  if (claims == nullptr || decisions == nullptr || found == nullptr) {
    return c::say_null("claims, decisions or found");
  }
  *found = 0;
  if (const int error = c::check_process(*claims->engine)) return error;
  if (const int error = c::check_key(*claims->engine, key, key_length)) return error;
  return c::guarded([&] {
    if (const int error = c::check_items(decisions, count, limits::decisions_per_key_max)) {
      return error;
    }
    const auto known = claims->claims.explain(c::bytes_of(key, key_length), count);
    if (!known.ok()) return c::say(known.error());
    SEMEL_ASSERT(known->size() <= count);
    *found = known->size();
    return c::fill_items(decisions, *known, fill_decision);
  });
}
