// Steps in a group: what one service's owner has remembered, another that takes over goes on from.
#include "semel/patterns/steps.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "engine/replica/decision_scope.hpp"
#include "replication/node/group_calls.hpp"
#include "semel/hashes.hpp"
#include "semel/patterns/once.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/replication/node/services.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

Fingerprint payload(std::uint8_t what) {
  Fingerprint made;
  made.algorithm = 1;
  made.digest[0] = what;
  return made;
}

/// A group has steps from the moment on that its leader has met all members.
void await_level(Services& services) {
  for (std::uint64_t id = 1; id <= 3; ++id) {
    REQUIRE(Group::wait_for([&] {
      return services.at(id).status().feature_level ==
             services.at(id).status().feature_level_newest;
    }));
  }
}

}  // namespace

TEST_CASE("group steps: another service goes on from each step, whoever leads", "[replication]") {
  Services services{3};
  await_level(services);
  for (int stop = 0; stop < 3; ++stop) {
    const std::string key = "order " + std::to_string(stop);
    const std::uint64_t first = 1 + static_cast<std::uint64_t>(stop);
    const std::uint64_t next = 1 + first % 3;
    Claims orders = *services.engine(first).claims("orders", Policy{});
    const ClaimOutcome claim = orders.claim({.key = key});
    REQUIRE(claim.answer == ClaimAnswer::granted);
    Steps steps{orders, key, claim.epoch};
    std::atomic<int> effects{0};  // of one thread at a time
    for (int step = 0; step < stop; ++step) {
      CHECK(*steps.run(std::to_string(step), [&] { return ++effects; }) == step + 1);
    }
    services.close(first);  // another one leads now, if this did

    Claims others = *services.engine(next).claims("orders", Policy{});
    Steps went_on{others, key, claim.epoch};
    for (int step = 0; step < 3; ++step) {
      CHECK(*went_on.run(std::to_string(step), [&] { return ++effects; }) == step + 1);
    }
    CHECK(effects.load(std::memory_order_relaxed) == 3);
    CHECK(went_on.complete("shipped").answer == OwnerAnswer::ok);
    services.open(first);
    for (std::uint64_t id = 1; id <= 3; ++id) {
      Claims everywhere = *services.engine(id).claims("orders", Policy{});
      CHECK(everywhere.claim({.key = key}).result == "shipped");
      CHECK(*services.engine(id).store().exists("steps/orders:" + key) == false);
    }
  }
}

TEST_CASE("group steps: an owner that was replaced remembers nothing, on any service",
          "[replication]") {
  Services services{3};
  Claims here = *services.engine(services.follower()).claims("orders", Policy{});
  Claims there = *services.engine(services.leader()).claims("orders", Policy{});
  const ClaimOutcome old = here.claim({.key = "k", .fingerprint = payload(1)});
  Steps late{here, "k", old.epoch};
  REQUIRE(late.remember("a", "of the first"));
  CHECK(late.remember(Bytes{"\0a", 2}, "x").error().code == ErrorCode::bad_option);
  CHECK(late.recall(Bytes{"\0a", 2}).error().code == ErrorCode::bad_option);
  REQUIRE(there.release({.key = "k", .epoch = old.epoch}).answer == OwnerAnswer::ok);
  CHECK(late.remember("a", "too late").error().code == ErrorCode::not_owner);

  // What another payload has left is nothing to this one, and ends with its first memo.
  const ClaimOutcome fresh = there.claim({.key = "k", .fingerprint = payload(2)});
  REQUIRE(fresh.answer == ClaimAnswer::granted);
  Steps steps{there, "k", fresh.epoch};
  CHECK(*steps.recall("a") == std::nullopt);
  CHECK(late.recall("a").error().code == ErrorCode::not_owner);
  CHECK(late.complete("stale").answer != OwnerAnswer::ok);
  REQUIRE(steps.remember("b", "of the second"));
  CHECK(*Steps(here, "k", fresh.epoch).recall("b") == "of the second");
  CHECK(*here.engine().hashes().hget("steps/orders:k", "a") == std::nullopt);
  const auto ends = here.engine().store().ttl("steps/orders:k");
  REQUIRE(ends.ok());
  CHECK(ends->has_ttl);

  // A refused end keeps the memos of the owner that there is.
  CHECK(late.complete("stale").answer != OwnerAnswer::ok);
  CHECK(*steps.recall("b") == "of the second");

  // A result that is longer than an entry may be is left out; the work is done, the memos end.
  const OwnerOutcome done = steps.complete(std::string(std::size_t{80} << 20, 'r'));
  CHECK(done.answer == OwnerAnswer::ok);
  CHECK(done.dropped == ErrorCode::value_too_long);
  CHECK(*here.engine().store().exists("steps/orders:k") == false);
  CHECK(late.remember("c", "after the end").error().code == ErrorCode::not_owner);
}

TEST_CASE("group steps: a group of an earlier level runs none, and its work can be completed",
          "[replication]") {
  Group group{1, std::uint64_t{64} << 20, {}, replication::feature_level_first, true};
  REQUIRE(group.wait_leader() == 1);
  REQUIRE(Group::wait_for([&] { return group.node(1).status().level != 0; }));
  replication::GroupCalls calls{group.node(1), Millis{20'000}};
  engine::set_call_log(group.node(1).engine(), &calls);
  REQUIRE(calls.start());
  {
    Claims orders = *group.node(1).engine().claims("orders", Policy{});
    const ClaimOutcome claim = orders.claim({.key = "k"});
    REQUIRE(claim.answer == ClaimAnswer::granted);
    Steps steps{orders, "k", claim.epoch};
    int effects = 0;
    CHECK(steps.run("charge", [&] { return ++effects; }).error().code == ErrorCode::refused);
    CHECK(effects == 0);
    CHECK(steps.remember("charge", "1").error().code == ErrorCode::refused);
    CHECK(steps.complete("by hand").answer == OwnerAnswer::ok);
    CHECK(orders.claim({.key = "k"}).result == "by hand");
  }
  group.node(1).stop();
  engine::set_call_log(group.node(1).engine(), nullptr);
  calls.stop();
}

TEST_CASE("group steps: memos of threads on all services are all there", "[replication]") {
  Services services{3};
  Claims orders = *services.engine(1).claims("orders", Policy{});
  const ClaimOutcome old = orders.claim({.key = "k", .fingerprint = payload(1)});
  REQUIRE(Steps(orders, "k", old.epoch).remember("of another payload", "x"));
  REQUIRE(orders.release({.key = "k", .epoch = old.epoch}).answer == OwnerAnswer::ok);
  const ClaimOutcome claim = orders.claim({.key = "k", .fingerprint = payload(2)});
  REQUIRE(claim.answer == ClaimAnswer::granted);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    threads.emplace_back([&, id] {
      Claims mine = *services.engine(id).claims("orders", Policy{});
      Steps steps{mine, "k", claim.epoch};
      for (int i = 0; i < 20; ++i) {
        // mo: relaxed: read after the threads have been joined
        if (!steps.remember(std::to_string(100 * id + static_cast<std::uint64_t>(i)), "x"))
          failed.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(failed.load(std::memory_order_relaxed) == 0);                // mo: relaxed: joined
  CHECK(*services.engine(2).hashes().hlen("steps/orders:k") == 61);  // and whose they are
}

TEST_CASE("group steps: work with steps runs each once while the leader ends", "[replication]") {
  Services services{3};
  std::atomic<int> charges{0};
  std::atomic<int> mails{0};
  await_level(services);
  const std::uint64_t ends = services.leader();
  std::vector<std::thread> threads;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (id == ends) continue;
    threads.emplace_back([&, id] {
      Claims orders = *services.engine(id).claims("once", Policy{});
      for (int i = 0; i < 15; ++i) {
        const auto done = once(orders, OnceCall{.key = std::to_string(i), .wait = Millis{20'000}},
                               [&](Work& work) -> Result<int> {
                                 // mo: relaxed, both: counters, read after the threads have been
                                 // joined
                                 SEMEL_TRY(charged, work.steps().run("charge", [&] {
                                   return charges.fetch_add(1, std::memory_order_relaxed);
                                 }));
                                 SEMEL_TRY(mailed, work.steps().run("mail", [&] {
                                   return mails.fetch_add(1, std::memory_order_relaxed);
                                 }));
                                 return charged + mailed;
                               });
        if (!done.has_value()) mails.fetch_add(1'000, std::memory_order_relaxed);  // mo: likewise
      }
    });
  }
  services.close(ends);
  for (std::thread& each : threads) each.join();
  CHECK(charges.load(std::memory_order_relaxed) == 15);  // mo: relaxed: joined
  CHECK(mails.load(std::memory_order_relaxed) == 15);    // mo: relaxed: joined
}

}  // namespace semel::tests
