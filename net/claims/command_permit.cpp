// Permits of semaphores. What a permit is: patterns/semaphore.cpp.
#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/claims/claim_spaces.hpp"
#include "net/commands/handlers.hpp"
#include "semel/patterns/semaphore.hpp"

namespace semel::net::handlers {

void semel_permit(Call& call) {
  std::int64_t permits = 0;
  if (!accept(call,
              read_number("the number of permits", call.args[3], 1, limits::permits_max, permits)))
    return;
  ClaimWords words;
  WordSpan rest = call.args.subspan(4);
  if (!accept(call, read_claim_words(rest, false, words))) return;
  Claims* const claims = claims_of(call, call.args[1]);
  if (claims == nullptr) return;
  words.request.key = call.args[2];
  if (!set_owner(call, words)) return;
  const DecisionsOf client{call};
  const PermitOutcome found =
      claim_permit(*claims, words.request, static_cast<std::uint32_t>(permits));
  if (found.claim.error == ErrorCode::key_too_long) {
    return fail_about(call, found.claim.error, words.request.key);
  }
  write_permit(call.reply, found);
}

void semel_permits(Call& call) {
  const FoundSpace found = find_space(call, call.args[1]);
  if (found.undeclared) return call.reply.array(0);
  if (found.claims == nullptr) return;
  const Result<std::vector<PermitView>> held = permits_held(*found.claims, call.args[2]);
  if (!held) return fail_about(call, held.error().code, call.args[2]);
  call.reply.array(held->size());
  for (const PermitView& each : *held) {
    write_held_permit(call.reply, each, permit_key(call.args[2], each.slot));
  }
}

}  // namespace semel::net::handlers
