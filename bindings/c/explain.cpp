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

void fill(c::Answer<semel_decision>& to, const ClaimDecision& from) noexcept {
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
    const std::size_t size = decisions->size;
    if (const int error = c::check_size(size, c::Answer<semel_decision>::least)) return error;
    if (count > limits::decisions_per_key_max) {  // no item beyond is looked at
      return c::say(ErrorCode::bad_option, "count = " + std::to_string(count) + ", allowed 1.." +
                                               std::to_string(limits::decisions_per_key_max));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t other = c::item(decisions, size, i)->size;
      if (other != size) return c::say_size(other, size);
    }
    const auto known = claims->claims.explain(c::bytes_of(key, key_length), count);
    if (!known.ok()) return c::say(known.error());
    SEMEL_ASSERT(known->size() <= count);
    int error = SEMEL_OK;
    for (std::size_t i = 0; i < known->size(); ++i) {
      c::Answer answer{c::item(decisions, size, i)};
      fill(answer, (*known)[i]);
      if (const int undelivered = answer.deliver(SEMEL_OK)) error = undelivered;
    }
    *found = known->size();
    return error;
  });
}
