#include "engine/decisions/decision_words.hpp"

#include "semel/claims.hpp"

namespace semel::engine {
namespace {

std::string ms(Millis time) {
  return std::to_string(time.count()) + " ms";
}

/// "its lease had ended 20 ms before", or how else the owner was gone.
std::string how_it_ended(const DecisionFacts& facts) {
  if (facts.met == ClaimState::in_doubt) return "its owner did not know what became of the work";
  const Millis over = facts.at - facts.met_lease_until;
  if (over >= Millis{0}) return "its lease had ended " + ms(over) + " before";
  if (facts.has(DecisionFacts::owner_dead)) return "its owner's session had been closed";
  return "its lease had ended";
}

std::string_view of_claim(const DecisionFacts& facts) noexcept {
  switch (static_cast<ClaimAnswer>(facts.answer)) {
    case ClaimAnswer::granted:
      return facts.has(DecisionFacts::takeover) ? "takeover" : "granted";
    case ClaimAnswer::regranted:
      return "regranted";
    case ClaimAnswer::in_flight:
      return "in_flight";
    case ClaimAnswer::replay:
      return "replay";
    case ClaimAnswer::kept_failure:
      return facts.has(DecisionFacts::poison) ? "poison" : "kept_failure";
    case ClaimAnswer::mismatch:
      return "mismatch";
    case ClaimAnswer::in_doubt:
      return "in_doubt";
    case ClaimAnswer::too_old:
      return "too_old";
    case ClaimAnswer::busy:
      return "busy";
    case ClaimAnswer::unprotected:
      return "unprotected";
    case ClaimAnswer::too_new:
      return "too_new";
    case ClaimAnswer::unknown:
      return "unknown";
    case ClaimAnswer::unanswered:
      break;
  }
  return "busy";
}

std::string_view of_owner(const DecisionFacts& facts) noexcept {
  switch (static_cast<OwnerAnswer>(facts.answer)) {
    case OwnerAnswer::ok:
      return facts.has(DecisionFacts::late) ? "late" : "ok";
    case OwnerAnswer::stale_owner:
      return "stale_owner";
    case OwnerAnswer::conflict:
      return "conflict";
    case OwnerAnswer::not_owner:
      return "not_owner";
    case OwnerAnswer::unknown:
      return "unknown";
    case OwnerAnswer::refused:
    case OwnerAnswer::unanswered:
      break;
  }
  return "refused";
}

std::string why_granted(const DecisionFacts& facts) {
  const std::string until = "; the lease is " + ms(facts.span);
  if (facts.has(DecisionFacts::takeover)) {
    return "another owner held the key, but " + how_it_ended(facts) + until;
  }
  if (facts.met == ClaimState::vacant) {
    return "the key was free: it had been issued, or given back after an attempt" + until;
  }
  return "nothing was known about the key" + until;
}

std::string why_kept_failure(const DecisionFacts& facts) {
  if (!facts.has(DecisionFacts::poison)) return "the work has failed, and that was kept as final";
  const std::string attempts = std::to_string(facts.attempt()) + " attempts";
  if (!facts.changed) return attempts + " had reached the namespace's limit, which is final";
  return "another attempt would go beyond the namespace's limit: " + attempts +
         " were made, and the key is now a final failure";
}

std::string why_claim(const DecisionFacts& facts) {
  switch (static_cast<ClaimAnswer>(facts.answer)) {
    case ClaimAnswer::granted:
      return why_granted(facts);
    case ClaimAnswer::regranted:
      return "the same claim id holds the key: its claim was repeated; " + ms(facts.span) +
             " of the lease are left";
    case ClaimAnswer::in_flight:
      if (facts.span == Millis{0}) return "others wait for the key, and they go first";
      return "another owner holds the key, and " + ms(facts.span) + " of its lease were left";
    case ClaimAnswer::replay:
      if (facts.has(DecisionFacts::dropped)) {
        return "the work is done; its result is not kept, or no longer";
      }
      return "the work is done, and its result is kept";
    case ClaimAnswer::kept_failure:
      return why_kept_failure(facts);
    case ClaimAnswer::mismatch:
      return "the fingerprint differs from the one that the record has: another payload";
    case ClaimAnswer::in_doubt:
      return "another owner held the key, and " + how_it_ended(facts) +
             "; it runs again only after it was resolved";
    case ClaimAnswer::too_old:
      return "nothing is known about the key, and it was first sent before the window began";
    case ClaimAnswer::too_new:
      return "it says that it was first sent later than the namespace allows";
    case ClaimAnswer::unknown:
      return "the namespace's keys are issued, and this one was not, or has ended";
    case ClaimAnswer::unprotected:
      return "there was no room for a record, and the namespace fails open";
    case ClaimAnswer::busy:
    case ClaimAnswer::unanswered:
      break;
  }
  return std::string{sentence_of(facts.error)};
}

std::string_view what_ok_means(const DecisionFacts& facts) noexcept {
  if (!facts.changed) return "it had been answered so before, and is repeated";
  switch (facts.call) {
    case DecisionCall::complete:
      return facts.has(DecisionFacts::dropped) ? "the work is done, without a result"
                                               : "the work is done, and claims get its result";
    case DecisionCall::fail:
      return "the work has failed: the key is given back, final or in doubt as asked for";
    case DecisionCall::renew:
      return "the lease begins again";
    default:
      return "the owner gave the key back";
  }
}

std::string why_owner(const DecisionFacts& facts) {
  if (facts.error != ErrorCode::ok) return std::string{sentence_of(facts.error)};
  switch (static_cast<OwnerAnswer>(facts.answer)) {
    case OwnerAnswer::ok:
      if (!facts.has(DecisionFacts::late)) return std::string{what_ok_means(facts)};
      return std::string{what_ok_means(facts)} + "; " + how_it_ended(facts) +
             ", but nobody had taken over";
    case OwnerAnswer::stale_owner:
      return "the key has gone to another owner since";
    case OwnerAnswer::conflict:
      return "this owner has ended the work otherwise before";
    case OwnerAnswer::not_owner:
      return "the work is done, or it is another owner's";
    case OwnerAnswer::unknown:
      return "there is no claim with this epoch, and none is made of it";
    case OwnerAnswer::refused:
    case OwnerAnswer::unanswered:
      break;
  }
  return how_it_ended(facts) + ", and a lost lease is not revived";
}

std::string why_operator(const DecisionFacts& facts) {
  if (facts.error != ErrorCode::ok) return std::string{sentence_of(facts.error)};
  const bool found = facts.answer != 0;
  switch (facts.call) {
    case DecisionCall::issue:
      return found ? "something is known about the key already" : "the key can be claimed now";
    case DecisionCall::forget:
      return found ? "an operator removed the record: the work may run again"
                   : "there was nothing to forget";
    default:
      break;
  }
  if (!found) return "the key is neither held nor in doubt";
  return facts.has(DecisionFacts::as_done)
             ? "an operator ended the claim: the work is done"
             : "an operator ended the claim as if it had never been granted";
}

std::string why_ended(const DecisionFacts& facts) {
  switch (facts.met) {
    case ClaimState::done:
      return "the time ended for which finished work is remembered: it may run again";
    case ClaimState::failed:
      return "the time ended for which the failure is kept: the work may run again";
    case ClaimState::held:
      return "its owner never ended the claim, and the time is over for which attempts are "
             "remembered";
    default:
      break;
  }
  return "the time ended for which attempts, or an issued key, are remembered";
}

enum class Caller : std::uint8_t { claimer, owner, op, none };

Caller caller_of(DecisionCall call) noexcept {
  switch (call) {
    case DecisionCall::claim:
      return Caller::claimer;
    case DecisionCall::complete:
    case DecisionCall::fail:
    case DecisionCall::renew:
    case DecisionCall::release:
      return Caller::owner;
    case DecisionCall::issue:
    case DecisionCall::forget:
    case DecisionCall::resolve:
      return Caller::op;
    case DecisionCall::ended:
      break;
  }
  return Caller::none;
}

}  // namespace

std::string_view outcome_of(const DecisionFacts& facts) noexcept {
  switch (caller_of(facts.call)) {
    case Caller::claimer:
      return of_claim(facts);
    case Caller::owner:
      return of_owner(facts);
    case Caller::op:
      if (facts.error != ErrorCode::ok) return "refused";
      // An issue is about a key that nothing is known of.
      return (facts.answer != 0) == (facts.call != DecisionCall::issue) ? "ok" : "nothing";
    case Caller::none:
      break;
  }
  return "ended";
}

std::string reason_of(const DecisionFacts& facts) {
  switch (caller_of(facts.call)) {
    case Caller::claimer:
      return why_claim(facts);
    case Caller::owner:
      return why_owner(facts);
    case Caller::op:
      return why_operator(facts);
    case Caller::none:
      break;
  }
  return why_ended(facts);
}

}  // namespace semel::engine
