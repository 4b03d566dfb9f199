// Chapters 2 to 4: owners that die or sleep, and what other callers are answered. Time is a manual
// clock, so that a lease of half a minute is over at once and the story is the same on every
// machine.
#include <fmt/format.h>

#include <string>

#include "semel/claims.hpp"
#include "tools/semel/demo/demo.hpp"

namespace semel::tool {
namespace {

constexpr Millis lease{30'000};
constexpr Millis day{86'400'000};
constexpr Bytes order = "order-1042";
constexpr Bytes report = "report-77";

ClaimRequest request_of(Bytes key, Bytes owner) {
  ClaimRequest request;
  request.key = key;
  request.owner = owner;
  return request;
}

OwnerCall call_of(Bytes key, Epoch epoch, Bytes payload = {}) {
  OwnerCall call;
  call.key = key;
  call.epoch = epoch;
  call.payload = payload;
  return call;
}

/// Digest of the work's payload; the demo's payloads are numbers.
Fingerprint fingerprint_of(std::uint8_t amount) {
  Fingerprint fingerprint;
  fingerprint.algorithm = 1;
  fingerprint.digest[0] = amount;
  return fingerprint;
}

bool is_takeover(const ClaimOutcome& claim, Epoch epoch_before) {
  return claim.answer == ClaimAnswer::granted && claim.takeover && claim.attempt == 2 &&
         claim.epoch > epoch_before;
}

struct TwoEpochs {
  Epoch stale = 0;
  Epoch current = 0;
};

TwoEpochs show_dead_owner(Story& story, Engine& engine, Claims& work, ManualClock& clock) {
  story.chapter("An owner dies");
  const ClaimOutcome by_a = work.claim(request_of(order, "worker-a"));
  story.expect(by_a.answer == ClaimAnswer::granted && by_a.attempt == 1,
               fmt::format("worker-a claims {}: attempt {}, epoch {}, lease {} s", order,
                           by_a.attempt, by_a.epoch, lease.count() / 1000));
  const ClaimOutcome too_early = work.claim(request_of(order, "worker-b"));
  story.expect(too_early.answer == ClaimAnswer::in_flight && too_early.owner == "worker-a" &&
                   too_early.remaining == lease,
               fmt::format("worker-b asks: in flight with {}, {} s of the lease left, ask again in "
                           "{} ms",
                           too_early.owner, too_early.remaining.count() / 1000,
                           too_early.retry_after.count()));
  clock.advance(lease);
  story.print_line(fmt::format("worker-a is silent for {} s", lease.count() / 1000));
  const ClaimOutcome by_b = work.claim(request_of(order, "worker-b"));
  story.expect(is_takeover(by_b, by_a.epoch),
               fmt::format("worker-b asks again: takes over, attempt {}, epoch {} after {}",
                           by_b.attempt, by_b.epoch, by_a.epoch));

  const SessionId session = engine.open_session();
  ClaimRequest bound = request_of(report, "worker-c");
  bound.session = session;
  const ClaimOutcome by_c = work.claim(bound);
  story.expect(by_c.answer == ClaimAnswer::granted,
               fmt::format("worker-c claims {} for the life of its session", report));
  engine.close_session(session);
  const ClaimOutcome by_d = work.claim(request_of(report, "worker-d"));
  story.expect(
      is_takeover(by_d, by_c.epoch),
      fmt::format("the session ends, and worker-d takes over with 0 ms of waiting: attempt "
                  "{}, epoch {} after {}",
                  by_d.attempt, by_d.epoch, by_c.epoch));
  return {by_a.epoch, by_b.epoch};
}

void show_stale_owner(Story& story, Claims& work, const TwoEpochs& epochs) {
  story.chapter("A stale owner is refused");
  const OwnerOutcome late = work.complete(call_of(order, epochs.stale, "shipped by worker-a"));
  story.expect(late.answer == OwnerAnswer::stale_owner && !late.has_result,
               fmt::format("worker-a wakes up and completes with epoch {}: refused, stale owner",
                           epochs.stale));
  const Result<ClaimView> view = work.get(order);
  story.expect(view && view->state == ClaimState::held && view->epoch == epochs.current &&
                   view->owner == "worker-b" && view->attempts == 2 && view->result.empty(),
               fmt::format("the record is untouched: held by {}, epoch {}, attempt {}",
                           view ? view->owner : "nobody", view ? view->epoch : 0,
                           view ? view->attempts : 0));
  const OwnerOutcome done = work.complete(call_of(order, epochs.current, "shipped by worker-b"));
  story.expect(done.answer == OwnerAnswer::ok && !done.late,
               fmt::format("worker-b completes with epoch {}: accepted", epochs.current));
  const OwnerOutcome again = work.complete(call_of(order, epochs.current, "shipped by worker-b"));
  story.expect(again.answer == OwnerAnswer::ok,
               "worker-b never saw the answer and completes again: accepted, nothing changes");
  const OwnerOutcome beaten = work.complete(call_of(order, epochs.stale, "shipped by worker-a"));
  story.expect(beaten.answer == OwnerAnswer::stale_owner && beaten.has_result &&
                   beaten.result == "shipped by worker-b",
               fmt::format("worker-a tries again: refused, with the result '{}'", beaten.result));
}

void show_replay(Story& story, Claims& work, ManualClock& clock) {
  story.chapter("A result is replayed");
  const ClaimOutcome duplicate = work.claim(request_of(order, "worker-e"));
  story.expect(
      duplicate.answer == ClaimAnswer::replay && duplicate.result == "shipped by worker-b",
      fmt::format("a duplicate of {} gets the stored result: '{}'", order, duplicate.result));

  ClaimRequest transfer = request_of("transfer-5", "worker-f");
  transfer.fingerprint = fingerprint_of(100);
  transfer.claim_id = ClaimId{5};
  const ClaimOutcome first = work.claim(transfer);
  const ClaimOutcome repeated = work.claim(transfer);
  story.expect(first.answer == ClaimAnswer::granted && repeated.answer == ClaimAnswer::regranted &&
                   repeated.epoch == first.epoch,
               fmt::format("the answer to a claim is lost; the same claim id asks again and is "
                           "granted the same epoch {}",
                           repeated.epoch));
  const OwnerOutcome done = work.complete(call_of("transfer-5", first.epoch, "100 moved"));
  ClaimRequest other = request_of("transfer-5", "worker-g");
  other.fingerprint = fingerprint_of(200);
  const ClaimOutcome mismatch = work.claim(other);
  story.expect(done.answer == OwnerAnswer::ok && mismatch.answer == ClaimAnswer::mismatch &&
                   mismatch.result.empty(),
               "the same key with another payload: mismatch, and nothing is replayed");

  clock.advance(day);
  const ClaimOutcome next_day = work.claim(request_of(order, "worker-e"));
  story.expect(
      next_day.answer == ClaimAnswer::replay && next_day.result_expired && next_day.result.empty(),
      "a day later the result's bytes are gone, and the work is still not done twice");
}

}  // namespace

void show_owners(Story& story, Engine& engine, ManualClock& clock) {
  Policy policy;
  policy.lease = lease;
  policy.result_ttl = day;
  policy.unique_ttl = day * 7;
  Result<Claims> work = engine.claims("work", policy);
  if (!work) return story.expect(false, work.error().message());
  const TwoEpochs epochs = show_dead_owner(story, engine, *work, clock);
  show_stale_owner(story, *work, epochs);
  show_replay(story, *work, clock);
}

}  // namespace semel::tool
