#include "tests/proofs/once/once_limits.hpp"

namespace semel::proofs {

LimitStory::LimitStory(Random& random, tests::Process& process)
    : random_(random),
      process_(process),
      limits_({Limit{"limit:fixed", {RateKind::fixed_window, 5, Millis{7'000}}},
               Limit{"limit:sliding", {RateKind::sliding_window, 6, Millis{9'000}}},
               Limit{"limit:bucket", {RateKind::token_bucket, 7, Millis{10'007}, 3}}}) {
  for (Limit& each : limits_) each.truth = tests::truth_of(each.terms);
}

std::string LimitStory::play() {
  for (std::uint64_t left = random_.between(8, 30); left > 0; --left) {
    if (!complaint_.empty() || !process_.alive()) break;
    if (random_.chance(1, 3)) {
      process_.clock().advance(Millis{static_cast<std::int64_t>(random_.between(1, 4'000))});
    }
    take(limits_[random_.below(limits_.size())]);
  }
  return complaint_;
}

/// At times exactly when as much is to be had, or a millisecond before.
void LimitStory::take(Limit& limit) {
  const auto now = [&] { return process_.clock().now().time_since_epoch().count(); };
  const RateTerms& terms = limit.terms;
  const std::uint64_t cost = random_.chance(1, 5) ? random_.below(terms.limit + 1) : 1;
  if (random_.chance(1, 3)) {
    const std::int64_t until = tests::ms_until(*limit.truth, now(), cost, false);
    const std::int64_t early = random_.chance(1, 2) ? 1 : 0;
    if (until > early) process_.clock().advance(Millis{until - early});
  }
  RateLimiter limiter{process_.engine(), terms};
  const Result<RateOutcome> taken = limiter.take(limit.key, cost);
  if (!process_.alive()) return;  // what it wrote is not kept
  if (!taken.ok()) {
    if (!process_.is_filled()) complain("a rate limit has an error");
    return;
  }
  const std::uint64_t left = limit.truth->left(now());
  if (taken->allowed && cost > left) complain("more was allowed than the limit");
  if (!taken->allowed && cost <= left) complain("what the limit has was not given");
  if (!taken->allowed &&
      taken->retry_after.count() != tests::ms_until(*limit.truth, now(), cost, false)) {
    complain("the time after which to ask again is wrong");
  }
  if (taken->allowed && cost != 0) {
    limit.truth->take(now(), cost);
    ++allowed_;
  }
  if (taken->remaining != limit.truth->left(now())) complain("what is left is wrong");
}

}  // namespace semel::proofs
