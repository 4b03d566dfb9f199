// Permits of semaphores, and waits for one. What a permit is: patterns/holders/permit_slots.cpp;
// how a reply that is not read gives it back: command_claim_wait.cpp.
#include <memory>
#include <string>
#include <utility>

#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/claims/claim_spaces.hpp"
#include "net/commands/handlers.hpp"
#include "net/session/blocking.hpp"
#include "semel/patterns/semaphore.hpp"

namespace semel::net::handlers {
namespace {

/// State that outlives the command, and possibly the connection.
struct WaitsForPermit {
  std::shared_ptr<ClientHandle> handle;
  std::uint64_t wait;
  Resp dialect;
  Claims claims;
  bool is_named;  ///< by a CLAIM-ID, for which a grant is kept

  void end(const PermitOutcome& found) const {
    std::string bytes;
    RespWriter reply{bytes, dialect};
    write_permit(reply, found);
    if (found.claim.answer != ClaimAnswer::granted || is_named) {
      return handle->reply(wait, std::move(bytes));
    }
    handle->reply(wait, std::move(bytes),
                  [claims = claims, key = found.key, epoch = found.claim.epoch]() mutable {
                    // With any answer: then it is no longer ours.
                    static_cast<void>(claims.release({.key = key, .epoch = epoch}));
                  });
  }
};

void wait_for_permit(Call& call, Claims& claims, const PermitWords& words) {
  const ClaimRequest& request = words.claim.request;
  const WaitsForPermit waiting{call.client.handle, begin_blocking(call.client, call.row, call.args),
                               call.client.dialect, claims, request.claim_id.has_value()};
  const WaitTicket ticket =
      claim_permit_or_wait(claims, request, words.permits, words.deadline(call.engine.now()),
                           [waiting](PermitOutcome&& found) { waiting.end(found); });
  if (ticket == 0) return;
  call.client.handle->if_abandoned(waiting.wait,
                                   [claims, key = permit_key(request.key, 0), ticket]() mutable {
                                     // False: it was just granted. Its reply is not read, so it is
                                     // given back.
                                     static_cast<void>(claims.cancel_wait(key, ticket));
                                   });
}

}  // namespace

void semel_permit(Call& call) {
  PermitWords words;
  if (!accept(call, read_permit_words(call.args, words))) return;
  Claims* const claims = claims_of(call, words.name);
  if (claims == nullptr) return;
  if (!set_owner(call, words.claim)) return;
  const DecisionsOf client{call};
  const PermitOutcome found = claim_permit(*claims, words.claim.request, words.permits);
  if (found.claim.error == ErrorCode::key_too_long) {
    return fail_about(call, found.claim.error, words.claim.request.key);
  }
  // No wait inside a transaction, nor for a reply that is not wanted.
  const bool is_held = found.claim.answer == ClaimAnswer::in_flight;
  if (!is_held || !words.wait || call.context().is_part() || call.client.replies != Replies::on) {
    return write_permit(call.reply, found);
  }
  wait_for_permit(call, *claims, words);
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
