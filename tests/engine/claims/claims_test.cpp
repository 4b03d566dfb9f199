// Claims through a whole engine: namespaces, keys, batches, sections, limits, what is counted.
// Words: ns = the claims of one namespace; folded = a repeated key inside one batch.
#include "semel/claims.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/api/engine_impl.hpp"
#include "semel/engine_host.hpp"
#include "semel/memory_journal.hpp"
#include "semel/store.hpp"

using namespace semel;
using namespace std::chrono_literals;

namespace {

Policy short_policy() {
  Policy policy;
  policy.lease = 1000ms;
  policy.result_ttl = 5000ms;
  return policy;
}

/// An engine on a manual clock with one namespace.
struct Fixture {
  ManualClock clock;
  MemoryJournal journal;
  std::unique_ptr<Engine> engine;

  explicit Fixture(Options options = {}) {
    options.clock = &clock;
    options.journal = &journal;
    auto opened = Engine::open(options);
    REQUIRE(opened);
    engine = *std::move(opened);
  }
  Claims ns(const Policy& policy = short_policy(), Bytes name = "ns") {
    auto made = engine->claims(name, policy);
    REQUIRE(made);
    return *made;
  }
};

ErrorCode declare(Fixture& f, const Policy& policy, Bytes name = "ns") {
  const auto made = f.engine->claims(name, policy);
  return made ? ErrorCode::ok : made.error().code;
}

}  // namespace

TEST_CASE("claims: work is granted once, replayed when done, granted again when forgotten",
          "[engine][claims]") {
  Fixture f;
  Claims ns = f.ns();
  const ClaimOutcome first = ns.claim({.key = "order-7", .owner = "a"});
  REQUIRE(first.answer == ClaimAnswer::granted);
  CHECK(first.version == first.epoch);
  CHECK(ns.claim({.key = "order-7"}).answer == ClaimAnswer::in_flight);
  const OwnerOutcome done = ns.complete({.key = "order-7", .epoch = first.epoch, .payload = "42"});
  REQUIRE(done.answer == OwnerAnswer::ok);
  CHECK(done.version > first.version);
  const ClaimOutcome repeat = ns.claim({.key = "order-7"});
  CHECK(repeat.answer == ClaimAnswer::replay);
  CHECK(repeat.result == "42");
  CHECK(repeat.version == done.version);
  CHECK(*ns.forget("order-7"));
  CHECK_FALSE(*ns.forget("order-7"));
  const ClaimOutcome again = ns.claim({.key = "order-7"});
  CHECK(again.answer == ClaimAnswer::granted);
  CHECK(again.epoch > first.epoch);
}

TEST_CASE("claims: epochs of one key grow, also if the record is deleted in between",
          "[engine][claims]") {
  Fixture f;
  Claims ns = f.ns();
  Epoch last = 0;
  const auto expect_larger = [&] {
    const ClaimOutcome granted = ns.claim({.key = "k"});
    REQUIRE(granted.answer == ClaimAnswer::granted);
    CHECK(granted.epoch > last);
    last = granted.epoch;
  };
  for (int round = 0; round < 50; ++round) {
    expect_larger();
    REQUIRE(ns.release({.key = "k", .epoch = last}).answer == OwnerAnswer::ok);
    std::thread{[&] {  // another thread draws its versions from another block
      expect_larger();
      static_cast<void>(ns.release({.key = "k", .epoch = last}));
    }}
        .join();
    expect_larger();
    f.clock.advance(1000ms);
    expect_larger();  // takeover
    REQUIRE(*ns.forget("k"));
  }
}

TEST_CASE("claims: get returns the record, absent if there is none", "[engine][claims]") {
  Fixture f;
  Claims ns = f.ns();
  CHECK(ns.get("k")->state == ClaimState::absent);
  const Epoch epoch = ns.claim({.key = "k", .owner = "me"}).epoch;
  f.clock.advance(400ms);
  const ClaimView view = *ns.get("k");
  CHECK(view.state == ClaimState::held);
  CHECK(view.epoch == epoch);
  CHECK(view.owner == "me");
  CHECK(view.lease_remaining == 600ms);
}

TEST_CASE("claims: a string under the key is wrong_kind for every call", "[engine][claims]") {
  Fixture f;
  Claims ns = f.ns();
  REQUIRE(f.engine->store().set("ns:k", "a string").ok());
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::busy);
  CHECK(ns.claim({.key = "k"}).error == ErrorCode::wrong_kind);
  CHECK(ns.complete({.key = "k", .epoch = 1}).error == ErrorCode::wrong_kind);
  CHECK(ns.get("k").error().code == ErrorCode::wrong_kind);
  CHECK(ns.forget("k").error().code == ErrorCode::wrong_kind);
  CHECK(ns.resolve("k", Resolution::done).error().code == ErrorCode::wrong_kind);
  CHECK(**f.engine->store().get("ns:k") == "a string");
  REQUIRE(ns.claim({.key = "c"}).answer == ClaimAnswer::granted);
  CHECK(f.engine->store().get("ns:c").error().code == ErrorCode::wrong_type);
}

TEST_CASE("claims: keys and payloads are taken up to the limit and refused beyond",
          "[engine][claims][limits]") {
  Fixture f{{.key_bytes_max = 300, .value_bytes_max = 1000}};
  Claims ns = f.ns();
  const std::string longest(300 - 3, 'k');  // less the prefix "ns:"
  const std::string too_long = longest + "k";
  CHECK(ns.claim({.key = ""}).error == ErrorCode::key_empty);
  CHECK(ns.complete({.key = ""}).error == ErrorCode::key_empty);
  CHECK(ns.get("").error().code == ErrorCode::key_empty);
  CHECK(ns.forget("").error().code == ErrorCode::key_empty);
  CHECK(ns.claim({.key = too_long}).answer == ClaimAnswer::busy);
  CHECK(ns.claim({.key = too_long}).error == ErrorCode::key_too_long);
  CHECK(ns.release({.key = too_long}).error == ErrorCode::key_too_long);
  CHECK(ns.claim({.key = longest, .lease = 0ms}).error == ErrorCode::bad_option);

  const std::string owner(limits::owner_label_max, 'o');
  const ClaimOutcome granted =
      ns.claim({.key = longest, .fingerprint = {.algorithm = 1, .digest = {}}, .owner = owner});
  REQUIRE(granted.answer == ClaimAnswer::granted);
  const std::string payload(1000, 'p');
  const OwnerOutcome refused =
      ns.complete({.key = longest, .epoch = granted.epoch, .payload = payload + "p"});
  CHECK(refused.error == ErrorCode::value_too_long);
  CHECK(refused.answer != OwnerAnswer::ok);
  CHECK(ns.complete({.key = longest, .epoch = granted.epoch, .payload = payload}).answer ==
        OwnerAnswer::ok);
  CHECK(ns.claim({.key = longest}).result == payload);
  CHECK(ns.resolve("k", Resolution::done, payload + "p").error().code == ErrorCode::value_too_long);
}

TEST_CASE("claims: a namespace has a name of 1..64 bytes of [A-Za-z0-9_.-]",
          "[engine][claims][limits]") {
  Fixture f;
  const std::string longest(limits::namespace_name_max, 'n');
  CHECK(declare(f, {}, longest) == ErrorCode::ok);
  CHECK(declare(f, {}, longest + "n") == ErrorCode::bad_namespace);
  CHECK(declare(f, {}, "") == ErrorCode::bad_namespace);
  CHECK(declare(f, {}, "A-Za.z_09") == ErrorCode::ok);
  CHECK(declare(f, {}, "a:b") == ErrorCode::bad_namespace);
  CHECK(declare(f, {}, "a b") == ErrorCode::bad_namespace);
  CHECK(f.engine->claims("unknown").error().code == ErrorCode::bad_namespace);
  CHECK(f.engine->claims(longest)->name() == longest);
}

TEST_CASE("claims: each field of a policy is checked at both ends and named in the error",
          "[engine][claims][limits]") {
  Fixture f;
  const auto refuse = [&](auto change, std::string_view field) {
    Policy policy;
    change(policy);
    const auto made = f.engine->claims("ns", policy);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::bad_option);
    CHECK_THAT(made.error().detail, Catch::Contains(std::string{field}));
  };
  refuse([](Policy& p) { p.lease = 0ms; }, "lease = 0, allowed 1..");
  refuse([](Policy& p) { p.lease = limits::ttl_max + 1ms; }, "lease");
  refuse([](Policy& p) { p.result_ttl = 0ms; }, "result_ttl");
  refuse([](Policy& p) { p.unique_ttl = -1ms; }, "unique_ttl");
  refuse([](Policy& p) { p.failure_ttl = 0ms; }, "failure_ttl");
  refuse([](Policy& p) { p.attempts_ttl = 0ms; }, "attempts_ttl");
  refuse([](Policy& p) { p.window = limits::ttl_max + 1ms; }, "window");
  refuse([](Policy& p) { p.retry_after_max = 0ms; }, "retry_after_max");
  refuse([](Policy& p) { p.db = limits::db_count; }, "db = 16, allowed 0..15");
  Policy edge;
  edge.lease = edge.result_ttl = edge.unique_ttl = edge.failure_ttl = limits::ttl_max;
  edge.attempts_ttl = edge.window = limits::ttl_max;
  edge.db = limits::db_count - 1;
  CHECK(declare(f, edge) == ErrorCode::ok);
  edge.lease = edge.result_ttl = edge.failure_ttl = edge.attempts_ttl = 1ms;
  edge.unique_ttl = edge.window = 0ms;
  CHECK(declare(f, edge, "low") == ErrorCode::ok);
}

TEST_CASE("claims: a namespace that is changed has the policy in later calls", "[engine][claims]") {
  Fixture f;
  Claims ns = f.ns();
  const ClaimOutcome first = ns.claim({.key = "k"});
  f.clock.advance(1000ms);
  Policy doubtful = short_policy();
  doubtful.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  REQUIRE(f.engine->change_namespace("ns", doubtful));
  CHECK(ns.policy().on_lease_end == Policy::OnLeaseEnd::in_doubt);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::in_doubt);
  CHECK(ns.get("k")->state == ClaimState::in_doubt);
  CHECK(*ns.resolve("k", Resolution::released));
  CHECK_FALSE(*ns.resolve("k", Resolution::released));
  CHECK(ns.claim({.key = "k"}).epoch > first.epoch);
}

TEST_CASE("claims: namespaces and databases keep their records apart", "[engine][claims]") {
  Fixture f;
  Policy other_db = short_policy();
  other_db.db = 3;
  Claims a = f.ns(short_policy(), "a");
  Claims b = f.ns(other_db, "b");
  CHECK(a.claim({.key = "k"}).answer == ClaimAnswer::granted);
  CHECK(b.claim({.key = "k"}).answer == ClaimAnswer::granted);
  CHECK(f.engine->size(0) == 1);
  CHECK(f.engine->size(3) == 1);
  auto& names = semel::engine::impl_of(*f.engine).namespaces();
  REQUIRE(static_cast<bool>(names.find_by_key("b:k")));
  CHECK(names.find_by_key("b:k:x")->name() == "b");
  CHECK_FALSE(static_cast<bool>(names.find_by_key("c:k")));
  CHECK_FALSE(static_cast<bool>(names.find_by_key("b")));
}

TEST_CASE("claims: a record under doubt is never swept, an abandoned one under retry is",
          "[engine][claims]") {
  Fixture f;
  Policy doubtful = short_policy();
  doubtful.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  Claims doubt = f.ns(doubtful, "doubt");
  Policy retrying = short_policy();
  retrying.attempts_ttl = 2000ms;
  Claims retry = f.ns(retrying, "retry");
  REQUIRE(doubt.claim({.key = "k"}).answer == ClaimAnswer::granted);
  REQUIRE(retry.claim({.key = "k"}).answer == ClaimAnswer::granted);
  f.clock.advance(2999ms);
  f.engine->advance();
  CHECK(f.engine->size(0) == 2);
  f.clock.advance(1ms);
  f.engine->advance();
  CHECK(f.engine->size(0) == 1);
  f.clock.advance(24h);
  f.engine->advance();
  CHECK(doubt.claim({.key = "k"}).answer == ClaimAnswer::in_doubt);
}

TEST_CASE("claims: the wheel turns an ended result into its digest, and the key stays taken",
          "[engine][claims]") {
  Fixture f;
  Policy policy = short_policy();
  policy.unique_ttl = 60'000ms;
  Claims ns = f.ns(policy);
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  const std::string result(100'000, 'r');
  REQUIRE(ns.complete({.key = "k", .epoch = epoch, .payload = result}).answer == OwnerAnswer::ok);
  f.engine->host().quiesce();
  const std::uint64_t before = f.engine->stats().bytes_records;
  f.clock.advance(4999ms);
  f.engine->advance();
  CHECK(ns.claim({.key = "k"}).result == result);
  f.clock.advance(1ms);
  CHECK(ns.claim({.key = "k"}).result_expired);  // dead before the wheel comes by
  f.engine->advance();
  f.engine->host().quiesce();
  CHECK(f.engine->stats().bytes_records < before - 90'000);
  CHECK(ns.claim({.key = "k"}).result_expired);
  CHECK(ns.complete({.key = "k", .epoch = epoch, .payload = result}).answer == OwnerAnswer::ok);
  CHECK(ns.complete({.key = "k", .epoch = epoch, .payload = "x"}).answer == OwnerAnswer::conflict);
  f.clock.advance(54'999ms);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::replay);
  f.clock.advance(1ms);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
}

TEST_CASE("claims: closing a session frees its claims at once, and no others", "[engine][claims]") {
  Fixture f;
  Claims ns = f.ns();
  const SessionId session = f.engine->open_session();
  const ClaimOutcome bound = ns.claim({.key = "bound", .session = session});
  REQUIRE(ns.claim({.key = "own"}).answer == ClaimAnswer::granted);
  REQUIRE(ns.claim({.key = "remote", .session = 0}).answer == ClaimAnswer::granted);
  CHECK(ns.claim({.key = "bound"}).answer == ClaimAnswer::in_flight);
  f.engine->close_session(session);
  CHECK(ns.get("bound")->lease_remaining == 0ms);
  CHECK(ns.renew({.key = "bound", .epoch = bound.epoch}).answer == OwnerAnswer::refused);
  const ClaimOutcome taken = ns.claim({.key = "bound"});
  CHECK(taken.answer == ClaimAnswer::granted);
  CHECK(taken.takeover);
  CHECK(ns.claim({.key = "own"}).answer == ClaimAnswer::in_flight);
  CHECK(ns.claim({.key = "remote"}).answer == ClaimAnswer::in_flight);
}

TEST_CASE("case I: restored records give the same answers", "[engine][claims]") {
  Fixture f;
  Policy policy = short_policy();
  Claims ns = f.ns(policy);
  const Epoch done = ns.claim({.key = "done"}).epoch;
  REQUIRE(ns.complete({.key = "done", .epoch = done, .payload = "42"}).answer == OwnerAnswer::ok);
  const ClaimOutcome remote = ns.claim({.key = "remote", .owner = "far", .session = 0});
  REQUIRE(ns.claim({.key = "local"}).answer == ClaimAnswer::granted);

  auto opened = Engine::open({.clock = &f.clock});
  REQUIRE(opened);
  Engine& second = **opened;
  Claims again = *second.claims("ns", policy);
  f.journal.replay(
      [&](Ticket, const Mutation& mutation) { REQUIRE(second.host().restore(mutation)); });
  CHECK(again.claim({.key = "done"}).result == "42");
  const ClaimOutcome held = again.claim({.key = "remote"});
  CHECK(held.answer == ClaimAnswer::in_flight);
  CHECK(held.owner == "far");
  const ClaimOutcome taken = again.claim({.key = "local"});  // its owner died with the engine
  CHECK(taken.answer == ClaimAnswer::granted);
  CHECK(taken.takeover);
  CHECK(taken.epoch > remote.epoch);
  CHECK(again.complete({.key = "remote", .epoch = remote.epoch}).answer == OwnerAnswer::ok);
}

TEST_CASE("case H: a full engine answers busy, or unprotected where the namespace fails open",
          "[engine][claims][limits]") {
  Fixture f{{.memory_bytes = limits::memory_bytes_min, .shard_count = 1}};
  Policy open = short_policy();
  open.fail_open = true;
  Claims ns = f.ns();
  Claims failing_open = f.ns(open, "open");
  const ClaimOutcome first = ns.claim({.key = "first"});
  std::string fill(4000, 'f');
  ClaimOutcome last;
  std::size_t granted = 0;
  for (int i = 0; i < 200'000; ++i) {
    fill.replace(0, 8, std::to_string(10'000'000 + i));
    last = ns.claim({.key = fill});
    if (last.answer != ClaimAnswer::granted) break;
    ++granted;
  }
  CHECK(granted > 100);
  CHECK(last.answer == ClaimAnswer::busy);
  CHECK(last.error == ErrorCode::memory_full);
  CHECK(last.epoch == 0);
  const ClaimOutcome unprotected = failing_open.claim({.key = fill});
  CHECK(unprotected.answer == ClaimAnswer::unprotected);
  CHECK(unprotected.error == ErrorCode::ok);
  CHECK(unprotected.epoch == 0);
  CHECK(ns.claim({.key = "first"}).answer == ClaimAnswer::in_flight);  // no live one is forgotten
  CHECK(ns.complete({.key = "first", .epoch = first.epoch}).answer == OwnerAnswer::ok);
  CHECK(f.engine->stats().refused >= 2);
}

TEST_CASE("claims: a journal that takes no writes refuses new work before it is visible",
          "[engine][claims]") {
  Fixture f;
  Claims ns = f.ns();
  const ClaimOutcome granted = ns.claim({.key = "k"});
  f.journal.set_accepts_writes(false);
  const ClaimOutcome refused = ns.claim({.key = "other"});
  CHECK(refused.answer == ClaimAnswer::busy);
  CHECK(refused.error == ErrorCode::refused);
  const OwnerOutcome complete = ns.complete({.key = "k", .epoch = granted.epoch});
  CHECK(complete.answer == OwnerAnswer::refused);
  CHECK(complete.error == ErrorCode::refused);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::in_flight);  // answers go on
  f.journal.set_accepts_writes(true);
  CHECK(ns.get("other")->state == ClaimState::absent);
  CHECK(ns.complete({.key = "k", .epoch = granted.epoch}).answer == OwnerAnswer::ok);
}

TEST_CASE("claims: too_old follows the wall clock of the call", "[engine][claims]") {
  Fixture f;
  Policy policy = short_policy();
  policy.window = 60'000ms;
  Claims ns = f.ns(policy);
  const std::int64_t now = f.clock.unix_ms();
  const ClaimOutcome old = ns.claim({.key = "k", .first_sent_unix_ms = now - 60'000});
  CHECK(old.answer == ClaimAnswer::too_old);
  CHECK(old.window_start_unix_ms == now - 60'000);
  CHECK(ns.claim({.key = "k", .first_sent_unix_ms = now - 59'999}).answer == ClaimAnswer::granted);
}

TEST_CASE("claims: what happened is counted", "[engine][claims][stats]") {
  Fixture f;
  Claims ns = f.ns();
  const Epoch stale = ns.claim({.key = "k"}).epoch;
  static_cast<void>(ns.claim({.key = "k"}));  // duplicate
  f.clock.advance(1000ms);
  const Epoch newer = ns.claim({.key = "k"}).epoch;
  static_cast<void>(ns.complete({.key = "k", .epoch = stale}));
  static_cast<void>(ns.complete({.key = "k", .epoch = newer}));
  static_cast<void>(ns.claim({.key = "k"}));  // duplicate
  const Stats stats = f.engine->stats();
  CHECK(stats.claims_granted == 2);
  CHECK(stats.claims_duplicate == 2);
  CHECK(stats.takeovers == 1);
  CHECK(stats.stale_owners == 1);
}

TEST_CASE("claims: of many threads that race for an absent key exactly one is granted",
          "[engine][claims][race]") {
  Fixture f;
  Claims ns = f.ns();
  constexpr int thread_count = 4;
  constexpr int rounds = 300;
  std::vector<std::atomic<int>> granted(rounds);
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&] {
      ready.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a start line
      while (ready.load(std::memory_order_relaxed) < thread_count) {
      }
      for (int round = 0; round < rounds; ++round) {
        const std::string key = std::to_string(round);
        if (ns.claim({.key = key}).answer == ClaimAnswer::granted) {
          // mo: relaxed: read after the threads were joined
          granted[static_cast<std::size_t>(round)].fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int wrong = 0;
  for (const auto& count : granted) {
    wrong += count.load(std::memory_order_relaxed) != 1 ? 1 : 0;  // mo: relaxed: after join
  }
  CHECK(wrong == 0);
}

TEST_CASE("claims: names, keys and results of every length are answered alike",
          "[engine][claims]") {
  Fixture f;
  const std::string text(600, 'x');
  for (const std::size_t name : {1U, 14U, 15U, 16U, 17U, 31U, 32U, 47U, 48U, 64U}) {
    Claims ns = f.ns(short_policy(), Bytes{text}.substr(0, name));
    for (const std::size_t key : {1U, 7U, 8U, 15U, 16U, 17U, 40U, 41U, 190U, 254U - 64U, 300U}) {
      for (const std::size_t result : {0U, 1U, 3U, 4U, 7U, 8U, 15U, 16U, 17U, 300U}) {
        CAPTURE(name, key, result);
        const ClaimRequest request{.key = Bytes{text}.substr(0, key)};
        const ClaimOutcome first = ns.claim(request);
        REQUIRE(first.answer == ClaimAnswer::granted);
        f.clock.advance(400ms);

        const ClaimOutcome busy = ns.claim(request);
        REQUIRE(busy.answer == ClaimAnswer::in_flight);
        REQUIRE(busy.error == ErrorCode::ok);
        REQUIRE(busy.attempt == 1);
        REQUIRE(busy.remaining == 600ms);
        REQUIRE(busy.retry_after == 600ms);
        REQUIRE(busy.version == first.version);

        const OwnerOutcome done = ns.complete(
            {.key = request.key, .epoch = first.epoch, .payload = Bytes{text}.substr(0, result)});
        REQUIRE(done.answer == OwnerAnswer::ok);
        const ClaimOutcome again = ns.claim(request);
        REQUIRE(again.answer == ClaimAnswer::replay);
        REQUIRE(again.error == ErrorCode::ok);
        REQUIRE(again.attempt == 1);
        REQUIRE(again.result == Bytes{text}.substr(0, result));
        REQUIRE(again.owner.empty());
        REQUIRE(again.version == done.version);
        REQUIRE(ns.forget(request.key).value());
      }
    }
  }
}

TEST_CASE("claims: a duplicate is answered by the lease, the result's end and the policy of now",
          "[engine][claims]") {
  Fixture f;
  Policy policy = short_policy();
  policy.retry_after_max = 50ms;
  Claims ns = f.ns(policy);
  const ClaimOutcome first = ns.claim({.key = "k"});
  REQUIRE(first.answer == ClaimAnswer::granted);
  CHECK(ns.claim({.key = "k"}).retry_after == 50ms);
  policy.retry_after_max = 70ms;
  REQUIRE(f.engine->change_namespace("ns", policy));
  CHECK(ns.claim({.key = "k"}).retry_after == 70ms);

  f.clock.advance(999ms);
  CHECK(ns.claim({.key = "k"}).remaining == 1ms);
  f.clock.advance(1ms);
  const ClaimOutcome next = ns.claim({.key = "k"});
  REQUIRE(next.answer == ClaimAnswer::granted);
  CHECK(next.takeover);
  CHECK(next.attempt == 2);
  CHECK(ns.claim({.key = "k"}).attempt == 2);

  REQUIRE(ns.complete({.key = "k", .epoch = next.epoch, .payload = "paid"}).answer ==
          OwnerAnswer::ok);
  f.clock.advance(4'999ms);
  CHECK(ns.claim({.key = "k"}).result == "paid");
  CHECK(ns.claim({.key = "k"}).attempt == 2);
  f.clock.advance(1ms);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);

  REQUIRE(f.engine->drop_namespace("ns", DropRule::all));
  CHECK(ns.claim({.key = "k"}).error == ErrorCode::namespace_dropped);
}
