// Many claims in one call.
#include <vector>

#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/claims/claim_spaces.hpp"
#include "net/commands/handlers.hpp"

namespace semel::net::handlers {
namespace {

/// "ns [options] KEYS n key..": a request for each key. Null: an error has been written.
Claims* read_batch(Call& call, std::vector<ClaimRequest>& requests) {
  ClaimWords words;
  WordSpan rest = call.args.subspan(2);
  if (!accept(call, read_claim_words(rest, true, words)) || !accept(call, read_keys(rest))) {
    return nullptr;
  }
  Claims* const claims = claims_of(call, call.args[1]);
  if (claims == nullptr) return nullptr;
  if (!set_owner(call, words)) return nullptr;
  requests.assign(rest.size(), words.request);
  for (std::size_t i = 0; i < rest.size(); ++i) requests[i].key = rest[i];
  return claims;
}

}  // namespace

void semel_claims(Call& call) {
  std::vector<ClaimRequest> requests;
  Claims* const claims = read_batch(call, requests);
  if (claims == nullptr) return;
  std::vector<ClaimOutcome> outcomes(requests.size());
  const DecisionsOf client{call};
  claims->claim(requests, outcomes);
  call.reply.array(outcomes.size());
  for (const ClaimOutcome& outcome : outcomes) write_claim_of_many(call.reply, outcome);
}

void semel_claimall(Call& call) {
  std::vector<ClaimRequest> requests;
  Claims* const claims = read_batch(call, requests);
  if (claims == nullptr) return;
  std::vector<ClaimOutcome> outcomes(requests.size());
  const DecisionsOf client{call};
  const bool all = claims->claim_all(requests, outcomes);
  constexpr std::size_t pairs = 2;
  call.reply.map(pairs);
  call.reply.bulk("outcome"), call.reply.bulk(all ? "granted" : "not_granted");
  call.reply.bulk("claims"), call.reply.array(outcomes.size());
  for (const ClaimOutcome& outcome : outcomes) {
    const bool free = !all && outcome.answer == ClaimAnswer::granted;
    write_claim_of_many(call.reply, outcome, free);
  }
}

void semel_completes(Call& call) {
  constexpr std::size_t words_per_claim = 3;
  const WordSpan rest = call.args.subspan(3);
  std::int64_t count = 0;
  if (!accept(call, read_number("the number of claims", call.args[2], 1,
                                static_cast<std::int64_t>(limits::batch_max), count))) {
    return;
  }
  if (rest.size() != words_per_claim * static_cast<std::size_t>(count)) {
    return call.fail("ERR " + std::to_string(count) +
                     " times key, epoch and result are announced, " + std::to_string(rest.size()) +
                     " words follow");
  }
  std::vector<OwnerCall> owners(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const WordSpan own = rest.subspan(words_per_claim * i, words_per_claim);
    owners[i].key = own[0];
    if (!accept(call, read_epoch(own[1], owners[i].epoch))) return;
    owners[i].payload = own[2];
  }
  const FoundSpace found = find_space(call, call.args[1]);
  if (found.claims == nullptr && !found.undeclared) return;
  std::vector<OwnerOutcome> outcomes(owners.size(), unknown_claim());
  const DecisionsOf client{call};
  if (found.claims != nullptr) found.claims->complete(owners, outcomes);
  call.reply.array(outcomes.size());
  for (const OwnerOutcome& outcome : outcomes) write_owner_of_many(call.reply, outcome);
}

}  // namespace semel::net::handlers
