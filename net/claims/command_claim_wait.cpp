// A claim that waits while another owner has the work.
//
// The wait ends on the thread that ends the other owner's claim, in a callback that leaves the
// reply with the client's handle. By then the connection may be closed, or may close before it
// reads the reply: then the claim is released, so that the next waiter gets it at once. A waiting
// connection that closes leaves the queue.
#include <memory>
#include <utility>

#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/claims/claim_spaces.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/session/blocking.hpp"

namespace semel::net::handlers {
namespace {

/// State that outlives the command, and possibly the connection.
struct Waiting {
  std::shared_ptr<ClientHandle> handle;
  std::uint64_t wait;
  Resp dialect;
  Claims claims;
  std::string key;
  bool named;  ///< by a CLAIM-ID

  void end(const ClaimOutcome& outcome) const {
    std::string bytes;
    RespWriter reply{bytes, dialect};
    write_claim(reply, outcome);
    // A claim with an id is kept for a repeated request: releasing it could take it from the very
    // client that has reconnected and was regranted.
    if (outcome.answer != ClaimAnswer::granted || named) {
      return handle->reply(wait, std::move(bytes));
    }
    handle->reply(wait, std::move(bytes),
                  [claims = claims, key = key, epoch = outcome.epoch]() mutable {
                    // With any answer: then it is no longer our claim.
                    static_cast<void>(claims.release({.key = key, .epoch = epoch}));
                  });
  }
};

}  // namespace

void semel_wait(Call& call) {
  WaitWords wait;
  if (!accept(call, read_wait_words(call.args, wait))) return;
  ClaimWords& words = wait.claim;
  Claims* const claims = claims_of(call, wait.name);
  if (claims == nullptr) return;
  if (!set_owner(call, words)) return;
  const DecisionsOf client{call};
  const ClaimOutcome outcome = claim(call, *claims, words.request);
  if (has_missed(call)) return;
  if (outcome.error == ErrorCode::key_too_long) {
    return fail_about(call, outcome.error, words.request.key);
  }
  // No wait inside a transaction, nor for a reply that is not wanted.
  if (outcome.answer != ClaimAnswer::in_flight || call.context().is_part() ||
      call.client.replies != Replies::on) {
    return write_claim(call.reply, outcome);
  }
  const Waiting waiting{call.client.handle,
                        begin_blocking(call.client, call.row, call.args),
                        call.client.dialect,
                        *claims,
                        std::string{words.request.key},
                        words.request.claim_id.has_value()};
  const WaitTicket ticket =
      claims->claim_or_wait(words.request, wait.deadline(call.engine.now()),
                            [waiting](ClaimOutcome&& end) { waiting.end(end); });
  if (ticket == 0) return;
  // Also with a CLAIM-ID: a client that returns waits again, and a grant to its abandoned wait
  // would block the key, and that client, for a lease.
  call.client.handle->if_abandoned(waiting.wait,
                                   [claims = *claims, key = waiting.key, ticket]() mutable {
                                     // False: it was just granted. Its reply is not read, so it is
                                     // released, or kept for its CLAIM-ID.
                                     static_cast<void>(claims.cancel_wait(key, ticket));
                                   });
}

}  // namespace semel::net::handlers
