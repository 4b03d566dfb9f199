// The calls of an owner: complete, fail, renew, release.
#include <vector>

#include "bindings/c/requests.hpp"
#include "semel/patterns/steps.hpp"

using namespace semel;

static_assert(SEMEL_UNANSWERED == static_cast<int>(OwnerAnswer::unanswered));
static_assert(SEMEL_OWNER_OK == static_cast<int>(OwnerAnswer::ok));
static_assert(SEMEL_OWNER_STALE == static_cast<int>(OwnerAnswer::stale_owner));
static_assert(SEMEL_OWNER_CONFLICT == static_cast<int>(OwnerAnswer::conflict));
static_assert(SEMEL_OWNER_NOT_OWNER == static_cast<int>(OwnerAnswer::not_owner));
static_assert(SEMEL_OWNER_UNKNOWN == static_cast<int>(OwnerAnswer::unknown));
static_assert(SEMEL_OWNER_REFUSED == static_cast<int>(OwnerAnswer::refused));

namespace semel::c {

void fill_owner(Answer<semel_owner_outcome>& to, const OwnerOutcome& from) noexcept {
  to->answer = static_cast<int>(from.answer);
  to->error = number_of(from.error);
  to->late = from.late ? 1 : 0;
  to->version = from.version;
  if (from.has_result) to.set(to->result, from.result);
}

}  // namespace semel::c

namespace {

using OwnerVerb = OwnerOutcome (*)(Claims&, const OwnerCall&);

/// Reads and checks; SEMEL_OK: `made` is the call, and points to the caller's bytes.
[[nodiscard]] int read(const semel_owner_call* call, semel_owner_call& given,
                       OwnerCall& made) noexcept {
  if (const int error = c::read_sized(call, given); error != SEMEL_OK) return error;
  if (!c::is_sound(given.key, given.key_length)) return c::say_null("key");
  if (!c::is_sound(given.payload, given.payload_length)) return c::say_null("payload");
  if (const int error = c::check_given(given.given, SEMEL_GIVEN_LEASE)) return error;
  if (given.on_failure < 0 || given.on_failure > 3) {
    return c::guarded([&] {
      return c::say(ErrorCode::bad_option,
                    "on_failure = " + std::to_string(given.on_failure) + ", allowed 0..3");
    });
  }
  made = {.key = c::bounded_key(given.key, given.key_length),
          .epoch = given.epoch,
          .payload = c::bytes_of(given.payload, given.payload_length),
          .lease = c::lease_of(given)};
  if (given.on_failure == 1) made.on_failure = Policy::OnFailure::release;
  if (given.on_failure == 2) made.on_failure = Policy::OnFailure::keep;
  if (given.on_failure == 3) made.on_failure = Policy::OnFailure::in_doubt;
  return SEMEL_OK;
}

[[nodiscard]] int call_owner(semel_claims* claims, const semel_owner_call* call,
                             semel_owner_outcome* outcome, OwnerVerb verb) {
  if (claims == nullptr || call == nullptr) return c::say_null("claims or call");
  semel_owner_call given;
  OwnerCall made;
  if (const int error = read(call, given, made); error != SEMEL_OK) return error;
  c::Answer answer{outcome};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    const OwnerOutcome result = verb(claims->claims, made);
    c::fill_owner(answer, result);
    return answer.deliver(
        c::say_outcome(result.error, *claims->engine, given.key_length, given.payload_length));
  });
}

}  // namespace

int semel_complete(semel_claims* claims, const semel_owner_call* call,
                   semel_owner_outcome* outcome) {
  return call_owner(claims, call, outcome,
                    [](Claims& space, const OwnerCall& made) { return space.complete(made); });
}

int semel_steps_complete(semel_claims* claims, const semel_owner_call* call,
                         semel_owner_outcome* outcome) {
  if (claims != nullptr) {
    if (const int error = c::check_process(*claims->engine)) return error;
  }
  return call_owner(claims, call, outcome, [](Claims& space, const OwnerCall& made) {
    Steps steps{space, made.key, made.epoch};
    return steps.complete(made.payload, made.keeping);
  });
}

int semel_fail(semel_claims* claims, const semel_owner_call* call, semel_owner_outcome* outcome) {
  return call_owner(claims, call, outcome,
                    [](Claims& space, const OwnerCall& made) { return space.fail(made); });
}

int semel_renew(semel_claims* claims, const semel_owner_call* call, semel_owner_outcome* outcome) {
  return call_owner(claims, call, outcome,
                    [](Claims& space, const OwnerCall& made) { return space.renew(made); });
}

int semel_release(semel_claims* claims, const semel_owner_call* call,
                  semel_owner_outcome* outcome) {
  return call_owner(claims, call, outcome,
                    [](Claims& space, const OwnerCall& made) { return space.release(made); });
}

int semel_complete_batch(semel_claims* claims, const semel_owner_call* calls,
                         semel_owner_outcome* outcomes, size_t count) {
  if (claims == nullptr) return c::say_null("claims");
  if (count == 0) return SEMEL_OK;
  if (calls == nullptr || outcomes == nullptr) return c::say_null("calls or outcomes");
  return c::guarded([&] {
    const std::size_t size = outcomes->size;
    if (const int error = c::check_batch<semel_owner_outcome>(count, calls->size, size)) {
      return error;
    }
    semel_owner_call given;
    std::vector<OwnerCall> made(count);
    for (std::size_t i = 0; i < count; ++i) {
      const semel_owner_call* const one = c::item(calls, calls->size, i);
      if (one->size != calls->size) return c::say_size(one->size, calls->size);
      if (const int error = read(one, given, made[i]); error != SEMEL_OK) return error;
      if (c::item(outcomes, size, i)->size != size) return c::say_size(0, size);
    }
    std::vector<OwnerOutcome> result(count);
    Claims& space = claims->claims;
    space.complete(made, result);
    int error = SEMEL_OK;
    for (std::size_t i = 0; i < count; ++i) {
      c::Answer answer{c::item(outcomes, size, i)};
      c::fill_owner(answer, result[i]);
      if (const int undelivered = answer.deliver(SEMEL_OK); undelivered != SEMEL_OK)
        error = undelivered;
    }
    return error;
  });
}
