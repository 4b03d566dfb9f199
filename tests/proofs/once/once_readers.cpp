#include "tests/proofs/once/once_readers.hpp"

#include <algorithm>
#include <cstring>

namespace semel::proofs {

std::string ReaderStory::play() {
  for (std::uint64_t left = random_.between(8, 30); left > 0; --left) {
    if (!complaint_.empty() || !process_.alive()) break;
    step(callers_[random_.below(callers_.size())]);
  }
  for (Caller& caller : callers_) {
    give(caller);
    caller.holds = false;
    // A place that is not given up is there until its time.
    if (is_next(caller)) leftover_ = std::max(leftover_, caller.next_until);
    caller.next_until = Timestamp::min();
    caller.id = {};
  }
  return complaint_;
}

void ReaderStory::step(Caller& caller) {
  switch (random_.below(8)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return take(caller);
    case 4:
    case 5:
      return give(caller);
    case 6:
      return renew(caller);
    default:
      process_.clock().advance(Millis{static_cast<std::int64_t>(random_.between(1, 9'000))});
  }
}

void ReaderStory::take(Caller& caller) {
  const bool repeats = has(caller) || (is_next(caller) && random_.chance(2, 3));
  if (!repeats) {
    if (is_next(caller)) leftover_ = std::max(leftover_, caller.next_until);
    caller.next_until = Timestamp::min();
    caller.holds = false;
    caller.token = 0;
    caller.access = random_.chance(1, 3) ? Access::write : Access::read;
    ++ids_;
    std::memcpy(caller.id.data(), &ids_, sizeof(ids_));
  }
  const bool wants_next = random_.chance(1, 2);
  Claims claims = process_.claims("rw", policies::lock);
  const ClaimRequest request{.key = "shelf", .claim_id = caller.id};
  const AccessOutcome found =
      claim_access(claims, request, caller.access,
                   wants_next ? std::optional<Duration>{next_for} : std::nullopt);
  if (!counts()) return;
  const bool is_in =
      found.claim.answer == ClaimAnswer::granted || found.claim.answer == ClaimAnswer::regranted;
  is_in ? judge_grant(caller, found) : judge_refusal(caller, found, wants_next);
}

void ReaderStory::judge_grant(Caller& caller, const AccessOutcome& found) {
  const bool was_in = has(caller);
  for (const Caller& each : callers_) {
    if (&each == &caller) continue;
    if (excludes(each, caller.access) || (caller.access == Access::write && has(each))) {
      complain("a writer is in with another");
    }
    if (!was_in && is_next(each)) complain("who was next was overtaken");
    if (has(each) && each.key == found.key) complain("two have one claim");
  }
  if (was_in != (found.claim.answer == ClaimAnswer::regranted)) complain("let in, but not again");
  if (was_in && (found.key != caller.key || found.claim.epoch != caller.epoch)) {
    complain("a repeat has got another claim");
  }
  const bool fits =
      caller.access == Access::write ? fence_.admit(found.token) : fence_.admit_reader(found.token);
  if (!fits) complain("the fence refuses who is in");
  for (const Caller& each : callers_) {
    // One that was in before, and is not any more; readers do not mind each other.
    if (&each == &caller || has(each) || each.token == 0) continue;
    Fence after = fence_;
    const bool is_reader = each.access == Access::read;
    if (is_reader && caller.access == Access::read) continue;
    if (is_reader ? after.admit_reader(each.token) : after.admit(each.token)) {
      complain("the fence admits who was in before");
    }
  }
  caller.holds = true;
  caller.key = found.key;
  caller.epoch = found.claim.epoch;
  caller.token = found.token;
  if (!was_in) caller.until = now() + lease;
  if (process_.is_filled()) leftover_ = std::max(leftover_, caller.next_until);
  caller.next_until = Timestamp::min();
  ++taken_;
}

void ReaderStory::judge_refusal(Caller& caller, const AccessOutcome& found, bool wants_next) {
  if (process_.is_filled()) {  // what it had claimed may be held, if it could not be given back
    leftover_ = std::max(leftover_, now() + lease);
    caller.next_until = Timestamp::min();
    return;
  }
  bool may_wait = now() < leftover_;
  bool others_next = false;
  for (const Caller& each : callers_) {
    if (&each == &caller) continue;
    may_wait = may_wait || excludes(each, caller.access) || is_next(each);
    others_next = others_next || is_next(each);
  }
  if (has(caller)) complain("a repeat was refused");
  if (!may_wait) complain("nobody was in, and it was refused");
  if (found.claim.answer != ClaimAnswer::in_flight) complain("refused with another answer");
  if (found.token != 0) complain("a token without a grant");
  const bool becomes_next = wants_next && !others_next && now() >= leftover_;
  if (!wants_next || becomes_next) caller.next_until = Timestamp::min();
  if (becomes_next) caller.next_until = now() + next_for;
  if (wants_next && !becomes_next) leftover_ = std::max(leftover_, now() + next_for);
}

void ReaderStory::give(Caller& caller) {
  if (!caller.holds) return;
  Claims claims = process_.claims("rw", policies::lock);
  const bool was_in = has(caller);
  const OwnerOutcome given = claims.release({.key = caller.key, .epoch = caller.epoch});
  if (!counts()) return;
  const bool is_given = given.answer == OwnerAnswer::ok && !given.late;
  if (was_in && !is_given) {
    if (!process_.is_filled()) complain("what was held could not be given back");
    leftover_ = std::max(leftover_, caller.until);
  }
  if (!was_in && is_given) complain("what was lost was given back");
  caller.holds = false;
}

void ReaderStory::renew(Caller& caller) {
  if (!caller.holds) return;
  Claims claims = process_.claims("rw", policies::lock);
  const bool was_in = has(caller);
  const OwnerOutcome kept = claims.renew({.key = caller.key, .epoch = caller.epoch});
  if (!counts()) return;
  const bool is_kept = kept.answer == OwnerAnswer::ok;
  if (is_kept && !was_in) complain("what was lost was renewed");
  if (!is_kept && was_in && !process_.is_filled()) complain("what was held could not be renewed");
  if (is_kept) caller.until = now() + lease;
}

}  // namespace semel::proofs
