// Waiting for a claim: blocking, by callback, as a coroutine.
// Words: waiter = a claim_or_wait that met a held key; promoted = a waiter that got the claim;
//        owner = its holder now. Real threads only under [race].
#include <algorithm>
#include <atomic>
#include <coroutine>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/claims.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"

using namespace semel;
using namespace std::chrono_literals;

namespace {

struct Fixture {
  ManualClock clock;
  std::unique_ptr<Engine> engine;

  Fixture() {
    auto opened = Engine::open({.clock = &clock});
    REQUIRE(opened);
    engine = *std::move(opened);
  }
  Claims ns(const Policy& given = {}) {
    Policy policy = given;
    policy.lease = 1000ms;
    auto made = engine->claims("ns", policy);
    REQUIRE(made);
    return *made;
  }
  Timestamp in(Millis time) const { return clock.now() + time; }
  void pass(Millis time) {
    clock.advance(time);
    engine->advance();
  }
};

/// Waiters by callback, with the answer of each.
struct Waiters {
  explicit Waiters(Claims claims) : ns(claims) {}
  std::size_t add(const ClaimRequest& request, Timestamp deadline = no_end) {
    const std::size_t at = answers.size();
    answers.emplace_back();
    ns.claim_or_wait(request, deadline, [this, at](ClaimOutcome&& outcome) {
      answers[at].push_back(std::move(outcome));
      order.push_back(at);
    });
    return at;
  }
  [[nodiscard]] bool waits(std::size_t at) const { return answers[at].empty(); }
  [[nodiscard]] const ClaimOutcome& outcome_of(std::size_t at) const {
    REQUIRE(answers[at].size() == 1);  // exactly one answer
    return answers[at].front();
  }
  [[nodiscard]] std::size_t count_of(ClaimAnswer answer) const {
    return static_cast<std::size_t>(std::count_if(answers.begin(), answers.end(), [&](auto& one) {
      return one.size() == 1 && one.front().answer == answer;
    }));
  }

  Claims ns;
  std::vector<std::vector<ClaimOutcome>> answers;
  std::vector<std::size_t> order;
};

/// A coroutine that starts at once and cleans up after itself.
struct Task {
  struct promise_type {
    Task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

}  // namespace

TEST_CASE("waiting: a free or finished key is answered at once", "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  Waiters waiters{ns};
  const ClaimOutcome granted = ns.claim_or_wait({.key = "k"}, no_end);
  CHECK(granted.answer == ClaimAnswer::granted);
  static_cast<void>(ns.complete({.key = "k", .epoch = granted.epoch, .payload = "42"}));
  CHECK(ns.claim_or_wait({.key = "k"}, no_end).result == "42");
  CHECK(waiters.outcome_of(waiters.add({.key = "k"})).answer == ClaimAnswer::replay);
  CHECK(waiters.outcome_of(waiters.add({.key = ""})).error == ErrorCode::key_empty);
  CHECK(f.engine->stats().waiters == 0);
}

TEST_CASE("waiting: all waiters of a key get the one completion, in order of arrival",
          "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  Waiters waiters{ns};
  for (int i = 0; i < 100; ++i) waiters.add({.key = "k"});
  const std::size_t elsewhere = waiters.add({.key = "free"});
  CHECK(waiters.outcome_of(elsewhere).answer == ClaimAnswer::granted);
  CHECK(f.engine->stats().waiters == 100);
  REQUIRE(ns.complete({.key = "k", .epoch = epoch, .payload = "42"}).answer == OwnerAnswer::ok);
  CHECK(f.engine->stats().waiters == 0);
  for (std::size_t i = 0; i < 100; ++i) {
    REQUIRE(waiters.outcome_of(i).answer == ClaimAnswer::replay);
    REQUIRE(waiters.outcome_of(i).result == "42");
    REQUIRE(waiters.order[i + 1] == i);
  }
}

TEST_CASE("waiting: a cancelled waiter gets no answer, and the next one has its place",
          "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  const auto held = std::make_shared<int>(0);
  int cancelled = 0;
  const WaitTicket first = ns.claim_or_wait({.key = "k"}, f.in(500ms),
                                            [&cancelled, held](ClaimOutcome&&) { ++cancelled; });
  Waiters waiters{ns};
  const std::size_t second = waiters.add({.key = "k"});
  REQUIRE(first != 0);
  CHECK_FALSE(ns.cancel_wait("k", first + 1000));
  CHECK_FALSE(ns.cancel_wait("other", first));
  CHECK(ns.cancel_wait("k", first));
  CHECK(held.use_count() == 1);  // and what its callback held is let go
  CHECK_FALSE(ns.cancel_wait("k", first));
  CHECK(f.engine->stats().waiters == 1);
  f.pass(600ms);  // its deadline has no effect any more
  CHECK(waiters.waits(second));
  REQUIRE(ns.release({.key = "k", .epoch = epoch}).answer == OwnerAnswer::ok);
  CHECK(waiters.outcome_of(second).answer == ClaimAnswer::granted);
  CHECK(cancelled == 0);

  SECTION("the only one leaves an empty line, which can be entered again") {
    const WaitTicket only = ns.claim_or_wait({.key = "k"}, no_end, [](ClaimOutcome&&) {});
    CHECK(ns.cancel_wait("k", only));
    CHECK(f.engine->stats().waiters == 0);
    const std::size_t again = waiters.add({.key = "k"});
    f.pass(1000ms);
    CHECK(waiters.outcome_of(again).answer == ClaimAnswer::granted);
  }
  SECTION("a waiter that was answered at once is in no line") {
    CHECK(ns.claim_or_wait({.key = "free"}, no_end, [](ClaimOutcome&&) {}) == 0);
  }
}

TEST_CASE("waiting: waits that are cancelled while owners come and go lose no claim",
          "[engine][waiting][race]") {
  Fixture f;
  Claims ns = f.ns();
  constexpr int rounds = 2'000;
  const Epoch first = ns.claim({.key = "k"}).epoch;
  std::atomic<bool> over{false};
  // mo: seq_cst throughout: a test, where speed is nothing.
  const auto give_back = [&](Epoch epoch) {
    static_cast<void>(ns.release({.key = "k", .epoch = epoch}));
  };
  std::thread leaver{[&] {
    for (int i = 0; i < rounds; ++i) {
      const WaitTicket ticket = ns.claim_or_wait({.key = "k"}, no_end, [&](ClaimOutcome&& outcome) {
        if (outcome.answer == ClaimAnswer::granted) give_back(outcome.epoch);
      });
      if (ticket != 0) ns.cancel_wait("k", ticket);
    }
    over.store(true, std::memory_order_seq_cst);  // mo: seq_cst: see above
  }};
  give_back(first);
  while (!over.load(std::memory_order_seq_cst)) {  // mo: seq_cst: see above
    const ClaimOutcome outcome = ns.claim({.key = "k"});
    if (outcome.answer == ClaimAnswer::granted) give_back(outcome.epoch);
  }
  leaver.join();
  CHECK(f.engine->stats().waiters == 0);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
}

TEST_CASE("waiting: all waiters get a kept failure", "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  Waiters waiters{ns};
  waiters.add({.key = "k"});
  waiters.add({.key = "k"});
  static_cast<void>(ns.fail(
      {.key = "k", .epoch = epoch, .payload = "boom", .on_failure = Policy::OnFailure::keep}));
  CHECK(waiters.outcome_of(0).answer == ClaimAnswer::kept_failure);
  CHECK(waiters.outcome_of(1).result == "boom");
}

TEST_CASE("waiting: a waiter with another payload gets mismatch, not the result",
          "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  const Fingerprint one{.algorithm = 1, .digest = {1}};
  const Fingerprint two{.algorithm = 1, .digest = {2}};
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  Waiters waiters{ns};
  waiters.add({.key = "k", .fingerprint = one});
  waiters.add({.key = "k", .fingerprint = two});
  static_cast<void>(ns.release({.key = "k", .epoch = epoch}));
  REQUIRE(waiters.outcome_of(0).answer == ClaimAnswer::granted);
  CHECK(waiters.outcome_of(1).answer == ClaimAnswer::mismatch);
}

TEST_CASE("waiting: exactly one waiter, the first, is promoted however the owner goes",
          "[engine][waiting]") {
  Fixture f;
  Policy policy;
  SECTION("it releases, fails, is forgotten, or resolved as released") {
    Claims ns = f.ns(policy);
    for (int how = 0; how < 4; ++how) {
      const std::string key = std::to_string(how);
      const Epoch epoch = ns.claim({.key = key}).epoch;
      Waiters waiters{ns};
      for (int i = 0; i < 10; ++i) waiters.add({.key = key});
      if (how == 0) static_cast<void>(ns.release({.key = key, .epoch = epoch}));
      if (how == 1) static_cast<void>(ns.fail({.key = key, .epoch = epoch}));
      if (how == 2) static_cast<void>(ns.forget(key));
      if (how == 3) static_cast<void>(ns.resolve(key, Resolution::released));
      CHECK(waiters.outcome_of(0).answer == ClaimAnswer::granted);
      CHECK(waiters.outcome_of(0).epoch > epoch);
      CHECK(waiters.count_of(ClaimAnswer::granted) == 1);
      CHECK(waiters.order.size() == 1);
      static_cast<void>(ns.complete({.key = key, .epoch = waiters.outcome_of(0).epoch}));
      CHECK(waiters.count_of(ClaimAnswer::replay) == 9);
    }
  }
  SECTION("its failure is released with the attempts kept") {
    policy.attempts_max = 5;
    Claims ns = f.ns(policy);
    const Epoch epoch = ns.claim({.key = "k"}).epoch;
    Waiters waiters{ns};
    waiters.add({.key = "k"});
    waiters.add({.key = "k"});
    static_cast<void>(ns.fail({.key = "k", .epoch = epoch}));
    CHECK(waiters.outcome_of(0).attempt == 2);
    CHECK(waiters.waits(1));
    static_cast<void>(ns.forget("k"));
  }
  SECTION("its lease ends") {
    Claims ns = f.ns(policy);
    REQUIRE(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
    Waiters waiters{ns};
    waiters.add({.key = "k"});
    waiters.add({.key = "k"});
    f.pass(999ms);
    CHECK(waiters.order.empty());
    f.pass(1ms);
    CHECK(waiters.outcome_of(0).answer == ClaimAnswer::granted);
    CHECK(waiters.outcome_of(0).takeover);
    CHECK(waiters.waits(1));
    f.pass(999ms);
    CHECK(waiters.waits(1));
    f.pass(1ms);
    CHECK(waiters.outcome_of(1).takeover);
  }
  SECTION("its session is closed") {
    Claims ns = f.ns(policy);
    const SessionId session = f.engine->open_session();
    const SessionId other = f.engine->open_session();
    REQUIRE(ns.claim({.key = "k", .session = session}).answer == ClaimAnswer::granted);
    Waiters waiters{ns};
    waiters.add({.key = "k"});
    waiters.add({.key = "k"});
    f.engine->close_session(other);
    CHECK(waiters.order.empty());
    f.engine->close_session(session);
    CHECK(waiters.outcome_of(0).takeover);
    CHECK(waiters.waits(1));
    static_cast<void>(ns.forget("k"));
  }
}

TEST_CASE("waiting: a renewed lease is waited for to its new end", "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  Waiters waiters{ns};
  waiters.add({.key = "k"});
  f.pass(900ms);
  REQUIRE(ns.renew({.key = "k", .epoch = epoch}).answer == OwnerAnswer::ok);
  f.pass(999ms);
  CHECK(waiters.waits(0));
  f.pass(1ms);
  CHECK(waiters.outcome_of(0).answer == ClaimAnswer::granted);
}

TEST_CASE("waiting: a waiter under doubt gets in_doubt when the lease ends", "[engine][waiting]") {
  Fixture f;
  Policy policy;
  policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  Claims ns = f.ns(policy);
  REQUIRE(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
  Waiters waiters{ns};
  waiters.add({.key = "k"});
  waiters.add({.key = "k"});
  f.pass(1000ms);
  CHECK(waiters.count_of(ClaimAnswer::in_doubt) == 2);
}

TEST_CASE("waiting: a waiter with the owner's claim_id is regranted", "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  ClaimId id{};
  id.fill(4);
  const Epoch epoch = ns.claim({.key = "k", .claim_id = id}).epoch;
  CHECK(ns.claim_or_wait({.key = "k", .claim_id = id}, no_end).epoch == epoch);
}

TEST_CASE("waiting: at its deadline a waiter gets in_flight, timed_out", "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  const Epoch epoch = ns.claim({.key = "k", .owner = "slow"}).epoch;
  Waiters waiters{ns};
  waiters.add({.key = "k"}, f.in(100ms));
  waiters.add({.key = "k"});
  waiters.add({.key = "k"}, f.in(100ms));
  f.pass(99ms);
  CHECK(waiters.order.empty());
  f.pass(1ms);
  for (const std::size_t at : {std::size_t{0}, std::size_t{2}}) {
    CHECK(waiters.outcome_of(at).answer == ClaimAnswer::in_flight);
    CHECK(waiters.outcome_of(at).error == ErrorCode::timed_out);
    CHECK(waiters.outcome_of(at).attempt == 1);
    CHECK(waiters.outcome_of(at).owner == "slow");
    CHECK(waiters.outcome_of(at).remaining == 900ms);
  }
  CHECK(waiters.waits(1));
  static_cast<void>(ns.complete({.key = "k", .epoch = epoch}));
  CHECK(waiters.outcome_of(1).answer == ClaimAnswer::replay);
}

TEST_CASE("waiting: a deadline that has come is not waited for, and a promotion beats it",
          "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  static_cast<void>(ns.claim({.key = "k"}));
  const ClaimOutcome late = ns.claim_or_wait({.key = "k"}, f.clock.now());
  CHECK(late.answer == ClaimAnswer::in_flight);
  CHECK(late.error == ErrorCode::timed_out);
  Waiters waiters{ns};
  waiters.add({.key = "k"}, f.in(1000ms));  // the very millisecond the lease ends
  waiters.add({.key = "k"}, f.in(1000ms));
  f.pass(1000ms);
  CHECK(waiters.outcome_of(0).answer == ClaimAnswer::granted);
  CHECK(waiters.outcome_of(1).error == ErrorCode::timed_out);
}

TEST_CASE("waiting: a key takes waiters_per_key_max waiters and no more",
          "[engine][waiting][limits]") {
  Fixture f;
  Claims ns = f.ns();
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  Waiters waiters{ns};
  for (std::size_t i = 0; i < limits::waiters_per_key_max; ++i) waiters.add({.key = "k"});
  CHECK(waiters.order.empty());
  const std::size_t over = waiters.add({.key = "k"});
  CHECK(waiters.outcome_of(over).answer == ClaimAnswer::busy);
  CHECK(waiters.outcome_of(over).error == ErrorCode::waiters_full);
  const ClaimOutcome blocking = ns.claim_or_wait({.key = "k"}, no_end);
  CHECK(blocking.answer == ClaimAnswer::busy);
  CHECK(blocking.error == ErrorCode::waiters_full);
  CHECK(f.engine->stats().waiters == limits::waiters_per_key_max);
  static_cast<void>(ns.complete({.key = "k", .epoch = epoch}));
  CHECK(waiters.count_of(ClaimAnswer::replay) == limits::waiters_per_key_max);
}

TEST_CASE("waiting: an engine takes waiters_total_max waiters and no more",
          "[engine][waiting][limits]") {
  Fixture f;
  Claims ns = f.ns();
  Waiters waiters{ns};
  constexpr std::size_t key_count = limits::waiters_total_max / limits::waiters_per_key_max;
  std::vector<Epoch> epochs;
  for (std::size_t k = 0; k < key_count; ++k) {
    const std::string key = std::to_string(k);
    epochs.push_back(ns.claim({.key = key}).epoch);
    for (std::size_t i = 0; i < limits::waiters_per_key_max; ++i) waiters.add({.key = key});
  }
  static_cast<void>(ns.claim({.key = "other"}));
  const std::size_t over = waiters.add({.key = "other"});
  CHECK(waiters.outcome_of(over).error == ErrorCode::waiters_full);
  static_cast<void>(ns.complete({.key = "0", .epoch = epochs[0]}));
  const std::size_t fits = waiters.add({.key = "other"});
  CHECK(waiters.waits(fits));
  f.engine.reset();
  CHECK(waiters.outcome_of(fits).error == ErrorCode::closing);
}

TEST_CASE("waiting: callbacks that finish and ask again take no stack", "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  // Each promoted waiter gives the key back at once, which promotes the next inside its callback.
  std::size_t promoted = 0;
  std::size_t depth = 0;
  std::size_t depth_max = 0;
  for (std::size_t i = 0; i < limits::waiters_per_key_max; ++i) {
    ns.claim_or_wait({.key = "k"}, no_end, [&](ClaimOutcome&& outcome) {
      depth_max = std::max(depth_max, ++depth);
      if (outcome.answer == ClaimAnswer::granted) ++promoted;
      static_cast<void>(ns.release({.key = "k", .epoch = outcome.epoch}));
      --depth;
    });
  }
  static_cast<void>(ns.release({.key = "k", .epoch = epoch}));
  CHECK(promoted == limits::waiters_per_key_max);
  CHECK(depth_max == 1);
}

TEST_CASE("waiting: a closing engine answers every waiter", "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  static_cast<void>(ns.claim({.key = "k"}));
  Waiters waiters{ns};
  waiters.add({.key = "k"});
  waiters.add({.key = "k"}, f.in(10ms));
  f.engine.reset();
  CHECK(waiters.outcome_of(0).answer == ClaimAnswer::in_flight);
  CHECK(waiters.outcome_of(0).error == ErrorCode::closing);
  CHECK(waiters.outcome_of(1).error == ErrorCode::closing);
}

TEST_CASE("waiting: a coroutine goes on where its wait ends", "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  std::vector<ClaimOutcome> seen;
  const auto work = [&](std::string key) -> Task {
    seen.push_back(co_await ns.claim_or_wait_async({.key = key}, no_end));
  };
  work("k");  // free: does not even suspend
  REQUIRE(seen.size() == 1);
  REQUIRE(seen[0].answer == ClaimAnswer::granted);
  work("k");
  work("k");
  CHECK(seen.size() == 1);
  static_cast<void>(ns.complete({.key = "k", .epoch = seen[0].epoch, .payload = "42"}));
  REQUIRE(seen.size() == 3);
  CHECK(seen[1].result == "42");
  CHECK(seen[2].result == "42");
}

TEST_CASE("waiting: a coroutine over many free keys stays flat", "[engine][waiting]") {
  Fixture f;
  Claims ns = f.ns();
  int granted = 0;
  const auto walk = [&]() -> Task {
    for (int i = 0; i < 100'000; ++i) {
      const std::string key = std::to_string(i);
      const ClaimOutcome outcome = co_await ns.claim_or_wait_async({.key = key}, no_end);
      granted += outcome.answer == ClaimAnswer::granted ? 1 : 0;
    }
  };
  walk();
  CHECK(granted == 100'000);
}

TEST_CASE("waiting: blocked threads get the completion, or one of them the claim",
          "[engine][waiting][race]") {
  Fixture f;
  Claims ns = f.ns();
  constexpr std::size_t thread_count = 4;
  for (const bool release : {false, true}) {
    const std::string key = release ? "released" : "completed";
    const Epoch epoch = ns.claim({.key = key}).epoch;
    std::atomic<int> granted{0};
    std::atomic<int> replayed{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < thread_count; ++t) {
      threads.emplace_back([&] {
        const ClaimOutcome outcome = ns.claim_or_wait({.key = key}, no_end);
        if (outcome.answer == ClaimAnswer::granted) {
          granted.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: read after join
          static_cast<void>(
              ns.complete({.key = key, .epoch = outcome.epoch, .payload = "by a waiter"}));
        } else if (outcome.answer == ClaimAnswer::replay) {
          replayed.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: read after join
        }
      });
    }
    while (f.engine->stats().waiters < thread_count) std::this_thread::yield();
    if (release) static_cast<void>(ns.release({.key = key, .epoch = epoch}));
    if (!release) static_cast<void>(ns.complete({.key = key, .epoch = epoch}));
    for (std::thread& thread : threads) thread.join();
    // mo: relaxed: after join
    CHECK(granted.load(std::memory_order_relaxed) == (release ? 1 : 0));
    CHECK(replayed.load(std::memory_order_relaxed) == (release ? 3 : 4));
  }
}

TEST_CASE("waiting: a blocked thread finds the end of a lease and its deadline by itself",
          "[engine][waiting][race]") {
  Fixture f;
  Claims ns = f.ns();
  static_cast<void>(ns.claim({.key = "lease"}));
  static_cast<void>(ns.claim({.key = "deadline", .lease = 1h}));
  ClaimOutcome lease;
  ClaimOutcome deadline;
  std::thread one{[&] { lease = ns.claim_or_wait({.key = "lease"}, no_end); }};
  std::thread two{[&] { deadline = ns.claim_or_wait({.key = "deadline"}, f.in(500ms)); }};
  while (f.engine->stats().waiters < 2) std::this_thread::yield();
  f.clock.advance(1000ms);  // and no thread calls advance()
  one.join();
  two.join();
  CHECK(lease.answer == ClaimAnswer::granted);
  CHECK(lease.takeover);
  CHECK(deadline.error == ErrorCode::timed_out);
}

TEST_CASE("waiting: a closing engine lets blocked threads go", "[engine][waiting][race]") {
  Fixture f;
  Claims ns = f.ns();
  static_cast<void>(ns.claim({.key = "k"}));
  ClaimOutcome outcome;
  std::thread waiter{[&] { outcome = ns.claim_or_wait({.key = "k"}, no_end); }};
  while (f.engine->stats().waiters < 1) std::this_thread::yield();
  f.engine.reset();
  waiter.join();
  CHECK(outcome.error == ErrorCode::closing);
}

TEST_CASE("waiting: a closing engine lets a thread go that is just about to block",
          "[engine][waiting][race]") {
  // Its waiter is counted before it has looked at the record again.
  for (int i = 0; i < 200; ++i) {
    Fixture f;
    Claims ns = f.ns();
    static_cast<void>(ns.claim({.key = "k"}));
    ClaimOutcome outcome;
    std::thread waiter{[&] { outcome = ns.claim_or_wait({.key = "k"}, no_end); }};
    while (f.engine->stats().waiters < 1) std::this_thread::yield();
    f.engine.reset();
    waiter.join();
    REQUIRE(outcome.error == ErrorCode::closing);
  }
}

TEST_CASE("waiting: no wake-up is lost between owners and waiters that come and go",
          "[engine][waiting][race]") {
  Fixture f;
  Claims ns = f.ns();
  // The clock stands still, so a lost wake-up hangs for ever: no lease end comes to help.
  constexpr int rounds = 2'000;
  std::atomic<int> inside{0};
  std::atomic<int> clashes{0};
  std::atomic<int> runs{0};
  const auto worker = [&] {
    for (int i = 0; i < rounds; ++i) {
      const ClaimOutcome outcome = ns.claim_or_wait({.key = "hot"}, no_end);
      if (outcome.answer != ClaimAnswer::granted) continue;
      // mo: seq_cst: the test's own mutual exclusion check
      if (inside.fetch_add(1, std::memory_order_seq_cst) != 0) {
        clashes.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: read after join
      }
      runs.fetch_add(1, std::memory_order_relaxed);    // mo: relaxed: read after join
      inside.fetch_sub(1, std::memory_order_seq_cst);  // mo: seq_cst: as above
      static_cast<void>(ns.release({.key = "hot", .epoch = outcome.epoch}));
    }
  };
  std::thread one{worker};
  std::thread two{worker};
  std::thread three{worker};
  one.join();
  two.join();
  three.join();
  CHECK(runs.load(std::memory_order_relaxed) == 3 * rounds);  // mo: relaxed: after join
  CHECK(clashes.load(std::memory_order_relaxed) == 0);        // mo: relaxed: after join
  CHECK(f.engine->stats().waiters == 0);
}
