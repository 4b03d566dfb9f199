// Clocks: what stands still stands still, what goes never goes back.
#include "semel/cached_clock.hpp"

#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

TEST_CASE("clock: a manual clock moves by calls alone, and a wall step moves only the wall",
          "[engine][clock]") {
  ManualClock clock{500ms, 9000};
  CHECK(clock.now() == Timestamp{500ms});
  CHECK(clock.unix_ms() == 9000);
  clock.advance(7ms);
  CHECK(clock.now() == Timestamp{507ms});
  CHECK(clock.unix_ms() == 9007);
  clock.step_wall(-5000ms);
  CHECK(clock.now() == Timestamp{507ms});
  CHECK(clock.unix_ms() == 4007);
  clock.advance(1ms);
  CHECK(clock.unix_ms() == 4008);
}

TEST_CASE("clock: the system's clock is above zero and never goes back on a thread",
          "[engine][clock][race]") {
  std::vector<std::thread> threads;
  std::vector<int> back(2, 0);
  for (std::size_t t = 0; t < back.size(); ++t) {
    threads.emplace_back([&, t] {
      const SystemClock clock;
      Timestamp last{};
      for (int i = 0; i < 200'000; ++i) {
        const Timestamp now = clock.now();
        if (now < last || now <= Timestamp{}) ++back[t];
        last = now;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(back == std::vector<int>{0, 0});
}

TEST_CASE("clock: all instances of the system's clock show one time", "[engine][clock]") {
  const SystemClock one;
  const SystemClock other;
  const Timestamp first = one.now();
  const Timestamp second = other.now();
  const Timestamp third = one.now();
  CHECK(first <= second);
  CHECK(second <= third);
  CHECK(one.unix_ms() > 1'600'000'000'000);  // the wall clock of any machine that runs this
}

TEST_CASE("clock: the cached clock follows the system's, behind it and never back",
          "[engine][clock][race]") {
  const SystemClock system;
  const CachedClock cached;
  const Timestamp first = cached.now();
  Timestamp last = first;
  // Ends when the word has moved often enough; a clock that stands still fails by the time limit.
  for (int moves = 0; moves < 5;) {
    const Timestamp now = cached.now();
    REQUIRE(now >= last);
    REQUIRE(now <= system.now() + 1ms);  // two threads may disagree by a fraction of one
    moves += now != last ? 1 : 0;
    last = now;
  }
  CHECK(cached.unix_ms() > 1'600'000'000'000);
}

TEST_CASE("clock: a cached clock ends at once, however long its pause", "[engine][clock]") {
  for (int i = 0; i < 20; ++i) {
    const CachedClock clock{Millis{1'000'000}};
    CHECK(clock.now() > Timestamp{});
  }
}

}  // namespace semel::tests
