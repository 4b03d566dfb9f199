// Sliding windows of claims: a duplicate that gets the result moves the end of its record.
// Words: share = 1/16 of the window, by which each end is later than the window asks for.
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/core/namespace_terms.hpp"
#include "engine/rules/claim_states.hpp"
#include "semel/engine_host.hpp"
#include "semel/memory_journal.hpp"
#include "tests/engine/claim_bench.hpp"
#include "tests/engine/engine_fixture.hpp"

using namespace semel;
using namespace semel::tests;
using namespace std::chrono_literals;
using engine::print;

namespace {

constexpr Millis window = 1600ms;
constexpr Millis share = 100ms;

Policy sliding(Millis most = 1h) {
  Policy policy;
  policy.lease = 1000ms;
  policy.result_ttl = window;
  policy.failure_ttl = window;
  policy.sliding_max = most;
  return policy;
}

Epoch complete(Claims& ns, Bytes key, Bytes result = "done") {
  const Epoch epoch = ns.claim({.key = key}).epoch;
  REQUIRE(ns.complete({.key = key, .epoch = epoch, .payload = result}).answer == OwnerAnswer::ok);
  return epoch;
}

bool replays(Claims& ns, Bytes key, Bytes result = "done") {
  const ClaimOutcome outcome = ns.claim({.key = key});
  return outcome.answer == ClaimAnswer::replay && outcome.result == result;
}

bool is_there(Claims& ns, Bytes key) {
  return ns.get(key)->state == ClaimState::done;
}

Millis left(Claims& ns, Bytes key) {
  return ns.get(key)->unique_remaining;
}

}  // namespace

// --- ends ----------------------------------------------------------------------------------------

TEST_CASE("sliding: without duplicates a record ends a share after the window",
          "[engine][claims][sliding]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding());
  complete(ns, "k");
  f.clock.advance(window + share - 1ms);
  CHECK(is_there(ns, "k"));
  f.clock.advance(1ms);
  CHECK_FALSE(is_there(ns, "k"));
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
}

TEST_CASE("sliding: a duplicate moves the end once less than the window is left, not before",
          "[engine][claims][sliding]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding());
  complete(ns, "k");
  const std::size_t written = f.journal.size();
  f.clock.advance(share);
  CHECK(replays(ns, "k"));
  CHECK(left(ns, "k") == window);
  CHECK(f.journal.size() == written);
  f.clock.advance(1ms);
  CHECK(replays(ns, "k"));
  CHECK(left(ns, "k") == window + share);
  CHECK(f.journal.size() == written + 1);
  f.clock.advance(window + share - 1ms);
  CHECK(is_there(ns, "k"));
  f.clock.advance(1ms);
  CHECK_FALSE(is_there(ns, "k"));
}

TEST_CASE("sliding: a duplicate within the window of the one before it is never run again",
          "[engine][claims][sliding]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding());
  complete(ns, "k");
  for (int i = 0; i < 100; ++i) {
    f.pass(window);
    REQUIRE(replays(ns, "k"));
    f.pass(Millis{i});  // one that need not move the end
    REQUIRE(replays(ns, "k"));
  }
  f.pass(window + share);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
}

TEST_CASE("sliding: no duplicate moves the end beyond sliding_max after the completion",
          "[engine][claims][sliding][limit]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding(10'000ms));
  complete(ns, "k");
  for (int i = 0; i < 9; ++i) {
    f.clock.advance(1000ms);
    REQUIRE(replays(ns, "k"));
  }
  CHECK(left(ns, "k") == 1000ms);
  const std::size_t written = f.journal.size();
  f.clock.advance(999ms);
  CHECK(replays(ns, "k"));
  CHECK(f.journal.size() == written);  // there is no later end
  f.clock.advance(1ms);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
}

TEST_CASE("sliding: duplicates without a pause write sixteen records in a window at most",
          "[engine][claims][sliding][limit]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding());
  complete(ns, "k");
  const std::size_t written = f.journal.size();
  for (Millis passed{0}; passed < 10 * window; passed += 1ms) {
    f.clock.advance(1ms);
    REQUIRE(replays(ns, "k"));
  }
  CHECK(f.journal.size() - written <= 160);
  CHECK(f.journal.size() - written >= 150);  // and so the end is near what was asked for
  CHECK(left(ns, "k") >= window);
}

TEST_CASE("sliding: a window of 1 ms slides", "[engine][claims][sliding][limit]") {
  EngineFixture f;
  Policy policy = sliding(3ms);
  policy.result_ttl = 1ms;
  Claims ns = f.claims("ns", policy);
  complete(ns, "k");
  CHECK(replays(ns, "k"));
  CHECK(left(ns, "k") == 1ms);
  f.clock.advance(1ms);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
}

TEST_CASE("sliding: the longest times do not overflow", "[engine][claims][sliding][limit]") {
  EngineFixture f;
  Policy policy = sliding(limits::ttl_max);
  policy.result_ttl = limits::ttl_max;
  policy.unique_ttl = limits::ttl_max;
  Claims ns = f.claims("ns", policy);
  complete(ns, "k");
  f.clock.advance(limits::ttl_max - 1ms);
  CHECK(replays(ns, "k"));
  CHECK(left(ns, "k") == 1ms);
}

TEST_CASE("sliding: result and key have a window each", "[engine][claims][sliding]") {
  EngineFixture f;
  Policy policy = sliding();
  policy.unique_ttl = 160'000ms;
  Claims ns = f.claims("ns", policy);
  complete(ns, "k");
  for (int i = 0; i < 5; ++i) {
    f.pass(window);
    REQUIRE(replays(ns, "k"));  // the share of the key's window is longer than the result's
  }
  f.pass(window + share - 1ms);
  CHECK_FALSE(ns.get("k")->result_expired);
  f.pass(1ms);
  CHECK(ns.get("k")->result_expired);
  f.pass(20'000ms);
  const ClaimOutcome late = ns.claim({.key = "k"});
  CHECK(late.answer == ClaimAnswer::replay);
  CHECK(late.result_expired);  // what is gone does not come back
  CHECK(left(ns, "k") == 170'000ms);
  f.pass(170'000ms - 1ms);
  CHECK(is_there(ns, "k"));
  f.pass(1ms);
  CHECK_FALSE(is_there(ns, "k"));
}

// --- what moves no end
// ------------------------------------------------------------------------------

TEST_CASE("sliding: only an answer with the done work moves an end", "[engine][claims][sliding]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding());
  const Epoch epoch = ns.claim({.key = "k", .fingerprint = print(1, 1)}).epoch;
  REQUIRE(ns.complete({.key = "k", .epoch = epoch, .payload = "done"}).answer == OwnerAnswer::ok);
  f.clock.advance(1000ms);
  const std::size_t written = f.journal.size();
  const Millis before = left(ns, "k");
  CHECK(ns.claim({.key = "k", .fingerprint = print(1, 2)}).answer == ClaimAnswer::mismatch);
  CHECK(ns.complete({.key = "k", .epoch = epoch, .payload = "done"}).answer == OwnerAnswer::ok);
  CHECK(ns.complete({.key = "k", .epoch = epoch - 1, .payload = "x"}).has_result);
  CHECK(ns.renew({.key = "k", .epoch = epoch}).answer == OwnerAnswer::conflict);
  static_cast<void>(ns.explain("k"));
  CHECK(left(ns, "k") == before);
  CHECK(f.journal.size() == written);
  CHECK(ns.claim({.key = "k", .fingerprint = print(1, 1)}).answer == ClaimAnswer::replay);
  CHECK(left(ns, "k") == window + share);
}

TEST_CASE("sliding: a duplicate of held or failed work moves no end", "[engine][claims][sliding]") {
  EngineFixture f;
  Policy policy = sliding();
  policy.on_failure = Policy::OnFailure::keep;
  policy.attempts_max = 1;
  Claims ns = f.claims("ns", policy);
  const Epoch failed = ns.claim({.key = "failed"}).epoch;
  REQUIRE(ns.fail({.key = "failed", .epoch = failed}).answer == OwnerAnswer::ok);
  REQUIRE(ns.claim({.key = "poison"}).answer == ClaimAnswer::granted);
  REQUIRE(ns.claim({.key = "held", .lease = 1h}).answer == ClaimAnswer::granted);
  f.clock.advance(1000ms);
  REQUIRE(ns.claim({.key = "poison"}).poison);
  f.clock.advance(window - 1001ms);
  const std::size_t written = f.journal.size();
  for (const Bytes key : {"failed", "poison", "held"}) static_cast<void>(ns.claim({.key = key}));
  CHECK(f.journal.size() == written);
  f.clock.advance(1ms);
  CHECK(ns.get("failed")->state == ClaimState::absent);
  f.clock.advance(999ms);
  CHECK(ns.get("poison")->state == ClaimState::failed);
  f.clock.advance(1ms);
  CHECK(ns.get("poison")->state == ClaimState::absent);
}

TEST_CASE("sliding: a claim of all or none grants nothing, and moves the end of what it replays",
          "[engine][claims][sliding]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding());
  complete(ns, "a");
  f.clock.advance(1000ms);
  std::vector<ClaimRequest> asked{{.key = "a"}, {.key = "b"}};
  std::vector<ClaimOutcome> outcomes(2);
  CHECK_FALSE(ns.claim_all(asked, outcomes));
  CHECK(outcomes[0].answer == ClaimAnswer::replay);
  CHECK(left(ns, "a") == window + share);
  CHECK(ns.get("b")->state == ClaimState::absent);
}

// --- ways to a duplicate
// --------------------------------------------------------------------------

TEST_CASE("sliding: each way to a duplicate moves the end", "[engine][claims][sliding]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding());
  complete(ns, "k");
  const auto moved = [&] { return left(ns, "k") == window + share; };
  f.clock.advance(1000ms);
  std::vector<ClaimRequest> asked{{.key = "k"}, {.key = "new"}, {.key = "k"}};
  std::vector<ClaimOutcome> outcomes(3);
  ns.claim(asked, outcomes);
  CHECK(outcomes[0].answer == ClaimAnswer::replay);
  CHECK(outcomes[2].answer == ClaimAnswer::replay);
  CHECK(moved());
  f.clock.advance(1000ms);
  CHECK(ns.claim_or_wait({.key = "k"}, f.clock.now()).answer == ClaimAnswer::replay);
  CHECK(moved());
  f.clock.advance(1000ms);
  bool is_called = false;
  ns.claim_or_wait({.key = "k"}, f.clock.now(), [&](ClaimOutcome outcome) {
    is_called = outcome.answer == ClaimAnswer::replay;
  });
  CHECK(is_called);
  CHECK(moved());
  f.clock.advance(1000ms);
  CHECK(ns.claim({.key = "k", .claim_id = engine::id_of(1)}).answer == ClaimAnswer::replay);
  CHECK(moved());
}

TEST_CASE("sliding: work that an operator resolves as done slides", "[engine][claims][sliding]") {
  EngineFixture f;
  Policy policy = sliding();
  policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  Claims ns = f.claims("ns", policy);
  REQUIRE(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
  f.clock.advance(1000ms);
  REQUIRE(ns.resolve("k", Resolution::done, "by hand").value());
  f.clock.advance(window);
  CHECK(replays(ns, "k", "by hand"));
  f.clock.advance(window);
  CHECK(replays(ns, "k", "by hand"));
}

TEST_CASE("sliding: a result keeps its bytes over many moves, whatever its record has",
          "[engine][claims][sliding]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding());
  const std::string result(100'000, 'r');
  const Epoch epoch = ns.claim({.key = "k", .fingerprint = print(3, 4), .owner = "somebody"}).epoch;
  REQUIRE(ns.complete({.key = "k", .epoch = epoch, .payload = result}).answer == OwnerAnswer::ok);
  for (int i = 0; i < 20; ++i) {
    f.pass(window);
    REQUIRE(replays(ns, "k", result));
  }
  CHECK(ns.get("k")->epoch == epoch);
  CHECK(ns.get("k")->fingerprint == print(3, 4));
  CHECK(ns.complete({.key = "k", .epoch = epoch, .payload = result}).answer == OwnerAnswer::ok);
}

// --- changed terms, no room
// ------------------------------------------------------------------------

TEST_CASE("sliding: a record completed in a fixed window keeps its end",
          "[engine][claims]"
          "[sliding]") {
  EngineFixture f;
  Policy fixed = sliding(0ms);
  Claims ns = f.claims("ns", fixed);
  complete(ns, "old");
  REQUIRE(f.engine->change_namespace("ns", sliding()).value() == "sliding_max 0 -> 3600000");
  complete(ns, "new");
  f.clock.advance(window - 1ms);
  CHECK(replays(ns, "old"));
  CHECK(replays(ns, "new"));
  f.clock.advance(1ms);
  CHECK_FALSE(is_there(ns, "old"));
  CHECK(is_there(ns, "new"));
}

TEST_CASE("sliding: a result of a fixed window is kept up to the end of its key, not longer",
          "[engine][claims][sliding]") {
  EngineFixture f;
  Policy policy = sliding(0ms);
  policy.unique_ttl = 4 * window;
  Claims ns = f.claims("ns", policy);
  complete(ns, "old");
  policy.sliding_max = 1h;
  REQUIRE(f.engine->change_namespace("ns", policy).has_value());
  for (int i = 1; i < 4; ++i) {
    f.clock.advance(i == 1 ? window - 1ms : window);
    CHECK(replays(ns, "old"));
  }
  f.clock.advance(window);
  CHECK(is_there(ns, "old"));
  f.clock.advance(1ms);
  CHECK_FALSE(is_there(ns, "old"));
}

TEST_CASE("sliding: a clock behind the group's looks at ends by the later time",
          "[engine][claims][sliding]") {
  const Timestamp now{1h};
  Policy policy = sliding();
  policy.result_ttl = 900ms;
  policy.unique_ttl = 1min;
  ClaimRecord record;
  record.state = ClaimState::done;
  record.unique_until = now + 1h;
  record.result_until = now + 956ms;
  const Timestamp due = now + 64s;
  CHECK_FALSE(engine::slides(record, due, policy, now));
  CHECK_FALSE(engine::slides(record, due, policy, now, 56ms));
  CHECK(engine::slides(record, due, policy, now, 57ms));
  CHECK(engine::slides(record, due, policy, now, 1s));  // the result is over by then, not yet now
  record.result_until = now;                            // over now
  CHECK_FALSE(engine::slides(record, due, policy, now, 1s));
}

TEST_CASE("sliding: a window that becomes fixed keeps the ends that there are",
          "[engine][claims][sliding]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding());
  complete(ns, "k");
  f.clock.advance(1000ms);
  CHECK(replays(ns, "k"));
  REQUIRE(f.engine->change_namespace("ns", sliding(0ms)).has_value());
  f.clock.advance(window + share - 1ms);
  CHECK(replays(ns, "k"));
  f.clock.advance(1ms);
  CHECK_FALSE(is_there(ns, "k"));
}

TEST_CASE("sliding: a shorter window moves no end back, and a longer limit is for later work",
          "[engine][claims][sliding]") {
  EngineFixture f;
  Policy policy = sliding(10'000ms);
  Claims ns = f.claims("ns", policy);
  complete(ns, "k");
  policy.result_ttl = 16ms;
  policy.sliding_max = 1h;
  REQUIRE(f.engine->change_namespace("ns", policy).has_value());
  f.clock.advance(1ms);
  CHECK(replays(ns, "k"));
  CHECK(left(ns, "k") == window + share - 1ms);
  policy.result_ttl = 20'000ms;
  REQUIRE(f.engine->change_namespace("ns", policy).has_value());
  CHECK(replays(ns, "k"));
  CHECK(left(ns, "k") == 9'999ms);
}

TEST_CASE("sliding: where nothing can be written the record answers until its own end",
          "[engine][claims][sliding][faults]") {
  EngineFixture f;
  Claims ns = f.claims("ns", sliding());
  complete(ns, "k");
  f.clock.advance(1000ms);
  f.journal.set_accepts_writes(false);
  const Version version = ns.claim({.key = "k"}).version;
  CHECK(version != 0);
  CHECK(replays(ns, "k"));
  CHECK(left(ns, "k") == window + share - 1000ms);
  f.journal.set_accepts_writes(true);
  CHECK(replays(ns, "k"));
  CHECK(left(ns, "k") == window + share);
}

// --- declared
// --------------------------------------------------------------------------------------

TEST_CASE("sliding: sliding_max is at least as long as result_ttl and unique_ttl",
          "[engine][claims][sliding][limit]") {
  Policy policy = sliding(window);
  CHECK(engine::check_policy(policy).ok());
  policy.sliding_max = window - 1ms;
  CHECK(engine::check_policy(policy).error().code == ErrorCode::bad_option);
  policy.unique_ttl = 5000ms;
  policy.sliding_max = 4999ms;
  CHECK(engine::check_policy(policy).error().detail.find("5000") != std::string::npos);
  policy.sliding_max = 5000ms;
  CHECK(engine::check_policy(policy).ok());
  policy.sliding_max = limits::ttl_max;
  CHECK(engine::check_policy(policy).ok());
  policy.sliding_max = limits::ttl_max + 1ms;
  CHECK_FALSE(engine::check_policy(policy).ok());
  policy.sliding_max = -1ms;
  CHECK_FALSE(engine::check_policy(policy).ok());
  policy.sliding_max = 0ms;
  CHECK(engine::check_policy(policy).ok());
}

TEST_CASE("sliding: the terms are written down only where the window slides",
          "[engine][claims][sliding]") {
  const std::string fixed = engine::encode_policy(sliding(0ms));
  const std::string slides = engine::encode_policy(sliding());
  CHECK(fixed == engine::encode_policy([] {
          Policy policy = sliding();
          policy.sliding_max = Millis{0};
          return policy;
        }()));
  CHECK(slides.size() > fixed.size());
  CHECK(engine::decode_policy(slides)->sliding_max == 1h);
  CHECK(engine::decode_policy(fixed)->sliding_max == 0ms);
  for (std::size_t size = 0; size < slides.size(); ++size) {
    CHECK_FALSE(engine::decode_policy(Bytes{slides}.substr(0, size)).has_value());
  }
  std::string zero = slides.substr(0, fixed.size());
  zero.push_back('\0');  // says that it slides, by nothing
  CHECK_FALSE(engine::decode_policy(zero).has_value());
}
