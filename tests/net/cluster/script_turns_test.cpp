// Turns of scripts: a place in the line, over classes of keys.
#include "net/cluster/script_turns.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace semel::net {
namespace {

using Turn = ScriptTurns::Turn;
constexpr std::uint64_t a = 1;
constexpr std::uint64_t b = 2;

TEST_CASE("script turns: who shares a class goes one after the other, in order", "[net][scripts]") {
  ScriptTurns turns;
  std::string order;
  Turn first;
  CHECK(first.ask(turns, a));
  Turn both;
  REQUIRE_FALSE(both.ask(turns, a | b));
  both.when_given([&] { order += "both "; });
  Turn later;
  REQUIRE_FALSE(later.ask(turns, b));  // free, but one who asked before waits for it
  later.when_given([&] { order += "later "; });
  Turn other;
  CHECK(other.ask(turns, 4));
  CHECK(order.empty());
  first.give_back();
  CHECK(order == "both ");
  both.give_back();
  CHECK(order == "both later ");
}

TEST_CASE("script turns: one that ends gives all their turns who may have it", "[net][scripts]") {
  ScriptTurns turns;
  int given = 0;
  Turn all;
  CHECK(all.ask(turns, a | b));
  Turn one;
  Turn two;
  Turn third;
  for (auto& [turn, classes] : {std::pair<Turn*, std::uint64_t>{&one, a}, {&two, b}, {&third, b}}) {
    REQUIRE_FALSE(turn->ask(turns, classes));
    turn->when_given([&] { ++given; });
  }
  all.give_back();
  CHECK(given == 2);
}

TEST_CASE("script turns: one that is given before it is waited for is known", "[net][scripts]") {
  ScriptTurns turns;
  bool is_given = false;
  Turn first;
  CHECK(first.ask(turns, a));
  Turn second;
  REQUIRE_FALSE(second.ask(turns, a));
  first.give_back();
  second.when_given([&] { is_given = true; });
  CHECK(is_given);
}

TEST_CASE("script turns: who leaves the line is not called and holds nobody up", "[net][scripts]") {
  ScriptTurns turns;
  std::string order;
  Turn first;
  CHECK(first.ask(turns, a));
  auto gone = std::make_unique<Turn>();
  REQUIRE_FALSE(gone->ask(turns, a | b));
  gone->when_given([&] { order += "gone "; });
  Turn behind;
  REQUIRE_FALSE(behind.ask(turns, b));
  behind.when_given([&] { order += "behind "; });
  gone.reset();
  CHECK(order == "behind ");
  first.give_back();
  first.give_back();
  CHECK(order == "behind ");
}

TEST_CASE("script turns: a conflict is told once, to who has its class", "[net][scripts]") {
  ScriptTurns turns;
  turns.note_conflict(a);
  CHECK_FALSE(turns.take_conflict(b));
  CHECK(turns.take_conflict(a | b));
  CHECK_FALSE(turns.take_conflict(a));
}

TEST_CASE("script turns: no two threads have a class at once, and all come to it",
          "[net][scripts][race]") {
  ScriptTurns turns;
  constexpr int rounds = 2'000;
  int count = 0;  // guarded by the turns alone
  const auto work = [&] {
    for (int i = 0; i < rounds; ++i) {
      Turn turn;
      // Whoever gives it may still be in notify_one() when this thread has gone on.
      const auto given = std::make_shared<std::atomic<bool>>(false);
      if (!turn.ask(turns, a)) {
        turn.when_given([given] {
          given->store(true, std::memory_order_release);  // mo: release [turns_test.given]
          given->notify_one();
        });
        given->wait(false, std::memory_order_acquire);  // mo: acquire [turns_test.given]
      }
      ++count;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& each : threads) each.join();
  CHECK(count == 4 * rounds);
}

}  // namespace
}  // namespace semel::net
