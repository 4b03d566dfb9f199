// One rule at every entrance: who keeps a lease, who owns a lock, what becomes of a message that
// was not handled, and whose function runs once more. Issue Once again, 10 to 13.
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/patterns/consume.hpp"
#include "semel/patterns/debounce.hpp"
#include "semel/patterns/lock.hpp"
#include "tests/patterns/process.hpp"

using namespace semel;
using namespace std::chrono_literals;
using semel::tests::Process;

// --- watchdogs -----------------------------------------------------------------------------------

TEST_CASE("a lease that a watchdog cannot keep is refused before the claim, everywhere",
          "[patterns][watchdog][once-again-10]") {
  Process process;
  Claims ns = process.claims("mq", policies::message);
  Watchdog slow{process.engine(), 1h};
  int runs = 0;
  const auto work = [&] { ++runs; };
  const auto handle = [&](const Message&) { ++runs; };
  const Duration lease = 100ms;
  CHECK(once(ns, {.key = "k", .lease = lease, .watchdog = &slow}, work).answer ==
        OnceAnswer::refused);
  const ConsumeOptions options{.lease = lease, .watchdog = &slow};
  const auto is_refused = [](const Consumed& consumed) {
    return consumed.verdict == Verdict::retry_later && consumed.answer == OnceAnswer::refused &&
           consumed.error.code == ErrorCode::bad_option && consumed.retry_after > 0ms;
  };
  CHECK(is_refused(consume_once(ns, {.id = "k"}, work, options)));
  const std::vector<Message> batch{{.id = "k"}, {.id = "l"}};
  for (const Consumed& each : consume_batch(ns, batch, handle, options)) CHECK(is_refused(each));
  Debounce clicks{process.engine(),
                  process.claims("db", policies::debounce),
                  {.interval = 100ms, .watchdog = &slow}};
  CHECK(clicks.run("k", work) == DebounceAnswer::refused);
  Lock lock{ns, "k", {.lease = lease, .watchdog = &slow}};
  CHECK_FALSE(lock.try_lock());
  CHECK(lock.why_not().code == ErrorCode::bad_option);
  CHECK(runs == 0);
  CHECK(ns.get("k")->state == ClaimState::absent);
  const ClaimOutcome claim = ns.claim({.key = "k"});
  CHECK(slow.keep(ns, "k", claim.epoch, lease).lost());
  CHECK(slow.kept() == 0);
}

TEST_CASE("a wrong lease is the consumer's fault, and no message's",
          "[patterns][consume][once-again-11]") {
  Process process;
  Claims ns = process.claims("mq", policies::message);
  const std::vector<Message> batch{{.id = "k"}};
  for (const Duration lease : {Duration{0ms}, Duration{-1ms}, Duration{limits::ttl_max + 1ms}}) {
    const Consumed one = consume_once(ns, {.id = "k"}, [] {}, {.lease = lease});
    CHECK(one.verdict == Verdict::retry_later);
    CHECK(one.answer == OnceAnswer::refused);
    const auto many = consume_batch(ns, batch, [](const Message&) {}, {.lease = lease});
    CHECK(many[0].verdict == Verdict::retry_later);
    CHECK(once(ns, {.key = "k", .lease = lease}, [] {}).answer == OnceAnswer::refused);
  }
  const SessionId session = process.engine().open_session();
  process.engine().close_session(session);
  const Consumed dead = consume_once(ns, {.id = "k"}, [] {}, {.session = session});
  CHECK(dead.verdict == Verdict::retry_later);
  CHECK(dead.error.code == ErrorCode::session_closed);
  // Less than a millisecond is a millisecond, and none is none.
  CHECK(ns.claim({.key = "short", .lease = std::chrono::duration<double>{1e-10}}).answer ==
        ClaimAnswer::granted);
  CHECK(ns.claim({.key = "none", .lease = std::chrono::duration<double>{0}}).error ==
        ErrorCode::bad_option);
}

TEST_CASE("a watchdog gives work up that lasts longer than work_max",
          "[patterns][watchdog][once-again-10]") {
  Process process;
  Claims ns = process.claims("calls", policies::call);
  Watchdog watchdog{process.engine(), WatchdogOptions{.work_max = 10min}};
  const ClaimOutcome claim = ns.claim({.key = "k"});
  const Watchdog::Guard kept = watchdog.keep(ns, "k", claim.epoch);
  for (int i = 0; i < 10 * 60 - 20; i += 20) {
    process.clock().advance(20s);
    CHECK(watchdog.poll() == 1);
    REQUIRE_FALSE(kept.lost());
  }
  process.clock().advance(20s);
  CHECK(watchdog.poll() == 0);
  CHECK(kept.lost());
  CHECK(watchdog.overran() == 1);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::in_flight);  // the rest of its lease
  process.clock().advance(40s);
  CHECK(ns.claim({.key = "k"}).takeover);
}

// --- locks ---------------------------------------------------------------------------------------

TEST_CASE("a fence admits no token that is nobody's", "[patterns][lock][once-again-11]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Fence fence;
  CHECK_FALSE(fence.admit(0));
  Lock holder{locks, "k"};
  Lock other{locks, "k"};
  REQUIRE(holder.try_lock());
  CHECK_FALSE(other.try_lock());
  CHECK_FALSE(fence.admit(other.fencing_token()));
  CHECK(fence.admit(holder.fencing_token()));
  CHECK_FALSE(fence.admit(0));
  CHECK(fence.highest() == holder.fencing_token());
}

TEST_CASE("a lock's hold belongs to the thread that has acquired it",
          "[patterns][lock][once-again-12]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock lock{locks, "k"};
  REQUIRE(lock.try_lock());
  std::thread other{[&] {
    CHECK_FALSE(lock.try_lock());
    CHECK(lock.why_not().code == ErrorCode::object_in_use);
    CHECK_FALSE(lock.try_lock_for(1h));
    CHECK_THROWS_AS(lock.lock(), std::system_error);
    CHECK(lock.fencing_token() == 0);
    CHECK_FALSE(lock.is_held());
    CHECK_FALSE(lock.renew());
    CHECK_FALSE(lock.unlock());
  }};
  other.join();
  CHECK(lock.is_held());
  CHECK(lock.try_lock());  // once more, by its holder
  CHECK(lock.unlock());
  CHECK(lock.unlock());
  CHECK_FALSE(lock.is_held());
  std::thread next{[&] {
    CHECK(lock.try_lock());
    CHECK(lock.unlock());
  }};
  next.join();
}

TEST_CASE("a lock whose holder moves is given back by any thread, and taken by one",
          "[patterns][lock][once-again-12]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock lock{locks, "k", {.moves = true}};
  REQUIRE(lock.try_lock());
  const Epoch token = lock.fencing_token();
  std::thread other{[&] {
    CHECK(lock.fencing_token() == token);
    CHECK_FALSE(lock.try_lock());
    CHECK(lock.why_not().code == ErrorCode::object_in_use);
    CHECK(lock.unlock());
  }};
  other.join();
  CHECK_FALSE(lock.is_held());
}

TEST_CASE("of threads that share a lock object one at a time is inside",
          "[patterns][lock][race][once-again-12]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock lock{locks, "k"};
  constexpr int threads = 4;
  std::atomic<int> inside{0};
  std::atomic<int> entered{0};
  std::atomic<bool> both{false};
  std::barrier start{threads};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      start.arrive_and_wait();
      for (int round = 0; round < 500; ++round) {
        if (!lock.try_lock()) continue;
        // mo: seq_cst: the order of the threads is what is asked about.
        if (inside.fetch_add(1, std::memory_order_seq_cst) != 0) both = true;
        entered.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count
        inside.fetch_sub(1, std::memory_order_seq_cst);   // mo: seq_cst: as above
        lock.unlock();
      }
    });
  }
  for (std::thread& each : all) each.join();
  CHECK_FALSE(both);
  CHECK(entered > 0);
}

// --- messages ------------------------------------------------------------------------------------

TEST_CASE("a message whose lease ended before its handler has not used a try",
          "[patterns][consume][once-again-13]") {
  Process process;
  Policy policy = policies::message;
  policy.attempts_max = 2;
  Claims queue = process.claims("mq", policy);
  int runs = 0;
  CHECK(consume_once(queue, {.id = "m"}, [&] {
          ++runs;
          return false;
        }).verdict == Verdict::retry_later);
  const std::vector<Message> batch{{.id = "slow"}, {.id = "m"}};
  const auto verdicts = consume_batch(queue, batch, [&](const Message& message) {
    if (message.id == "slow") process.clock().advance(61s);
    if (message.id == "m") ++runs;
  });
  CHECK(verdicts[1].verdict == Verdict::ack);
  CHECK(verdicts[1].attempts == 2);
  CHECK(runs == 2);
}

TEST_CASE("a message that is sent too far in the future comes again then",
          "[patterns][consume][once-again-13]") {
  Process process;
  Policy policy = policies::message;
  policy.ahead = 60s;
  Claims queue = process.claims("mq", policy);
  const std::int64_t sent = process.clock().unix_ms() + 100'000;
  const Consumed early = consume_once(queue, {.id = "m", .first_sent_unix_ms = sent}, [] {});
  CHECK(early.answer == OnceAnswer::too_new);
  CHECK(early.verdict == Verdict::retry_later);
  CHECK(early.retry_after == 40s);
  process.clock().advance(early.retry_after);
  CHECK(consume_once(queue, {.id = "m", .first_sent_unix_ms = sent}, [] {}).verdict ==
        Verdict::ack);
  const std::int64_t never = std::numeric_limits<std::int64_t>::max();
  CHECK(consume_once(queue, {.id = "n", .first_sent_unix_ms = never}, [] {}).verdict ==
        Verdict::retry_later);
}

// --- once more -----------------------------------------------------------------------------------

TEST_CASE("once more: the running call's function, or the last one that came",
          "[patterns][debounce][once-again-13]") {
  Process process;
  const Claims ns = process.claims("clicks", policies::debounce);
  const auto story = [&](Bytes key, const DebounceOptions& options) {
    Debounce saves{process.engine(), ns, options};
    std::string log;
    const auto save = [&saves, &log, key](auto&& self, std::string form) -> DebounceAnswer {
      return saves.run(key, [&log, self, form] {
        log += form;
        if (log != "A") return;
        for (const char* const later : {"B", "C"}) {
          CHECK(self(self, later) == DebounceAnswer::will_run_again);
        }
      });
    };
    CHECK(save(save, "A") == DebounceAnswer::ran);
    CHECK(save(save, "D") == DebounceAnswer::ran);
    return log;
  };
  CHECK(story("own", {.run_once_more_after = true}) == "AAD");
  CHECK(story("latest", {.run_latest_after = true}) == "ACD");
  CHECK(story("both", {.run_once_more_after = true, .run_latest_after = true}) == "ACD");
}

TEST_CASE("a function that no run can take ends with its call",
          "[patterns][debounce][once-again-13]") {
  Process process;
  const Claims ns = process.claims("clicks", policies::debounce);
  Debounce runs{process.engine(), ns, {.run_latest_after = true}};
  Debounce asks{process.engine(), ns, {.run_latest_after = true}};
  std::string log;
  std::weak_ptr<int> captured;
  const auto hand_over = [&](Debounce& debounce) {
    auto kept = std::make_shared<int>(1);
    captured = kept;
    return debounce.run("k", [&log, kept = std::move(kept)] { log += "B"; });
  };
  const auto first = [&] {
    log += "A";
    if (log != "A") return;
    CHECK(hand_over(asks) == DebounceAnswer::will_run_again);
    CHECK(captured.expired());  // another object's run, which does its own function again
  };
  CHECK(runs.run("k", first) == DebounceAnswer::ran);
  CHECK(log == "AA");
  CHECK(hand_over(runs) == DebounceAnswer::ran);
  CHECK(captured.expired());
}

TEST_CASE("once more is not lost when its runner throws or is cancelled",
          "[patterns][debounce][once-again-13]") {
  Process process;
  const Claims ns = process.claims("clicks", policies::debounce);
  const bool latest = GENERATE(false, true);
  Debounce saves{process.engine(), ns, {.run_once_more_after = true, .run_latest_after = latest}};
  std::string log;
  const auto ask_again = [&] {
    CHECK(saves.run("k", [&log] { log += "B"; }) == DebounceAnswer::will_run_again);
  };
  const std::string expected = latest ? "AB" : "AA";
  SECTION("an exception") {
    CHECK_THROWS_AS(saves.run("k",
                              [&] {
                                log += "A";
                                if (log != "A") return;
                                ask_again();
                                throw std::runtime_error{"gone"};
                              }),
                    std::runtime_error);
    CHECK(log == expected);
  }
#ifdef __GLIBCXX__
  SECTION("the end of its thread") {
    std::thread runner{[&] {
      static_cast<void>(saves.run("k", [&] {
        log += "A";
        if (log != "A") return;
        ask_again();
        pthread_exit(nullptr);
      }));
    }};
    runner.join();
    CHECK(log == expected);
  }
#endif
  CHECK(saves.run("k", [&log] { log += "C"; }) == DebounceAnswer::ran);
  CHECK(log == expected + "C");
}
