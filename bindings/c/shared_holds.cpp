// Semaphores and read/write locks: claims under keys that are theirs to choose.
#include <optional>
#include <string>

#include "bindings/c/requests.hpp"
#include "semel/patterns/once.hpp"
#include "semel/patterns/read_write_lock.hpp"
#include "semel/patterns/semaphore.hpp"

using namespace semel;

namespace {

/// What both calls begin with: `given` is the request, and `key` has no bytes.
[[nodiscard]] int begin(const semel_claims* claims, const semel_request* request,
                        semel_request& given, semel_buffer* key) {
  if (claims == nullptr || key == nullptr) return c::say_null("claims or key");
  semel_buffer_free(key);  // of an earlier call
  if (const int error = c::read_sized(request, given); error != SEMEL_OK) return error;
  return c::check_claim(given, true);
}

/// Puts the key of a grant. False: nothing is held. Without its key it could not be given
/// back later, so where there is no memory for that it is given back now.
[[nodiscard]] bool put_key(Claims& space, ClaimOutcome& claim, const std::string& from,
                           semel_buffer& key) {
  if (!detail::is_granted(claim)) return false;
  if (c::put(key, from)) return true;
  c::take_back(space, from, claim);
  return false;
}

}  // namespace

int semel_permit(semel_claims* claims, const semel_request* request, unsigned permits,
                 semel_claim_outcome* outcome, unsigned* slot, semel_buffer* key) {
  if (slot != nullptr) *slot = 0;
  semel_request given;
  if (const int error = begin(claims, request, given, key); error != SEMEL_OK) return error;
  c::Answer answer{outcome};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    Claims& space = claims->claims;
    if (permits == 0 || permits > limits::permits_max) {
      return c::say(ErrorCode::bad_option, "permits = " + std::to_string(permits) +
                                               ", allowed 1.." +
                                               std::to_string(limits::permits_max));
    }
    const Timestamp deadline = given.wait_ms == 0
                                   ? Timestamp::min()
                                   : deadline_after(space.engine().now(), Millis{given.wait_ms});
    PermitOutcome found = claim_permit_or_wait(space, c::request_of(given), permits, deadline);
    const bool has_it = put_key(space, found.claim, found.key, *key);
    if (has_it && slot != nullptr) *slot = found.slot;
    c::fill_claim(answer, found.claim);
    return answer.deliver(c::say_outcome(found.claim.error, *claims->engine, given.key_length));
  });
}

int semel_rwlock(semel_claims* claims, const semel_request* request, int access,
                 semel_int64 next_ms, semel_claim_outcome* outcome, semel_uint64* token,
                 semel_buffer* key) {
  if (token != nullptr) *token = 0;
  semel_request given;
  if (const int error = begin(claims, request, given, key); error != SEMEL_OK) return error;
  c::Answer answer{outcome};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    if (access != SEMEL_READ && access != SEMEL_WRITE) {
      return c::say(ErrorCode::bad_option,
                    "access = " + std::to_string(access) + ", allowed SEMEL_READ, SEMEL_WRITE");
    }
    const ClaimRequest asked = c::request_of(given);
    const bool is_possible = next_ms == 0 || (next_ms > 0 && next_ms <= limits::next_max.count() &&
                                              asked.claim_id && given.wait_ms == 0);
    if (!is_possible) {
      return c::say(ErrorCode::bad_option,
                    "next_ms = " + std::to_string(next_ms) +
                        ", allowed 0; with a claim id and without wait_ms 1.." +
                        std::to_string(limits::next_max.count()));
    }
    Claims& space = claims->claims;
    const Access wanted = access == SEMEL_WRITE ? Access::write : Access::read;
    AccessOutcome found =
        given.wait_ms != 0
            ? claim_access_or_wait(space, asked, wanted,
                                   deadline_after(space.engine().now(), Millis{given.wait_ms}))
        : next_ms != 0 ? claim_access(space, asked, wanted, Millis{next_ms})
                       : claim_access(space, asked, wanted);
    const bool has_it = put_key(space, found.claim, found.key, *key);
    if (has_it && token != nullptr) *token = found.token;
    c::fill_claim(answer, found.claim);
    return answer.deliver(c::say_outcome(found.claim.error, *claims->engine, given.key_length));
  });
}
