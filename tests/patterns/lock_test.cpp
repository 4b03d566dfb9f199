// Lock, Watchdog and Fence.
#include "semel/patterns/lock.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/policies.hpp"
#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

TEST_CASE("lock: one holder at a time, and a larger token for each", "[patterns][lock]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock first{locks, "l", {.owner = "first"}};
  Lock second{locks, "l"};
  CHECK(first.fencing_token() == 0);
  REQUIRE(first.try_lock());
  CHECK_FALSE(second.try_lock());
  CHECK(second.why().answer == ClaimAnswer::in_flight);
  CHECK(second.why().owner == "first");
  const Epoch token = first.fencing_token();
  CHECK(first.unlock());
  CHECK_FALSE(first.unlock());
  CHECK(first.fencing_token() == 0);
  REQUIRE(second.try_lock());
  CHECK(second.fencing_token() > token);
}

TEST_CASE("lock: its holder may lock it again, and unlocks as often", "[patterns][lock]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock mine{locks, "l"};
  Lock other{locks, "l"};
  REQUIRE(mine.try_lock());
  const Epoch token = mine.fencing_token();
  REQUIRE(mine.try_lock());
  REQUIRE(mine.try_lock_for(Millis{10}));
  CHECK(mine.fencing_token() == token);
  CHECK(mine.unlock());
  CHECK(mine.unlock());
  CHECK_FALSE(other.try_lock());
  CHECK(mine.unlock());
  CHECK(other.try_lock());
}

TEST_CASE("lock: a callback that an unlock runs may ask the lock, also that of a late grant",
          "[patterns][lock][wait]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock lock{locks, "l"};
  REQUIRE(lock.try_lock());
  bool is_held = true;
  const auto ask = [&](ClaimOutcome&&) { is_held = lock.is_held(); };
  REQUIRE(locks.claim_or_wait({.key = "l"}, no_end, ask) != 0);
  CHECK(lock.unlock());
  CHECK_FALSE(is_held);
  CHECK_FALSE(lock.unlock());

  Lock other{locks, "m"};
  REQUIRE(other.try_lock());
  Lock mine{locks, "m"};
  REQUIRE(locks.claim_or_wait(mine.request(), no_end, [&](ClaimOutcome&& granted) {
    CHECK(mine.take(std::move(granted)));
  }) != 0);
  CHECK(other.unlock());
  CHECK(mine.is_held());
  CHECK_FALSE(mine.take({}));  // it is used already
  CHECK(mine.is_held());
}

TEST_CASE("lock: unlock and renew notice that a lease is over, on both sides of its end",
          "[patterns][lock]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock slow{locks, "l"};
  Lock next{locks, "l"};
  REQUIRE(slow.try_lock());
  process.clock().advance(Millis{29'999});
  CHECK(slow.is_held());
  CHECK_FALSE(next.try_lock());
  process.clock().advance(Millis{1});
  CHECK_FALSE(slow.is_held());
  REQUIRE(next.try_lock());
  CHECK_FALSE(slow.renew());
  CHECK_FALSE(slow.unlock());  // another's lock is not given back
  CHECK(next.is_held());
  // A holder that lost it does not have it "again".
  CHECK_FALSE(slow.try_lock());
}

TEST_CASE("lock: what was lost while it was held twice is not locked again by counting",
          "[patterns][lock]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock mine{locks, "l"};
  REQUIRE(mine.try_lock());
  process.clock().advance(Millis{30'000});
  Lock other{locks, "l"};
  REQUIRE(other.try_lock());
  CHECK_FALSE(mine.try_lock());
  CHECK(other.unlock());
  REQUIRE(mine.try_lock());
  CHECK(mine.unlock());
}

TEST_CASE("lock: it goes back when its owner goes, and when its session ends", "[patterns][lock]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  {
    Lock scoped{locks, "l"};
    REQUIRE(scoped.try_lock());
    REQUIRE(scoped.try_lock());
  }
  Lock next{locks, "l"};
  REQUIRE(next.try_lock());
  CHECK(next.unlock());

  const SessionId session = process.engine().open_session();
  Lock bound{locks, "l", {.session = session}};
  REQUIRE(bound.try_lock());
  CHECK_FALSE(next.try_lock());
  process.engine().close_session(session);
  CHECK_FALSE(bound.is_held());
  CHECK(next.try_lock());
}

namespace {

/// Throws in every call, from the moment on that it is broken.
class BrokenJournal final : public Journal {
 public:
  Ticket append(std::span<const Mutation>) override {
    fail();
    return ++newest_;
  }
  Status wait(Ticket, Durability) override {
    fail();
    return Done{};
  }
  Ticket newest() const override {
    fail();
    return newest_;
  }
  bool defer(Function<void()>&) override {
    fail();
    return false;
  }
  bool is_broken = false;

 private:
  void fail() const {
    if (is_broken) throw std::runtime_error{"the journal's own"};
  }
  Ticket newest_ = 0;
};

}  // namespace

TEST_CASE("lock: a journal that throws while it is given back ends no process",
          "[patterns][lock]") {
  BrokenJournal journal;
  ManualClock clock;
  auto engine =
      *Engine::open({.clock = &clock, .journal = &journal, .durability = Durability::logged});
  const Claims locks = *engine->claims("locks", policies::fair_lock);
  Lock next{locks, "l"};
  bool is_reported = false;
  WaitTicket ticket;
  ClaimOutcome outcome;
  {
    Lock lock{locks, "l"};
    REQUIRE(lock.try_lock());
    Claims waiting = locks;
    REQUIRE(waiting.begin_wait(next.request(), no_end, ticket, outcome,
                               [&](ClaimOutcome&&) { is_reported = true; }));
    journal.is_broken = true;
  }
  {
    Lock other{locks, "m"};
    journal.is_broken = false;
    REQUIRE(other.try_lock());
    journal.is_broken = true;
    CHECK_FALSE(other.unlock());  // it is not known whether it is in the log
    CHECK(other.fencing_token() == 0);
  }
  CHECK(engine->stats().callbacks_threw >= 2);
  journal.is_broken = false;
  engine->advance();
  CHECK(is_reported);
  CHECK(Lock{locks, "m"}.try_lock());
  CHECK(engine->host().check_invariants().empty());
}

TEST_CASE("lock: after a crash of its holder the next process has it at once, with a larger token",
          "[patterns][lock][crash]") {
  Process process;
  Epoch token = 0;
  {
    Claims locks = process.claims("locks", policies::lock);
    const ClaimOutcome held = locks.claim({.key = "l"});
    token = held.epoch;
    process.restart();
  }
  Claims locks = process.claims("locks", policies::lock);
  Lock next{locks, "l"};
  REQUIRE(next.try_lock());
  CHECK(next.fencing_token() > token);
}

TEST_CASE("lock: a fence refuses a holder that was paused for longer than its lease",
          "[patterns][lock]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Fence file;
  Lock paused{locks, "l"};
  REQUIRE(paused.try_lock());
  const Epoch old_token = paused.fencing_token();
  CHECK(file.admit(old_token));
  process.clock().advance(Millis{30'000});
  Lock next{locks, "l"};
  REQUIRE(next.try_lock());
  CHECK(file.admit(next.fencing_token()));
  CHECK_FALSE(file.admit(old_token));
  CHECK(file.highest() == next.fencing_token());
}

TEST_CASE("lock: std::unique_lock works, and waiters are served in order (P7)",
          "[patterns][lock][race]") {
  Process process;
  Claims locks = process.claims("locks", policies::fair_lock);
  Engine& engine = process.engine();
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  Lock mine{locks, "l"};
  REQUIRE(mine.try_lock());
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Lock theirs{locks, "l"};
      const std::unique_lock<Lock> held{theirs};
      const std::lock_guard lock{mutex};
      order.push_back(i);
    });
    while (engine.stats().waiters <= static_cast<std::uint64_t>(i)) std::this_thread::yield();
  }
  CHECK(mine.unlock());
  for (std::thread& thread : threads) thread.join();
  CHECK(order == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("lock: newcomers queue behind the waiters of a fair lock (P7)", "[patterns][lock]") {
  Process process;
  for (const bool fair : {true, false}) {
    Claims locks =
        process.claims(fair ? "fair" : "unfair", fair ? policies::fair_lock : policies::lock);
    const ClaimOutcome holder = locks.claim({.key = "l"});
    REQUIRE(holder.answer == ClaimAnswer::granted);
    // A waiter is granted the lock before its own thread has noticed: in its callback another
    // caller asks, like a newcomer in the moment of the release.
    std::vector<ClaimOutcome> outcomes;
    ClaimOutcome newcomer;
    static_cast<void>(
        locks.claim_or_wait({.key = "l", .owner = "one"}, no_end, [&](ClaimOutcome&& outcome) {
          static_cast<void>(locks.release({.key = "l", .epoch = outcome.epoch}));
          newcomer = locks.claim({.key = "l"});
          outcomes.push_back(std::move(outcome));
        }));
    static_cast<void>(locks.claim_or_wait(
        {.key = "l", .owner = "two"}, no_end,
        [&](ClaimOutcome&& outcome) { outcomes.push_back(std::move(outcome)); }));
    REQUIRE(locks.release({.key = "l", .epoch = holder.epoch}).answer == OwnerAnswer::ok);
    // The callback of the first gives back, which settles the queue behind it: fair or not, the
    // second waiter has it before the newcomer asks, or the newcomer has to queue up.
    CHECK(newcomer.answer == ClaimAnswer::in_flight);
    REQUIRE(outcomes.size() == 2);
    CHECK(outcomes[1].answer == ClaimAnswer::granted);
  }
}

TEST_CASE("claims: in a fair namespace a newcomer queues up behind a waiter whose key is free",
          "[patterns][lock][race]") {
  // The lease ends while the waiter sleeps: the key is free, and the newcomer comes first.
  for (const bool fair : {true, false}) {
    std::optional<ClaimOutcome> answered;  // outlives the engine, whose end answers all waiters
    Process process;
    Claims locks = process.claims("locks", fair ? policies::fair_lock : policies::lock);
    REQUIRE(locks.claim({.key = "l"}).answer == ClaimAnswer::granted);
    static_cast<void>(locks.claim_or_wait(
        {.key = "l"}, no_end, [&](ClaimOutcome&& outcome) { answered = std::move(outcome); }));
    process.clock().advance(Millis{30'000});
    const ClaimOutcome newcomer = locks.claim({.key = "l"});
    CHECK(newcomer.answer == (fair ? ClaimAnswer::in_flight : ClaimAnswer::granted));
    if (fair) CHECK(newcomer.retry_after == Millis{1'000});
    static_cast<void>(process.engine().advance());
    CHECK(answered.has_value() == fair);
    if (answered) CHECK(answered->answer == ClaimAnswer::granted);
  }
}

TEST_CASE("claims: the holder of a fair key is regranted it before waiters", "[patterns][lock]") {
  Process process;
  Claims locks = process.claims("locks", policies::fair_lock);
  const ClaimId id{7};
  const ClaimOutcome mine = locks.claim({.key = "l", .claim_id = id});
  static_cast<void>(locks.claim_or_wait({.key = "l"}, no_end, [](ClaimOutcome&&) {}));
  const ClaimOutcome again = locks.claim({.key = "l", .claim_id = id});
  CHECK(again.answer == ClaimAnswer::regranted);
  CHECK(again.epoch == mine.epoch);
}

TEST_CASE("watchdog: it renews each third of a lease, and stops with its guard",
          "[patterns][watchdog]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Watchdog watchdog{process.engine()};
  const ClaimOutcome held = locks.claim({.key = "l"});
  {
    const Watchdog::Guard guard = watchdog.keep(locks, "l", held.epoch);
    CHECK(watchdog.kept() == 1);
    process.clock().advance(Millis{9'999});
    CHECK(watchdog.poll() == 0);
    process.clock().advance(Millis{1});
    CHECK(watchdog.poll() == 1);
    CHECK(watchdog.poll() == 0);
    CHECK(locks.get("l")->lease_remaining == Millis{30'000});
    for (int i = 0; i < 12; ++i) {
      process.clock().advance(Millis{10'000});
      CHECK(watchdog.poll() == 1);
    }
    CHECK_FALSE(guard.lost());
  }
  CHECK(watchdog.kept() == 0);
  process.clock().advance(Millis{10'000});
  CHECK(watchdog.poll() == 0);
  CHECK(locks.get("l")->lease_remaining == Millis{20'000});
}

TEST_CASE("watchdog: a lost lease is reported, and does not come back", "[patterns][watchdog]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Watchdog watchdog{process.engine()};
  Lock mine{locks, "l", {.watchdog = &watchdog}};
  REQUIRE(mine.try_lock());
  const Watchdog::Guard guard = watchdog.keep(locks, "l", mine.fencing_token());
  process.clock().advance(Millis{30'000});  // no poll for a whole lease
  Lock other{locks, "l"};
  REQUIRE(other.try_lock());
  CHECK(watchdog.poll() == 0);
  CHECK(guard.lost());
  CHECK(other.is_held());
  process.clock().advance(Millis{10'000});
  CHECK(watchdog.poll() == 0);
  CHECK(other.why().epoch == other.fencing_token());
}

TEST_CASE("watchdog: a renewal does not outlive the unlock (P6)", "[patterns][watchdog][race]") {
  // A watchdog that renews as often as it can, beside an owner that locks and unlocks: after an
  // unlock the lock is free, each time.
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Watchdog watchdog{process.engine()};
  std::atomic<bool> ends{false};
  std::thread dog{[&] {
    while (!ends.load(std::memory_order_acquire)) {  // mo: acquire: pairs with the store below
      process.clock().advance(Millis{10'000});
      static_cast<void>(watchdog.poll());
    }
  }};
  std::size_t revived = 0;
  for (int i = 0; i < 2'000; ++i) {
    Lock lock{locks, "l", {.watchdog = &watchdog}};
    if (!lock.try_lock()) ++revived;
    static_cast<void>(lock.unlock());
    if (locks.get("l")->state == ClaimState::held) ++revived;
  }
  ends.store(true, std::memory_order_release);  // mo: release: as above
  dog.join();
  CHECK(revived == 0);
  CHECK(watchdog.kept() == 0);
}

TEST_CASE("watchdog: with a thread of its own it needs no poll", "[patterns][watchdog][race]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Watchdog watchdog{process.engine(), Millis{1}};
  const ClaimOutcome held = locks.claim({.key = "l"});
  const Watchdog::Guard guard = watchdog.keep(locks, "l", held.epoch);
  process.clock().advance(Millis{10'000});
  while (locks.get("l")->lease_remaining != Millis{30'000}) std::this_thread::yield();
  CHECK_FALSE(guard.lost());
}

TEST_CASE("lock: a child of fork ends neither the lock nor the watchdog of its parent",
          "[patterns][lock][race][attack][fault-21]") {
  Process process;
  Claims claims = process.claims("locks", policies::lock);
  auto dog = std::make_unique<Watchdog>(process.engine(), Millis{1});
  auto lock = std::make_unique<Lock>(claims, "k", LockOptions{.watchdog = dog.get()});
  REQUIRE(lock->try_lock());
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);  // a child that waits for a thread that is not there waits for ever
    const bool again = Lock{claims, "other", {.watchdog = dog.get()}}.try_lock();
    lock.reset();
    dog.reset();
    _exit(again ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(lock->is_held());
  CHECK(dog->kept() == 1);
}
