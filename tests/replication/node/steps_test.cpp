// Steps in a group: what one service's owner has remembered, another that takes over goes on from.
#include "semel/patterns/steps.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "engine/replica/decision_scope.hpp"
#include "replication/node/group_calls.hpp"
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
  CHECK(late.remember("", "x").error().code == ErrorCode::bad_option);
  CHECK(late.recall("").error().code == ErrorCode::bad_option);
  const Error too_long = late.remember("b", std::string(limits::memos_bytes_max, 'x')).error();
  CHECK(too_long.code == ErrorCode::value_too_long);
  CHECK(too_long.detail.find(std::to_string(limits::memos_bytes_max)) != std::string::npos);
  REQUIRE(there.release({.key = "k", .epoch = old.epoch}).answer == OwnerAnswer::ok);
  CHECK(late.remember("a", "too late").error().code == ErrorCode::not_owner);

  // What another payload has left is nothing to this one.
  const ClaimOutcome fresh = there.claim({.key = "k", .fingerprint = payload(2)});
  REQUIRE(fresh.answer == ClaimAnswer::granted);
  Steps steps{there, "k", fresh.epoch};
  CHECK(*steps.recall("a") == std::nullopt);
  CHECK(late.recall("a").error().code == ErrorCode::not_owner);
  CHECK(late.complete("stale").answer != OwnerAnswer::ok);
  REQUIRE(steps.remember("b", "of the second"));
  CHECK(*Steps(here, "k", fresh.epoch).recall("b") == "of the second");
  // A refused end keeps the memos of the owner that there is.
  CHECK(late.complete("stale").answer != OwnerAnswer::ok);
  CHECK(*steps.recall("b") == "of the second");

  // A result that is longer than an entry may be is left out; the work is done, the memos end.
  const OwnerOutcome done = steps.complete(std::string(std::size_t{80} << 20, 'r'));
  CHECK(done.answer == OwnerAnswer::ok);
  CHECK(done.dropped == ErrorCode::value_too_long);
  CHECK(steps.recall("b").error().code == ErrorCode::not_owner);
  CHECK(late.remember("c", "after the end").error().code == ErrorCode::not_owner);
}

TEST_CASE("group steps: a group of an earlier level runs none, and its work can be completed",
          "[replication]") {
  const auto level =
      GENERATE(replication::feature_level_first, replication::feature_level_libraries);
  Group group{1, std::uint64_t{64} << 20, {}, level, true};
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
  CHECK(failed.load(std::memory_order_relaxed) == 0);  // mo: relaxed: joined
  Claims there = *services.engine(2).claims("orders", Policy{});
  for (std::uint64_t id = 1; id <= 3; ++id) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      CHECK(*Steps(there, "k", claim.epoch).recall(std::to_string(100 * id + i)) == "x");
    }
  }
}

TEST_CASE("group steps: a stale owner runs none, on any service, memo or none",
          "[replication][once-again-1]") {
  Services services{3};
  await_level(services);
  for (const bool has_memo : {false, true}) {
    const std::string key = has_memo ? "with" : "without";
    Claims leads = *services.engine(services.leader()).claims("orders", Policy{});
    const Epoch old = leads.claim({.key = key}).epoch;
    REQUIRE(*leads.forget(key));
    const Epoch fresh = leads.claim({.key = key}).epoch;
    if (has_memo) REQUIRE(Steps(leads, key, fresh).remember("charge", "1"));
    const auto runs_nothing = [&](Epoch epoch) {
      for (std::uint64_t id = 1; id <= 3; ++id) {
        Claims mine = *services.engine(id).claims("orders", Policy{});
        int ran = 0;
        const auto run = Steps(mine, key, epoch).run("charge", [&] { return ++ran; });
        CHECK(run.error().code == ErrorCode::not_owner);
        CHECK(ran == 0);
      }
    };
    runs_nothing(old);
    // Acknowledged by the leader: no follower answers from before it.
    REQUIRE(leads.complete({.key = key, .epoch = fresh}).answer == OwnerAnswer::ok);
    runs_nothing(fresh);
    runs_nothing(old);
    runs_nothing(0);
  }
}

TEST_CASE("group steps: the next work under a key runs its own, however the last one ended",
          "[replication][once-again-3]") {
  Services services{3};
  await_level(services);
  Policy brief;
  brief.result_ttl = brief.failure_ttl = Millis{1};
  using End = void (*)(Claims&, Bytes, Epoch);
  const End ends[] = {
      [](Claims& claims, Bytes key, Epoch epoch) {
        REQUIRE(claims.complete({.key = key, .epoch = epoch}).answer == OwnerAnswer::ok);
      },
      [](Claims& claims, Bytes key, Epoch epoch) {
        const OwnerCall call{.key = key, .epoch = epoch, .on_failure = Policy::OnFailure::keep};
        REQUIRE(claims.fail(call).answer == OwnerAnswer::ok);
      },
      [](Claims& claims, Bytes key, Epoch) { REQUIRE(*claims.resolve(key, Resolution::done)); },
      [](Claims& claims, Bytes key, Epoch) { REQUIRE(*claims.forget(key)); },
  };
  Claims here = *services.engine(services.follower()).claims("brief", brief);
  Claims there = *services.engine(services.leader()).claims("brief", brief);
  int number = 0;
  for (const End end : ends) {
    const std::string key = "work " + std::to_string(++number);
    const Epoch epoch = here.claim({.key = key}).epoch;
    REQUIRE(Steps(here, key, epoch).remember("charge", "first"));
    end(there, key, epoch);
    ClaimOutcome next;
    REQUIRE(Group::wait_for([&] {
      next = here.claim({.key = key});
      return next.answer == ClaimAnswer::granted;
    }));
    CHECK(*Steps(there, key, next.epoch).recall("charge") == std::nullopt);
  }
}

TEST_CASE("group steps: a doubt that is released goes on from its memos, on another service",
          "[replication][once-again-2]") {
  Services services{3};
  await_level(services);
  Claims here = *services.engine(services.follower()).claims("pay", Policy{});
  Claims there = *services.engine(services.leader()).claims("pay", Policy{});
  const Epoch epoch = here.claim({.key = "k"}).epoch;
  REQUIRE(Steps(here, "k", epoch).remember("charge", "first"));
  const OwnerCall doubt{.key = "k", .epoch = epoch, .on_failure = Policy::OnFailure::in_doubt};
  REQUIRE(here.fail(doubt).answer == OwnerAnswer::ok);
  CHECK(Steps(there, "k", epoch).recall("charge").error().code == ErrorCode::not_owner);
  REQUIRE(*there.resolve("k", Resolution::released));
  const ClaimOutcome next = there.claim({.key = "k"});
  REQUIRE(next.answer == ClaimAnswer::granted);
  CHECK(*Steps(here, "k", next.epoch).recall("charge") == "first");
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
