// See semel/patterns/semaphore.hpp. The permits are in permit_slots.cpp.
#include "semel/patterns/semaphore.hpp"

#include <utility>

namespace semel {

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
