// The claim's truth table, cell by cell: claims, and the bytes of a record.
// Words: held = a claim that runs; over = its lease has ended; owner = the holder of the epoch;
//        vacant = given back after a failure; doubt = over under a policy that never re-runs.
#include <limits>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/engine/claim_bench.hpp"

using namespace semel;
using namespace semel::engine;
using namespace std::chrono_literals;
using Bench = ClaimBench;

// --- claim ---------------------------------------------------------------------------------------

TEST_CASE("claim on an absent key is granted with the version of the change as epoch",
          "[engine][claim]") {
  Bench b;
  const ClaimOutcome granted = b.claim({.owner = "worker-1"});
  CHECK(granted.answer == ClaimAnswer::granted);
  CHECK(granted.epoch == 101);
  CHECK(granted.attempt == 1);
  CHECK_FALSE(granted.takeover);
  CHECK(b.record().state == ClaimState::held);
  CHECK(b.record().owner == "worker-1");
  CHECK(b.record().session == 7);
  CHECK(b.record().lease_until == b.now + 1000ms);
  CHECK(b.due == b.now + 1000ms + 2000ms);  // remembered for attempts_ttl after the lease
}

TEST_CASE("claim on a held key is in_flight up to the last millisecond of the lease",
          "[engine][claim]") {
  Bench b;
  REQUIRE(b.claim({.owner = "worker-1"}).answer == ClaimAnswer::granted);
  ClaimOutcome other = b.claim();
  CHECK(other.answer == ClaimAnswer::in_flight);
  CHECK(other.remaining == 1000ms);
  CHECK(other.retry_after == 400ms);
  CHECK(other.owner == "worker-1");
  CHECK(other.epoch == 0);
  b.now += 999ms;
  other = b.claim();
  CHECK(other.answer == ClaimAnswer::in_flight);
  CHECK(other.remaining == 1ms);
  CHECK(other.retry_after == 1ms);
  CHECK_FALSE(b.changed());
  b.now += 1ms;
  CHECK(b.claim().answer == ClaimAnswer::granted);
}

TEST_CASE("claim with the lease given overrides the policy", "[engine][claim]") {
  Bench b;
  REQUIRE(b.claim({.lease = 50ms}).answer == ClaimAnswer::granted);
  b.now += 49ms;
  CHECK(b.claim().answer == ClaimAnswer::in_flight);
  b.now += 1ms;
  CHECK(b.claim().answer == ClaimAnswer::granted);
}

TEST_CASE("claim after the lease is a takeover with a new epoch and one attempt more",
          "[engine][claim]") {
  Bench b;
  const Epoch first = b.overdue();
  const ClaimOutcome second = b.claim();
  CHECK(second.answer == ClaimAnswer::granted);
  CHECK(second.takeover);
  CHECK(second.attempt == 2);
  CHECK(second.epoch > first);
}

TEST_CASE("claim takes over at once when the owner is dead", "[engine][claim]") {
  Bench b;
  REQUIRE(b.claim().answer == ClaimAnswer::granted);
  b.owner_dead = true;
  const ClaimOutcome second = b.claim();
  CHECK(second.answer == ClaimAnswer::granted);
  CHECK(second.takeover);
}

TEST_CASE("claim forgets attempts only when attempts_ttl after the lease has passed",
          "[engine][claim]") {
  Bench kept;
  kept.overdue();
  kept.now += 1999ms;
  CHECK(kept.claim().attempt == 2);
  Bench gone;
  gone.overdue();
  gone.now += 2000ms;
  const ClaimOutcome fresh = gone.claim();
  CHECK(fresh.attempt == 1);
  CHECK_FALSE(fresh.takeover);
}

TEST_CASE("claim beyond the attempt limit becomes a poison failure instead of a grant",
          "[engine][claim]") {
  Bench b;
  b.policy.attempts_max = 2;
  b.overdue();
  CHECK(b.claim().attempt == 2);
  b.now += 1000ms;
  const ClaimOutcome third = b.claim();
  CHECK(third.answer == ClaimAnswer::kept_failure);
  CHECK(third.poison);
  CHECK(third.attempt == 2);
  CHECK_FALSE(third.takeover);
  CHECK(third.epoch == 0);
  CHECK(b.record().state == ClaimState::failed);
  CHECK(b.due == b.now + 3000ms);
  const ClaimOutcome fourth = b.claim();
  CHECK(fourth.answer == ClaimAnswer::kept_failure);
  CHECK(fourth.poison);
  CHECK_FALSE(b.changed());
}

TEST_CASE("claim with the claim_id of the holder is regranted the same epoch", "[engine][claim]") {
  Bench b;
  const ClaimOutcome first = b.claim({.claim_id = id_of(1)});
  ClaimOutcome again = b.claim({.claim_id = id_of(1)});
  CHECK(again.answer == ClaimAnswer::regranted);
  CHECK(again.epoch == first.epoch);
  CHECK(again.attempt == 1);
  CHECK_FALSE(b.changed());  // the lease is not extended by asking
  CHECK(b.claim({.claim_id = id_of(2)}).answer == ClaimAnswer::in_flight);
  CHECK(b.claim().answer == ClaimAnswer::in_flight);
  b.now += 999ms;
  CHECK(b.claim({.claim_id = id_of(1)}).answer == ClaimAnswer::regranted);
  b.now += 1ms;
  again = b.claim({.claim_id = id_of(1)});  // the lease is lost: a new grant, never the old one
  CHECK(again.answer == ClaimAnswer::granted);
  CHECK(again.takeover);
  CHECK(again.epoch > first.epoch);
}

TEST_CASE("claim compares claim_id before fingerprint, and fingerprint before state",
          "[engine][claim]") {
  Bench b;
  b.claim({.fingerprint = print(1, 1), .claim_id = id_of(1)});
  CHECK(b.claim({.fingerprint = print(1, 2), .claim_id = id_of(1)}).answer ==
        ClaimAnswer::regranted);
  CHECK(b.claim({.fingerprint = print(1, 2), .claim_id = id_of(2)}).answer ==
        ClaimAnswer::mismatch);
  CHECK(b.claim({.fingerprint = print(1, 1), .claim_id = id_of(2)}).answer ==
        ClaimAnswer::in_flight);
}

TEST_CASE("claim with another payload is a mismatch in every state and reveals nothing",
          "[engine][claim]") {
  Bench b;
  const Epoch epoch = b.claim({.fingerprint = print(1, 1), .owner = "secret"}).epoch;
  const auto expect_mismatch = [&] {
    const Timestamp due = b.due;
    const ClaimOutcome outcome = b.claim({.fingerprint = print(1, 2)});
    CHECK(outcome.answer == ClaimAnswer::mismatch);
    CHECK(outcome.owner.empty());
    CHECK(outcome.result.empty());
    CHECK(outcome.attempt == 0);
    CHECK(outcome.remaining == 0ms);
    CHECK_FALSE(b.changed());
    CHECK(b.due == due);
  };
  SECTION("held") {
    expect_mismatch();
  }
  SECTION("held, lease over") {
    b.now += 1000ms;
    expect_mismatch();
  }
  SECTION("done") {
    REQUIRE(b.complete(epoch).answer == OwnerAnswer::ok);
    expect_mismatch();
  }
  SECTION("failed") {
    REQUIRE(b.fail(epoch, Policy::OnFailure::keep).answer == OwnerAnswer::ok);
    expect_mismatch();
  }
}

TEST_CASE("claim never compares fingerprints of different algorithms, nor with none",
          "[engine][claim]") {
  Bench b;
  const Epoch epoch = b.claim({.fingerprint = print(1, 1)}).epoch;
  b.complete(epoch);
  CHECK(b.claim({.fingerprint = print(2, 9)}).answer == ClaimAnswer::replay);
  CHECK(b.claim().answer == ClaimAnswer::replay);
  Bench none;
  none.complete(none.claim().epoch);
  CHECK(none.claim({.fingerprint = print(1, 1)}).answer == ClaimAnswer::replay);
}

TEST_CASE("claim that takes over without a fingerprint keeps the one on record",
          "[engine][claim]") {
  Bench b;
  b.claim({.fingerprint = print(1, 1)});
  b.now += 1000ms;
  REQUIRE(b.claim().takeover);
  CHECK(b.claim({.fingerprint = print(1, 2)}).answer == ClaimAnswer::mismatch);
}

TEST_CASE("claim on a done key replays the result until result_until, then says it expired",
          "[engine][claim]") {
  Bench b;
  b.policy.unique_ttl = 8000ms;
  b.complete(b.claim().epoch, "42");
  CHECK(b.due == b.now + 8000ms);
  CHECK(b.wake() == b.now + 5000ms);
  b.now += 4999ms;
  ClaimOutcome repeat = b.claim();
  CHECK(repeat.answer == ClaimAnswer::replay);
  CHECK(repeat.result == "42");
  CHECK(repeat.attempt == 1);
  CHECK_FALSE(repeat.result_expired);
  b.now += 1ms;
  repeat = b.claim();
  CHECK(repeat.answer == ClaimAnswer::replay);
  CHECK(repeat.result.empty());
  CHECK(repeat.result_expired);
  b.now += 2999ms;
  CHECK(b.claim().answer == ClaimAnswer::replay);
  b.now += 1ms;
  CHECK(b.claim().answer == ClaimAnswer::granted);
}

TEST_CASE("claim on a kept failure answers the failure until failure_ttl ends", "[engine][claim]") {
  Bench b;
  b.fail(b.claim().epoch, Policy::OnFailure::keep, "boom");
  b.now += 2999ms;
  const ClaimOutcome repeat = b.claim();
  CHECK(repeat.answer == ClaimAnswer::kept_failure);
  CHECK(repeat.result == "boom");
  CHECK_FALSE(repeat.poison);
  b.now += 1ms;
  CHECK(b.claim().answer == ClaimAnswer::granted);
}

TEST_CASE("claim under doubt answers in_doubt for ever, until resolve", "[engine][claim]") {
  Bench b;
  b.policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  b.claim({.owner = "worker-1"});
  CHECK(b.due == no_end);
  b.now += 999ms;
  CHECK(b.claim().answer == ClaimAnswer::in_flight);
  b.now += 1ms;
  const ClaimOutcome doubt = b.claim({.claim_id = id_of(3)});
  CHECK(doubt.answer == ClaimAnswer::in_doubt);
  CHECK(doubt.attempt == 1);
  CHECK(doubt.owner == "worker-1");
  CHECK_FALSE(b.changed());
  b.now += limits::ttl_max;
  CHECK(b.claim().answer == ClaimAnswer::in_doubt);
  CHECK(b.view().state == ClaimState::in_doubt);
  SECTION("resolved as done") {
    CHECK(b.resolve(Resolution::done, "by hand").found);
    CHECK(b.claim().result == "by hand");
  }
  SECTION("resolved as released") {
    CHECK(b.resolve(Resolution::released).found);
    CHECK(b.claim().answer == ClaimAnswer::granted);
  }
  SECTION("completed late by its owner") {
    const OwnerOutcome late = b.complete(101);
    CHECK(late.answer == OwnerAnswer::ok);
    CHECK(late.late);
    CHECK(b.claim().answer == ClaimAnswer::replay);
  }
}

TEST_CASE("claim of a dead owner's work under doubt is in_doubt at once", "[engine][claim]") {
  Bench b;
  b.policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  b.claim();
  b.owner_dead = true;
  CHECK(b.claim().answer == ClaimAnswer::in_doubt);
}

TEST_CASE("claim first sent before the window is too_old instead of granted", "[engine][claim]") {
  Bench b;
  b.policy.window = 60'000ms;
  ClaimOutcome outcome = b.claim({.first_sent_unix_ms = unix_zero - 60'000});
  CHECK(outcome.answer == ClaimAnswer::too_old);
  CHECK(outcome.window_start_unix_ms == unix_zero - 60'000);
  CHECK_FALSE(b.changed());
  CHECK(b.claim({.first_sent_unix_ms = std::numeric_limits<std::int64_t>::min()}).answer ==
        ClaimAnswer::too_old);
  outcome = b.claim({.first_sent_unix_ms = unix_zero - 59'999});
  CHECK(outcome.answer == ClaimAnswer::granted);
  CHECK_FALSE(outcome.window_start_unix_ms);
}

TEST_CASE("claim first sent before the window is answered by a record that is still there",
          "[engine][claim]") {
  Bench b;
  b.policy.window = 60'000ms;
  b.complete(b.claim().epoch, "kept");
  const ClaimOutcome repeat = b.claim({.first_sent_unix_ms = 1});
  CHECK(repeat.answer == ClaimAnswer::replay);
  CHECK(repeat.result == "kept");
}

TEST_CASE("claim without a window or a first_sent is never too_old", "[engine][claim]") {
  Bench no_window;
  CHECK(no_window.claim({.first_sent_unix_ms = 1}).answer == ClaimAnswer::granted);
  Bench no_time;
  no_time.policy.window = 1ms;
  CHECK(no_time.claim().answer == ClaimAnswer::granted);
}

TEST_CASE("claim on a string answers wrong_kind and changes nothing", "[engine][claim]") {
  Bench b;
  b.present = true;
  b.kind = Kind::string;
  b.value = "a string";
  const ClaimOutcome outcome = b.claim();
  CHECK(outcome.answer == ClaimAnswer::busy);
  CHECK(outcome.error == ErrorCode::wrong_kind);
  CHECK(b.complete(1).error == ErrorCode::wrong_kind);
  CHECK(b.forget().error == ErrorCode::wrong_kind);
  CHECK(b.resolve(Resolution::done).error == ErrorCode::wrong_kind);
  CHECK_FALSE(b.changed());
  ClaimView view;
  const auto record = b.live();
  CHECK(view_claim(&*record, b.policy, b.facts(), view) == ErrorCode::wrong_kind);
}

TEST_CASE("claim checks lease and owner label at the limit and one beyond", "[engine][claim]") {
  const std::string label(limits::owner_label_max, 'x');
  const std::string long_label(limits::owner_label_max + 1, 'x');
  CHECK(check_claim({}) == ErrorCode::ok);
  CHECK(check_claim({.lease = 0ms}) == ErrorCode::bad_option);
  CHECK(check_claim({.lease = 1ms}) == ErrorCode::ok);
  CHECK(check_claim({.lease = limits::ttl_max}) == ErrorCode::ok);
  CHECK(check_claim({.lease = limits::ttl_max + 1ms}) == ErrorCode::bad_option);
  CHECK(check_claim({.owner = label}) == ErrorCode::ok);
  CHECK(check_claim({.owner = long_label}) == ErrorCode::bad_option);
  CHECK(check_owner(OwnerVerb::renew, {.lease = 0ms}) == ErrorCode::bad_option);
  CHECK(check_owner(OwnerVerb::renew, {.lease = limits::ttl_max}) == ErrorCode::ok);
  CHECK(check_owner(OwnerVerb::renew, {.lease = limits::ttl_max + 1ms}) == ErrorCode::bad_option);
  CHECK(check_owner(OwnerVerb::complete, {.lease = 0ms}) == ErrorCode::ok);
}

// --- codec ---------------------------------------------------------------------------------------

TEST_CASE("codec: a restored record that is done and has no ends is no replay", "[engine][codec]") {
  ClaimRecord record;
  record.state = ClaimState::done;
  record.attempts = 1;
  Scratch scratch;
  const Bytes bytes = encode(record, scratch);
  const std::vector<char> alone{bytes.begin(), bytes.end()};  // nothing behind it may be read
  Replay replay;
  CHECK_FALSE(read_replay({alone.data(), alone.size()}, Timestamp{1ms}, replay));
}

TEST_CASE("codec: each number of a claim comes back, and a completion keeps it",
          "[engine][codec]") {
  for (const ClaimNumber& number : claim_numbers) {
    for (const std::uint32_t count : {0U, 1U, 2U, 0xffff'ffffU}) {
      CAPTURE(number.view_name, count);
      ClaimRecord record;
      record.state = ClaimState::held;
      record.attempts = 1;
      record.epoch = 9;
      record.lease_until = Timestamp{5ms};
      record.owner = "worker";
      record.*number.kept = count;
      Scratch scratch;
      const Bytes bytes = encode(record, scratch);
      ClaimRecord back;
      REQUIRE(decode(bytes, back));
      CHECK(back.*number.kept == count);
      CHECK(back.owner == "worker");
      HeldClaim held;
      REQUIRE(read_held(bytes, held));
      CHECK(held.owner() == "worker");
      const DoneEnds ends{Timestamp{8ms}, Timestamp{9ms}, Timestamp{9ms}};
      std::string finished(done_bytes(held, ends, 4), '\0');
      write_done(finished.data(), held, ends, "paid");
      REQUIRE(decode(finished, back));
      CHECK(back.state == ClaimState::done);
      CHECK(back.*number.kept == count);
      CHECK(back.owner == "worker");
      CHECK(back.result == "paid");
    }
  }
}

TEST_CASE("codec gives back every field of a record, and takes no bytes for what is not there",
          "[engine][codec]") {
  ClaimRecord full;
  full.state = ClaimState::done;
  full.result_expired = true;
  full.poison = true;
  full.attempts = 0xfedc'ba98;
  full.epoch = 0x0123'4567'89ab'cdef;
  full.session = 42;
  full.lease_until = Timestamp{11ms};
  full.result_until = Timestamp{12ms};
  full.unique_until = no_end;
  full.fingerprint = print(3, 0xee);
  full.claim_id = id_of(0);
  full.result_digest.fill(9);
  const std::string owner(limits::owner_label_max, 'o');
  const std::string result(1000, 'r');
  full.owner = owner;
  full.result = result;
  const std::string memos(77, 'm');
  full.memos = memos;

  Scratch scratch;
  const Bytes bytes = encode(full, scratch);
  CHECK(bytes.size() == claim_overhead_max + memos.size() + result.size());
  ClaimRecord back;
  REQUIRE(decode(bytes, back));
  CHECK(back.state == full.state);
  CHECK(back.result_expired);
  CHECK(back.poison);
  CHECK(back.attempts == full.attempts);
  CHECK(back.epoch == full.epoch);
  CHECK(back.session == full.session);
  CHECK(back.lease_until == full.lease_until);
  CHECK(back.result_until == full.result_until);
  CHECK(back.unique_until == full.unique_until);
  CHECK(back.fingerprint == full.fingerprint);
  CHECK(back.claim_id == full.claim_id);
  CHECK(back.result_digest == full.result_digest);
  CHECK(back.owner == owner);
  CHECK(back.result == result);
  CHECK(back.memos == memos);
  CHECK(session_of(bytes) == 42);

  ClaimRecord bare;
  bare.state = ClaimState::vacant;
  const Bytes small = encode(bare, scratch);
  CHECK(small.size() == 10 + 8);  // no attempt: not the common case
  CHECK(session_of(small) == 0);
  REQUIRE(decode(small, back));
  CHECK(back.state == ClaimState::vacant);
  CHECK_FALSE(back.claim_id);
  CHECK(back.memos.empty());
  bare.memos = memos;
  const Bytes with_memos = encode(bare, scratch);
  CHECK(with_memos.size() == 10 + 8 + 4 + memos.size());
  CHECK(is_vacant(with_memos));
  CHECK_FALSE(is_finished(with_memos));
}

TEST_CASE("codec keeps a time before the clock's zero in the past", "[engine][codec]") {
  ClaimRecord record;
  record.state = ClaimState::held;
  record.attempts = 1;
  record.lease_until = Timestamp{-5000ms};
  Scratch scratch;
  const Bytes bytes = encode(record, scratch);
  CHECK(bytes.size() == 10 + 6);
  ClaimRecord back;
  REQUIRE(decode(bytes, back));
  CHECK(back.lease_until == Timestamp{1ms});
}

TEST_CASE("codec: reads a session and the end of a result without the rest", "[engine][codec]") {
  ClaimRecord record;
  record.state = ClaimState::done;
  record.attempts = 2;
  record.session = 77;
  record.result_until = Timestamp{500ms};
  record.unique_until = Timestamp{900ms};
  record.owner = "o";
  record.result = "r";
  Scratch scratch;
  CHECK(session_of(encode(record, scratch)) == 77);
  CHECK(claim_wake_of(encode(record, scratch), Timestamp{900ms}) == Timestamp{500ms});
  CHECK(claim_wake_of(encode(record, scratch), Timestamp{400ms}) == Timestamp{400ms});
  record.lease_until = Timestamp{100ms};
  CHECK(session_of(encode(record, scratch)) == 77);
  CHECK(claim_wake_of(encode(record, scratch), Timestamp{900ms}) == Timestamp{500ms});
  record.result = {};
  CHECK(claim_wake_of(encode(record, scratch), Timestamp{900ms}) == Timestamp{900ms});
  record.result = "r";
  record.state = ClaimState::failed;
  CHECK(claim_wake_of(encode(record, scratch), Timestamp{900ms}) == Timestamp{900ms});
}

TEST_CASE("codec: a claim in flight wakes at the end of its lease, if it has one and ends later",
          "[engine][codec]") {
  ClaimRecord record;
  record.state = ClaimState::held;
  record.attempts = 1;
  record.lease_until = Timestamp{100ms};
  Scratch scratch;
  for (const bool has_details : {false, true}) {
    if (has_details) record.owner = "o";
    const Bytes bytes = encode(record, scratch);
    CHECK(engine::is_leased(bytes));
    CHECK(claim_wake_of(bytes, Timestamp{900ms}) == Timestamp{100ms});
    CHECK(claim_wake_of(bytes, Timestamp{99ms}) == Timestamp{99ms});
    CHECK(claim_wake_of(bytes, no_end) == no_end);
    CHECK(claim_wake_of(bytes.substr(0, has_details ? 23 : 15), Timestamp{900ms}) ==
          Timestamp{900ms});
  }
  record.lease_until = {};
  CHECK_FALSE(engine::is_leased(encode(record, scratch)));
  CHECK(claim_wake_of(encode(record, scratch), Timestamp{900ms}) == Timestamp{900ms});
  record.state = ClaimState::in_doubt;
  record.lease_until = Timestamp{100ms};
  CHECK_FALSE(engine::is_leased(encode(record, scratch)));
  CHECK_FALSE(engine::is_leased({}));
}

TEST_CASE("codec: what a call has met is read without the rest of the record", "[engine][codec]") {
  ClaimRecord record;
  record.state = ClaimState::held;
  record.epoch = 7;
  record.attempts = 3;
  record.lease_until = Timestamp{100ms};
  record.session = 77;
  record.owner = "worker";
  record.fingerprint.algorithm = 1;
  record.claim_id.emplace();
  Scratch scratch;
  engine::MetClaim met;
  const Bytes bytes = encode(record, scratch);
  REQUIRE(engine::read_met(bytes, met));
  CHECK(met.state == ClaimState::held);
  CHECK(met.epoch == 7);
  CHECK(met.lease_until == Timestamp{100ms});
  CHECK(met.owner == "worker");
  CHECK_FALSE(engine::read_met(bytes.substr(0, bytes.size() - 1), met));
  record.lease_until = {};
  record.owner = {};
  record.state = ClaimState::done;
  record.result = "result";
  REQUIRE(engine::read_met(encode(record, scratch), met));
  CHECK(met.lease_until == Timestamp{});
  CHECK(met.owner.empty());
}

TEST_CASE("codec refuses bytes that are too short for their own header", "[engine][codec]") {
  ClaimRecord record;
  record.state = ClaimState::held;
  record.session = 1;
  record.lease_until = Timestamp{5ms};
  record.fingerprint = print(1, 1);
  record.owner = "owner";
  record.memos = "memos";
  Scratch scratch;
  const std::string bytes{encode(record, scratch)};
  ClaimRecord back;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(decode(Bytes{bytes}.substr(0, size), back));
  }
  CHECK(decode(bytes, back));
}
