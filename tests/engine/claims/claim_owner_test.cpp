// The claim's truth table, cell by cell: owner calls, operator calls, trimming, views.
// Words: as in claim_rules_test.cpp.
#include <string>
#include "tests/support/catch.hpp"

#include "tests/engine/claim_bench.hpp"

using namespace semel;
using namespace semel::engine;
using namespace std::chrono_literals;
using Bench = ClaimBench;

// --- complete ------------------------------------------------------------------------------------

TEST_CASE("complete on a held claim of the same epoch: done, and both clocks start",
          "[engine][owner]") {
  Bench b;
  b.policy.unique_ttl = 1000ms;  // shorter than result_ttl: as long as the result
  const Epoch epoch = b.claim({.fingerprint = print(1, 1), .claim_id = id_of(1)}).epoch;
  b.now += 10ms;
  const OwnerOutcome done = b.complete(epoch, "42");
  CHECK(done.answer == OwnerAnswer::ok);
  CHECK_FALSE(done.late);
  CHECK(b.record().state == ClaimState::done);
  CHECK(b.record().result == "42");
  CHECK(b.record().epoch == epoch);
  CHECK(b.record().session == 0);
  CHECK(b.record().result_until == b.now + 5000ms);
  CHECK(b.record().unique_until == b.now + 5000ms);
  CHECK(b.due == b.now + 5000ms);
  CHECK(b.wake() == b.due);
}

TEST_CASE("complete on a lease that is over: done, late", "[engine][owner]") {
  Bench b;
  const Epoch epoch = b.claim().epoch;
  b.now += 999ms;
  Bench in_time = b;
  CHECK_FALSE(in_time.complete(epoch).late);
  b.now += 1ms;
  const OwnerOutcome late = b.complete(epoch);
  CHECK(late.answer == OwnerAnswer::ok);
  CHECK(late.late);
  CHECK(b.record().state == ClaimState::done);
}

TEST_CASE("complete on a lease that is over, strict: refused", "[engine][owner]") {
  Bench b;
  b.policy.strict = true;
  const Epoch epoch = b.overdue();
  CHECK(b.complete(epoch).answer == OwnerAnswer::refused);
  CHECK_FALSE(b.changed());
  b.now -= 1ms;
  CHECK(b.complete(epoch).answer == OwnerAnswer::ok);
}

TEST_CASE("complete by an owner whose session is closed is late", "[engine][owner]") {
  Bench b;
  const Epoch epoch = b.claim().epoch;
  b.owner_dead = true;
  CHECK(b.renew(epoch).answer == OwnerAnswer::refused);
  CHECK(b.complete(epoch).late);
}

TEST_CASE("complete on a newer epoch: stale_owner, record untouched", "[engine][owner]") {
  Bench b;
  const Epoch stale = b.overdue();
  const Epoch newer = b.claim().epoch;
  OwnerOutcome outcome = b.complete(stale, "stale");
  CHECK(outcome.answer == OwnerAnswer::stale_owner);
  CHECK_FALSE(outcome.has_result);
  CHECK_FALSE(b.changed());
  REQUIRE(b.complete(newer, "newer").answer == OwnerAnswer::ok);
  outcome = b.complete(stale, "stale");
  CHECK(outcome.answer == OwnerAnswer::stale_owner);
  CHECK(outcome.has_result);
  CHECK(outcome.result == "newer");
  CHECK(b.record().result == "newer");
}

TEST_CASE("complete on a done claim of the same epoch: same result ok, another conflict",
          "[engine][owner]") {
  Bench b;
  b.policy.unique_ttl = 9000ms;
  const Epoch epoch = b.claim().epoch;
  b.complete(epoch, "42");
  const Timestamp due = b.due;
  b.now += 1ms;
  CHECK(b.complete(epoch, "42").answer == OwnerAnswer::ok);
  CHECK(b.complete(epoch, "43").answer == OwnerAnswer::conflict);
  CHECK(b.complete(epoch, "").answer == OwnerAnswer::conflict);
  CHECK_FALSE(b.changed());
  CHECK(b.due == due);
  SECTION("also when only the digest is left") {
    b.now += 5000ms;
    b.trim_now();
    CHECK(b.record().result.empty());
    CHECK(b.complete(epoch, "42").answer == OwnerAnswer::ok);
    CHECK(b.complete(epoch, "43").answer == OwnerAnswer::conflict);
  }
}

TEST_CASE("complete on a kept failure of the same epoch is a conflict", "[engine][owner]") {
  Bench b;
  const Epoch epoch = b.claim().epoch;
  b.fail(epoch, Policy::OnFailure::keep);
  CHECK(b.complete(epoch).answer == OwnerAnswer::conflict);
}

TEST_CASE("owner calls with an epoch newer than the record are unknown", "[engine][owner]") {
  Bench b;
  const Epoch epoch = b.claim().epoch;
  CHECK(b.complete(epoch + 1).answer == OwnerAnswer::unknown);
  CHECK(b.fail(epoch + 1).answer == OwnerAnswer::unknown);
  CHECK(b.renew(epoch + 1).answer == OwnerAnswer::unknown);
  CHECK(b.release(epoch + 1).answer == OwnerAnswer::not_owner);
  CHECK_FALSE(b.changed());
}

// --- fail ----------------------------------------------------------------------------------------

TEST_CASE("fail on a held claim of the same epoch: failed or given back, as policy or call say",
          "[engine][owner]") {
  Bench b;
  Epoch epoch = b.claim().epoch;
  CHECK(b.fail(epoch).answer == OwnerAnswer::ok);  // the default: release
  CHECK_FALSE(b.present);
  b.policy.on_failure = Policy::OnFailure::keep;
  epoch = b.claim().epoch;
  CHECK(b.fail(epoch, {}, "boom").answer == OwnerAnswer::ok);
  CHECK(b.record().state == ClaimState::failed);
  CHECK(b.record().result == "boom");
  CHECK(b.due == b.now + 3000ms);
  b.forget();
  epoch = b.claim().epoch;
  CHECK(b.fail(epoch, Policy::OnFailure::release).answer == OwnerAnswer::ok);
  CHECK_FALSE(b.present);
}

TEST_CASE("fail on a lease that is over: failed or given back, late", "[engine][owner]") {
  Bench b;
  const Epoch epoch = b.overdue();
  const OwnerOutcome outcome = b.fail(epoch, Policy::OnFailure::keep);
  CHECK(outcome.answer == OwnerAnswer::ok);
  CHECK(outcome.late);
  CHECK(b.record().state == ClaimState::failed);
  Bench given_back;
  CHECK(given_back.fail(given_back.overdue(), Policy::OnFailure::release).late);
  CHECK_FALSE(given_back.present);
}

TEST_CASE("fail twice with the same failure is ok, with another a conflict", "[engine][owner]") {
  Bench b;
  const Epoch epoch = b.claim().epoch;
  b.fail(epoch, Policy::OnFailure::keep, "boom");
  CHECK(b.fail(epoch, Policy::OnFailure::keep, "boom").answer == OwnerAnswer::ok);
  CHECK(b.fail(epoch, Policy::OnFailure::keep, "bang").answer == OwnerAnswer::conflict);
  CHECK_FALSE(b.changed());
}

TEST_CASE("fail on a poison failure of the same epoch is a conflict", "[engine][owner]") {
  Bench b;
  b.policy.attempts_max = 1;
  const Epoch epoch = b.overdue();
  REQUIRE(b.claim().poison);
  CHECK(b.fail(epoch, Policy::OnFailure::keep, "").answer == OwnerAnswer::conflict);
  CHECK(b.complete(epoch).answer == OwnerAnswer::conflict);
}

TEST_CASE("fail that releases remembers the attempts when there is a limit", "[engine][owner]") {
  Bench b;
  b.policy.attempts_max = 2;
  const Epoch first = b.claim({.fingerprint = print(1, 1)}).epoch;
  REQUIRE(b.fail(first).answer == OwnerAnswer::ok);
  CHECK(b.record().state == ClaimState::vacant);
  CHECK(b.due == b.now + 2000ms);
  // It answers as absent everywhere.
  CHECK(b.view().state == ClaimState::absent);
  CHECK(b.view().attempts == 0);
  CHECK(b.complete(first).answer == OwnerAnswer::unknown);
  CHECK(b.fail(first).answer == OwnerAnswer::unknown);
  CHECK(b.renew(first).answer == OwnerAnswer::unknown);
  CHECK(b.release(first).answer == OwnerAnswer::unknown);
  CHECK_FALSE(b.resolve(Resolution::released).found);

  b.now += 1999ms;
  const ClaimOutcome second = b.claim({.fingerprint = print(1, 2)});  // not compared
  CHECK(second.answer == ClaimAnswer::granted);
  CHECK_FALSE(second.takeover);
  CHECK(second.attempt == 2);
  b.fail(second.epoch);
  CHECK(b.claim().poison);
}

TEST_CASE("fail's attempts are forgotten when attempts_ttl ends", "[engine][owner]") {
  Bench b;
  b.policy.attempts_max = 2;
  b.fail(b.claim().epoch);
  b.now += 2000ms;
  CHECK(b.claim().attempt == 1);
}

TEST_CASE("claim on a vacant record may be too_old, as on an absent key", "[engine][owner]") {
  Bench b;
  b.policy.attempts_max = 2;
  b.policy.window = 10ms;
  b.fail(b.claim().epoch);
  CHECK(b.claim({.first_sent_unix_ms = 1}).answer == ClaimAnswer::too_old);
}

// --- renew and release ---------------------------------------------------------------------------

TEST_CASE(
    "renew on a held claim of the same epoch: the lease moves by the policy's or the given time",
    "[engine][owner]") {
  Bench b;
  const Epoch epoch = b.claim({.claim_id = id_of(1), .owner = "o"}).epoch;
  b.now += 999ms;
  CHECK(b.renew(epoch).answer == OwnerAnswer::ok);
  CHECK(b.record().lease_until == b.now + 1000ms);
  CHECK(b.due == b.now + 3000ms);
  CHECK(b.record().epoch == epoch);
  CHECK(b.record().owner == "o");
  CHECK(b.claim({.claim_id = id_of(1)}).answer == ClaimAnswer::regranted);
  CHECK(b.renew(epoch, 30ms).answer == OwnerAnswer::ok);
  CHECK(b.record().lease_until == b.now + 30ms);
  b.policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  CHECK(b.renew(epoch).answer == OwnerAnswer::ok);
  CHECK(b.due == no_end);
}

TEST_CASE("renew on a lease that is over: refused, and not revived", "[engine][owner]") {
  Bench b;
  const Epoch epoch = b.overdue();
  CHECK(b.renew(epoch).answer == OwnerAnswer::refused);
  CHECK_FALSE(b.changed());
}

// --- operators, trimming, views ------------------------------------------------------------------

TEST_CASE("forget removes a claim in any state and says whether there was one",
          "[engine][operator]") {
  Bench b;
  CHECK_FALSE(b.forget().found);
  b.claim();
  CHECK(b.forget().found);
  CHECK_FALSE(b.present);
  b.complete(b.claim().epoch);
  CHECK(b.forget().found);
  b.fail(b.claim().epoch, Policy::OnFailure::keep);
  CHECK(b.forget().found);
  b.policy.attempts_max = 3;
  b.fail(b.claim().epoch);
  CHECK_FALSE(b.forget().found);
  CHECK(b.claim().attempt == 1);
}

TEST_CASE("resolve ends a held claim and nothing else", "[engine][operator]") {
  Bench b;
  CHECK_FALSE(b.resolve(Resolution::done).found);
  const Epoch epoch = b.claim().epoch;
  CHECK(b.resolve(Resolution::done, "by hand").found);
  CHECK(b.complete(epoch, "by hand").answer == OwnerAnswer::ok);
  CHECK(b.complete(epoch, "other").answer == OwnerAnswer::conflict);
  CHECK_FALSE(b.resolve(Resolution::released).found);
  CHECK(b.record().state == ClaimState::done);
}

TEST_CASE("trim turns a done record into its digest from result_until on", "[engine][trim]") {
  Bench b;
  b.policy.unique_ttl = 9000ms;
  b.complete(b.claim({.fingerprint = print(1, 1), .owner = "o"}).epoch, std::string(3000, 'x'));
  const Timestamp due = b.due;
  b.now += 4999ms;
  b.trim_now();
  CHECK_FALSE(b.changed());
  b.now += 1ms;
  b.trim_now();
  REQUIRE(b.changed());
  CHECK(b.due == due);
  CHECK(b.wake() == b.due);
  const ClaimRecord left = b.record();
  CHECK(left.state == ClaimState::done);
  CHECK(left.result_expired);
  CHECK(left.result.empty());
  CHECK(left.result_digest != ClaimRecord{}.result_digest);
  CHECK(left.fingerprint == print(1, 1));
  CHECK(left.owner == "o");
  CHECK(b.claim().result_expired);
  b.trim_now();
  CHECK_FALSE(b.changed());
}

TEST_CASE("trim leaves held, failed and string records alone", "[engine][trim]") {
  Bench b;
  const Epoch epoch = b.claim().epoch;
  b.now += 2000ms;
  b.trim_now();
  CHECK_FALSE(b.changed());
  b.fail(epoch, Policy::OnFailure::keep);
  b.now += 2999ms;
  b.trim_now();
  CHECK_FALSE(b.changed());
  b.kind = Kind::string;
  b.trim_now();
  CHECK_FALSE(b.changed());
}

TEST_CASE("view: shows what is left of each clock", "[engine][view]") {
  Bench b;
  b.policy.unique_ttl = 8000ms;
  CHECK(b.view().state == ClaimState::absent);
  const Epoch epoch = b.claim({.owner = "o"}).epoch;
  b.now += 400ms;
  ClaimView view = b.view();
  CHECK(view.state == ClaimState::held);
  CHECK(view.epoch == epoch);
  CHECK(view.attempts == 1);
  CHECK(view.lease_remaining == 600ms);
  CHECK(view.owner == "o");
  b.now += 600ms;
  CHECK(b.view().state == ClaimState::held);  // over, but not taken over
  CHECK(b.view().lease_remaining == 0ms);
  b.complete(epoch, "42");
  b.now += 1000ms;
  view = b.view();
  CHECK(view.state == ClaimState::done);
  CHECK(view.result == "42");
  CHECK(view.result_remaining == 4000ms);
  CHECK(view.unique_remaining == 7000ms);
  b.now += 4000ms;
  view = b.view();
  CHECK(view.result_expired);
  CHECK(view.result.empty());
  CHECK(view.result_remaining == 0ms);
  CHECK(view.unique_remaining == 3000ms);
}
