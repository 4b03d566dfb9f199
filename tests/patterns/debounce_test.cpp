// Debounce: not again so soon (P12).
#include "semel/patterns/debounce.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>
#include "tests/support/catch.hpp"

#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

namespace {

Debounce debounce(Process& process, const DebounceOptions& options) {
  return {process.engine(), process.claims("clicks", policies::debounce), options};
}

}  // namespace

TEST_CASE("debounce: at most once an interval, from the beginning of a run",
          "[patterns][debounce]") {
  Process process;
  Debounce clicks = debounce(process, {});
  int runs = 0;
  const auto press = [&] {
    ++runs;
    process.clock().advance(Millis{5'000});
  };
  CHECK(clicks.run("user-1", press) == DebounceAnswer::ran);
  CHECK(clicks.run("user-1", press) == DebounceAnswer::suppressed);
  CHECK(clicks.run("user-2", press) == DebounceAnswer::ran);
  CHECK(clicks.remaining("user-1").value() == Millis{35'000});
  process.clock().advance(Millis{34'999});
  CHECK(clicks.run("user-1", press) == DebounceAnswer::suppressed);
  process.clock().advance(Millis{1});
  CHECK(clicks.remaining("user-1").value() == Millis{0});
  CHECK(clicks.run("user-1", press) == DebounceAnswer::ran);
  CHECK(runs == 3);
}

TEST_CASE("debounce: what removes it when, in each mode", "[patterns][debounce]") {
  const auto ok = [] { return true; };
  const auto fails = []() -> Status { return Error{ErrorCode::timed_out, {}}; };
  const auto throws = []() -> bool { throw std::runtime_error{"gone"}; };
  const auto free_after = [&](const DebounceOptions& options, auto function) {
    Process process;
    Debounce clicks = debounce(process, options);
    try {
      static_cast<void>(clicks.run("k", function));
    } catch (const std::runtime_error&) {
    }
    return clicks.run("k", ok) == DebounceAnswer::ran;
  };
  CHECK_FALSE(free_after({}, ok));
  CHECK_FALSE(free_after({}, fails));
  CHECK_FALSE(free_after({}, throws));
  CHECK(free_after({.remove_on_finish = true}, ok));
  CHECK_FALSE(free_after({.remove_on_finish = true}, fails));
  CHECK_FALSE(free_after({.remove_on_error = true}, ok));
  CHECK(free_after({.remove_on_error = true}, fails));
  CHECK(free_after({.remove_on_error = true}, throws));
  CHECK(free_after({.run_once_more_after = true}, ok));
  CHECK(free_after({.run_once_more_after = true}, throws));
}

TEST_CASE("debounce: the end of a run that took too long does not remove another's",
          "[patterns][debounce]") {
  Process process;
  Debounce clicks = debounce(process, {.remove_on_finish = true});
  CHECK(clicks.run("k", [&] {
    process.clock().advance(Millis{45'000});
    Claims claims = process.claims("clicks", policies::debounce);
    REQUIRE(claims.claim({.key = "k"}).answer == ClaimAnswer::granted);
  }) == DebounceAnswer::ran);
  CHECK(clicks.run("k", [] {}) == DebounceAnswer::suppressed);
}

TEST_CASE("debounce: calls during a run cause one more run, however many come",
          "[patterns][debounce]") {
  Process process;
  Debounce rebuild = debounce(process, {.run_once_more_after = true});
  int runs = 0;
  const DebounceAnswer answer = rebuild.run("k", [&] {
    if (++runs > 2) return;
    for (int i = 0; i < 3; ++i) {
      CHECK(rebuild.run("k", [] { FAIL("it runs already"); }) == DebounceAnswer::will_run_again);
    }
  });
  CHECK(answer == DebounceAnswer::ran);
  CHECK(runs == 3);  // two were asked for more, the third was not
  CHECK(process.engine().store().exists("asked/clicks:k").value() == false);
}

TEST_CASE("debounce: each caller that was promised another run gets it",
          "[patterns][debounce][race]") {
  // Each caller notes what it wants built; whatever was wanted before a caller returned has to be
  // in a build that began after it.
  Process process;
  constexpr int callers = 3;
  constexpr int rounds = 400;
  std::atomic<int> wanted{0};
  std::atomic<int> built{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([&] {
      Debounce rebuild = debounce(process, {.run_once_more_after = true});
      for (int round = 0; round < rounds; ++round) {
        wanted.fetch_add(1, std::memory_order_seq_cst);  // mo: seq_cst: one order of all of them
        static_cast<void>(rebuild.run("k", [&] {
          // mo: seq_cst: as above
          built.store(wanted.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(built.load(std::memory_order_seq_cst) == callers * rounds);  // mo: seq_cst: as above
}

TEST_CASE("debounce: after a crash in the middle the next process may run at once",
          "[patterns][debounce][crash]") {
  for (const bool once_more : {false, true}) {
    for (std::uint64_t steps = 0; steps < 4; ++steps) {
      Process process{steps};
      const auto press = [&] { process.effect("pressed"); };
      static_cast<void>(debounce(process, {.run_once_more_after = once_more}).run("k", press));
      const bool crashed = !process.alive();
      const bool pressed = process.count("pressed") == 1;
      process.restart();
      const DebounceAnswer answer =
          debounce(process, {.run_once_more_after = once_more}).run("k", press);
      CHECK(answer == DebounceAnswer::ran);
      CHECK((crashed || pressed));
    }
  }
}

TEST_CASE("debounce: a call that is not valid runs nothing", "[patterns][debounce]") {
  Process process;
  for (const bool once_more : {false, true}) {
    Debounce clicks = debounce(process, {.run_once_more_after = once_more});
    CHECK(clicks.run("", [] { FAIL("no key"); }) == DebounceAnswer::refused);
    Debounce forever = debounce(process, {.interval = Millis{0}, .run_once_more_after = once_more});
    CHECK(forever.run("k", [] { FAIL("no interval"); }) == DebounceAnswer::refused);
  }
}

TEST_CASE("debounce: after a run that throws, promised runs still come",
          "[patterns][debounce][attack][fault-15]") {
  Process process;
  Debounce rebuilds = debounce(process, {.run_once_more_after = true});
  int runs = 0;
  DebounceAnswer other = DebounceAnswer::refused;
  CHECK_THROWS_AS(rebuilds.run("k",
                               [&] {
                                 if (++runs > 1) return;
                                 other = rebuilds.run("k", [] {});
                                 throw std::runtime_error{"gone"};
                               }),
                  std::runtime_error);
  CHECK(other == DebounceAnswer::will_run_again);
  CHECK(runs == 2);
  CHECK(rebuilds.run("k", [&] { ++runs; }) == DebounceAnswer::ran);  // and nothing is left behind
  CHECK(runs == 3);
}

TEST_CASE("debounce: after a run that outlasts its interval, promised runs still come",
          "[patterns][debounce][attack][fault-15]") {
  Process process;
  Debounce rebuilds = debounce(process, {.interval = Millis{1'000}, .run_once_more_after = true});
  int runs = 0;
  DebounceAnswer other = DebounceAnswer::refused;
  const auto answer = rebuilds.run("k", [&] {
    if (++runs > 1) return;
    other = rebuilds.run("k", [] {});
    process.clock().advance(Millis{1'500});  // the record of its claim has ended
  });
  CHECK(other == DebounceAnswer::will_run_again);
  CHECK(answer == DebounceAnswer::ran);
  CHECK(runs == 2);
}
