// Claims by the batch: an outcome each, folds, all or nothing.
// Words: folded = a repeated key inside one batch; ns = the claims of one namespace.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/claims.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/memory_journal.hpp"

using namespace semel;
using namespace std::chrono_literals;

namespace {

struct Fixture {
  ManualClock clock;
  MemoryJournal journal;
  std::unique_ptr<Engine> engine;

  Fixture() {
    auto opened = Engine::open({.clock = &clock, .journal = &journal});
    REQUIRE(opened);
    engine = *std::move(opened);
  }
  Claims ns() {
    Policy policy;
    policy.lease = 1000ms;
    auto made = engine->claims("ns", policy);
    REQUIRE(made);
    return *made;
  }
};

std::vector<std::string> make_keys(std::size_t count) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back("key-" + std::to_string(i));
  return keys;
}

std::vector<ClaimRequest> requests_for(const std::vector<std::string>& keys) {
  std::vector<ClaimRequest> requests;
  for (const std::string& key : keys) requests.push_back({.key = key});
  return requests;
}

}  // namespace

TEST_CASE("batch: claims and completes give an outcome each, in order, in any size",
          "[engine][claims][batch]") {
  Fixture f;
  Claims ns = f.ns();
  for (const std::size_t count : {0U, 1U, 15U, 16U, 17U, 100U, 1000U}) {
    const auto keys = make_keys(count);
    const auto requests = requests_for(keys);
    std::vector<ClaimOutcome> outcomes(count);
    ns.claim(requests, outcomes);
    std::vector<OwnerCall> calls;
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(outcomes[i].answer == ClaimAnswer::granted);
      REQUIRE_FALSE(outcomes[i].folded_onto);
      calls.push_back({.key = keys[i], .epoch = outcomes[i].epoch, .payload = keys[i]});
    }
    std::vector<OwnerOutcome> finished(count);
    ns.complete(calls, finished);
    ns.claim(requests, outcomes);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(finished[i].answer == OwnerAnswer::ok);
      REQUIRE(outcomes[i].answer == ClaimAnswer::replay);
      REQUIRE(outcomes[i].result == keys[i]);
      REQUIRE(*ns.forget(keys[i]));
    }
  }
}

TEST_CASE("batch: a repeated key folds onto its first request", "[engine][claims][batch]") {
  Fixture f;
  Claims ns = f.ns();
  ClaimId id{};
  id.fill(1);
  const ClaimRequest requests[] = {
      {.key = "a", .claim_id = id}, {.key = "b"}, {.key = "a"}, {.key = "a", .claim_id = id}};
  ClaimOutcome outcomes[4];
  ns.claim(requests, outcomes);
  CHECK(outcomes[0].answer == ClaimAnswer::granted);
  CHECK_FALSE(outcomes[0].folded_onto);
  CHECK(outcomes[1].answer == ClaimAnswer::granted);
  CHECK(outcomes[2].answer == ClaimAnswer::in_flight);
  CHECK(outcomes[2].folded_onto == 0U);
  CHECK(outcomes[3].answer == ClaimAnswer::regranted);
  CHECK(outcomes[3].epoch == outcomes[0].epoch);
  CHECK(outcomes[3].folded_onto == 0U);
}

TEST_CASE("batch: a repeated key is never granted by itself, whatever its first was answered",
          "[engine][claims][batch][attack][fault-15]") {
  Fixture f;
  Policy policy;
  policy.window = 1000ms;
  Claims ns = f.engine->claims("ns", policy).value();
  const std::int64_t now = f.clock.unix_ms();
  const std::string label(limits::owner_label_max + 1, 'x');
  const ClaimRequest requests[] = {{.key = "a", .first_sent_unix_ms = now - 2000},
                                   {.key = "a", .first_sent_unix_ms = now},
                                   {.key = "b", .owner = label},
                                   {.key = "b"},
                                   {.key = "b"}};
  ClaimOutcome outcomes[5];
  ns.claim(requests, outcomes);
  CHECK(outcomes[0].answer == ClaimAnswer::too_old);
  CHECK(outcomes[1].answer == ClaimAnswer::in_flight);
  CHECK(outcomes[1].folded_onto == 0U);
  CHECK(outcomes[1].epoch == 0);
  CHECK(outcomes[1].retry_after > 0ms);
  CHECK(ns.get("a")->state == ClaimState::absent);
  // An item that is not valid is never the first of its key.
  CHECK(outcomes[3].answer == ClaimAnswer::granted);
  CHECK_FALSE(outcomes[3].folded_onto);
  CHECK(outcomes[4].folded_onto == 3U);
}

TEST_CASE("batch: a repeated key whose holder lets go between the two looks is not granted",
          "[engine][claims][batch][race][attack][fault-15]") {
  Fixture f;
  Claims ns = f.ns();
  std::atomic<bool> stop{false};
  std::thread holder{[&] {
    Claims own = ns;
    // mo: relaxed: a flag alone.
    while (!stop.load(std::memory_order_relaxed)) {
      const ClaimOutcome held = own.claim({.key = "k"});
      if (held.answer == ClaimAnswer::granted) {
        static_cast<void>(own.release({.key = "k", .epoch = held.epoch}));
      }
    }
  }};
  std::vector<ClaimRequest> requests(16, ClaimRequest{.key = "k"});
  std::vector<ClaimOutcome> outcomes(requests.size());
  int granted_twice = 0;
  for (int i = 0; i < 20'000; ++i) {
    ns.claim(requests, outcomes);
    for (const ClaimOutcome& outcome : outcomes) {
      if (outcome.answer != ClaimAnswer::granted) continue;
      if (outcome.folded_onto) ++granted_twice;
      static_cast<void>(ns.release({.key = "k", .epoch = outcome.epoch}));
    }
  }
  stop.store(true, std::memory_order_relaxed);  // mo: relaxed: a flag alone.
  holder.join();
  CHECK(granted_twice == 0);
}

TEST_CASE("batch: folds are found at any distance", "[engine][claims][batch]") {
  Fixture f;
  Claims ns = f.ns();
  const auto keys = make_keys(500);
  auto requests = requests_for(keys);
  for (std::size_t i = 0; i < 500; ++i) requests.push_back(requests[i]);
  std::vector<ClaimOutcome> outcomes(requests.size());
  ns.claim(requests, outcomes);
  for (std::size_t i = 0; i < 500; ++i) {
    REQUIRE_FALSE(outcomes[i].folded_onto);
    REQUIRE(outcomes[500 + i].folded_onto == i);
    REQUIRE(outcomes[500 + i].answer == ClaimAnswer::in_flight);
  }
}

TEST_CASE("batch: one bad request spoils no other", "[engine][claims][batch]") {
  Fixture f;
  Claims ns = f.ns();
  const std::string label(limits::owner_label_max + 1, 'x');
  const ClaimRequest requests[] = {{.key = "a"}, {.key = ""}, {.key = "c", .owner = label}};
  ClaimOutcome outcomes[3];
  ns.claim(requests, outcomes);
  CHECK(outcomes[0].answer == ClaimAnswer::granted);
  CHECK(outcomes[1].error == ErrorCode::key_empty);
  CHECK(outcomes[2].error == ErrorCode::bad_option);
  const OwnerCall calls[] = {{.key = ""}, {.key = "a", .epoch = outcomes[0].epoch}};
  OwnerOutcome finished[2];
  ns.complete(calls, finished);
  CHECK(finished[0].error == ErrorCode::key_empty);
  CHECK(finished[1].answer == OwnerAnswer::ok);
}

TEST_CASE("batch: batch_max requests are taken, one more is refused as a whole",
          "[engine][claims][batch][limits]") {
  Fixture f;
  Claims ns = f.ns();
  const auto keys = make_keys(limits::batch_max + 1);
  const auto requests = requests_for(keys);
  std::vector<ClaimOutcome> outcomes(requests.size());
  ns.claim(requests, outcomes);
  CHECK(outcomes.front().error == ErrorCode::too_many_keys);
  CHECK(outcomes.back().error == ErrorCode::too_many_keys);
  CHECK_FALSE(ns.claim_all(requests, outcomes));
  const std::vector<OwnerCall> calls(requests.size(), OwnerCall{.key = "k"});
  std::vector<OwnerOutcome> finished(requests.size());
  ns.complete(calls, finished);
  CHECK(finished.back().error == ErrorCode::too_many_keys);
  ns.claim(std::span{requests}.first(limits::batch_max),
           std::span{outcomes}.first(limits::batch_max));
  CHECK(outcomes.front().answer == ClaimAnswer::granted);
  CHECK(outcomes[limits::batch_max - 1].answer == ClaimAnswer::granted);
}

TEST_CASE("claim_all: grants all, and the journal has them as one group",
          "[engine][claims][batch]") {
  Fixture f;
  Claims ns = f.ns();
  const auto keys = make_keys(40);
  const auto requests = requests_for(keys);
  std::vector<ClaimOutcome> outcomes(requests.size());
  REQUIRE(ns.claim_all(requests, outcomes));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    REQUIRE(outcomes[i].answer == ClaimAnswer::granted);
    REQUIRE(ns.complete({.key = keys[i], .epoch = outcomes[i].epoch}).answer == OwnerAnswer::ok);
  }
  std::size_t first_group = 0;  // behind the namespace
  f.journal.replay([&](Ticket ticket, const Mutation&) { first_group += ticket == 2 ? 1U : 0U; });
  CHECK(first_group == keys.size());
}

TEST_CASE("claim_all: one key in the way leaves everything as it was", "[engine][claims][batch]") {
  Fixture f;
  Claims ns = f.ns();
  const ClaimOutcome held = ns.claim({.key = "b", .owner = "other"});
  const ClaimRequest requests[] = {{.key = "a"}, {.key = "b"}, {.key = "c"}};
  ClaimOutcome outcomes[3];
  const std::size_t journalled = f.journal.size();
  CHECK_FALSE(ns.claim_all(requests, outcomes));
  CHECK(outcomes[0].answer == ClaimAnswer::granted);
  CHECK(outcomes[0].epoch == 0);
  CHECK(outcomes[1].answer == ClaimAnswer::in_flight);
  CHECK(outcomes[1].owner == "other");
  CHECK(outcomes[2].epoch == 0);
  CHECK(f.journal.size() == journalled);
  CHECK(ns.get("a")->state == ClaimState::absent);
  CHECK(f.engine->stats().claims_granted == 1);
  REQUIRE(ns.release({.key = "b", .epoch = held.epoch}).answer == OwnerAnswer::ok);
  CHECK(ns.claim_all(requests, outcomes));
  CHECK(outcomes[1].epoch > held.epoch);
}

TEST_CASE("claim_all: a bad request, a string or a mismatch stands in the way",
          "[engine][claims][batch]") {
  Fixture f;
  Claims ns = f.ns();
  const ClaimRequest requests[] = {{.key = "a"}, {.key = ""}};
  ClaimOutcome outcomes[2];
  CHECK_FALSE(ns.claim_all(requests, outcomes));
  CHECK(outcomes[1].error == ErrorCode::key_empty);
  CHECK(ns.get("a")->state == ClaimState::absent);
}

TEST_CASE("claim_all: a repeated key shares the grant of its first request",
          "[engine][claims][batch]") {
  Fixture f;
  Claims ns = f.ns();
  const ClaimRequest requests[] = {{.key = "a"}, {.key = "b"}, {.key = "a"}};
  ClaimOutcome outcomes[3];
  REQUIRE(ns.claim_all(requests, outcomes));
  CHECK(outcomes[2].folded_onto == 0U);
  CHECK(outcomes[2].epoch == outcomes[0].epoch);
}

TEST_CASE("claim_all: asked again with the same claim ids it is regranted",
          "[engine][claims][batch]") {
  Fixture f;
  Claims ns = f.ns();
  ClaimId id{};
  id.fill(7);
  const ClaimRequest requests[] = {{.key = "a", .claim_id = id}, {.key = "b", .claim_id = id}};
  ClaimOutcome first[2];
  ClaimOutcome again[2];
  REQUIRE(ns.claim_all(requests, first));
  REQUIRE(ns.claim_all(requests, again));
  CHECK(again[0].answer == ClaimAnswer::regranted);
  CHECK(again[0].epoch == first[0].epoch);
}

TEST_CASE("claim_all: leases that ended are all taken over", "[engine][claims][batch]") {
  Fixture f;
  Claims ns = f.ns();
  const ClaimRequest requests[] = {{.key = "a"}, {.key = "b"}};
  ClaimOutcome outcomes[2];
  REQUIRE(ns.claim_all(requests, outcomes));
  f.clock.advance(1000ms);
  REQUIRE(ns.claim_all(requests, outcomes));
  CHECK(outcomes[0].takeover);
  CHECK(outcomes[1].takeover);
  CHECK(outcomes[1].attempt == 2);
}
