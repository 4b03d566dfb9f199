// The time of a group: it never goes back, and nobody's wall clock makes it jump.
#include "replication/node/group_clock.hpp"

#include "tests/proofs/random.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

using replication::GroupClock;

namespace {

constexpr std::int64_t start = 1'700'000'000'000;
constexpr std::int64_t week = std::int64_t{7} * 24 * 3'600'000;
constexpr std::int64_t day = week / 7;

}  // namespace

TEST_CASE("group clock: a new group begins with the wall clock", "[group_clock]") {
  GroupClock clock;
  clock.begin(0, start, 5'000, week);
  CHECK(clock.next(5'000, start) == start);
  CHECK(clock.next(5'300, start + 300) == start + 300);
}

TEST_CASE("group clock: steps of the wall clock change nothing at once", "[group_clock]") {
  GroupClock clock;
  clock.begin(start, start + 10, 0, week);
  std::int64_t before = clock.next(0, start + 10);
  for (std::int64_t boot = 100; boot <= 100'000; boot += 100) {
    const std::int64_t wall = boot < 50'000 ? start + 10 * week : start - 10 * week;
    const std::int64_t now = clock.next(boot, wall);
    CHECK(now >= before);
    // A thousandth faster or slower than time passes.
    CHECK(now - (start + 10) <= boot + boot / 1'000 + 1);
    CHECK(now - (start + 10) >= boot - boot / 1'000 - 1);
    before = now;
  }
}

TEST_CASE("group clock: it follows the wall clock slowly", "[group_clock]") {
  GroupClock clock;
  clock.begin(start, start, 0, week);
  // A second ahead: after a quarter of an hour and a half it is there.
  std::int64_t now = 0;
  for (std::int64_t boot = 0; boot <= 1'500'000; boot += 1'000) {
    now = clock.next(boot, start + boot + 1'000);
  }
  CHECK(now == start + 1'500'000 + 1'000);
}

TEST_CASE("group clock: after a start an implausible wall clock is not followed", "[group_clock]") {
  for (const std::int64_t wall : {start + week + 1, start - 1}) {
    GroupClock clock;
    clock.begin(start, wall, 0, week);
    CHECK(clock.next(0, wall) == start);
    CHECK(clock.off_by(0, wall) == wall - start);
  }
  GroupClock clock;
  clock.begin(start, start + week, 0, week);
  CHECK(clock.next(0, start + week) == start + week);
}

TEST_CASE("group clock: a new leader goes on from the newest entry", "[group_clock]") {
  GroupClock clock;
  clock.begin(0, start - 3'600'000, 0, week);  // its wall clock is an hour behind
  clock.saw(start, 1'000);
  CHECK(clock.next(1'500, start - 3'600'000) == start + 500);
  // An entry from before that comes late changes nothing.
  clock.saw(start - 10'000, 1'600);
  CHECK(clock.next(1'700, start - 3'600'000) == start + 700);
}

TEST_CASE("group clock: who begins with a wall clock days ahead has the time of the leader",
          "[group_clock]") {
  GroupClock clock;
  clock.begin(start, start + 6 * day, 0, week);
  clock.saw(start + 500, 500);  // an entry of the log that is as old as the log
  CHECK(clock.at(500) == start + 6 * day + 500);
  clock.follow(start + 1'000, 1'000);
  CHECK(clock.at(1'100) == start + 1'100);
  CHECK(clock.next(1'200, start + 6 * day + 1'200) == start + 1'200);
  // From then on it is as with any other: what was counted on stays, if it is more.
  clock.follow(start + 1'250, 1'300);
  CHECK(clock.at(1'300) == start + 1'300);
}

TEST_CASE("group clock: who leads a group that starts anew believes no clock that is years ahead",
          "[group_clock]") {
  GroupClock clock;
  // Its log is read after it has begun.
  clock.begin(0, start + 520 * week, 0, week);
  clock.saw(start, 100);
  CHECK(clock.next(200, start + 520 * week) == start);
  CHECK(clock.next(300, start + 520 * week) == start + 100);
  GroupClock plausible;
  plausible.begin(0, start + day, 0, week);
  plausible.saw(start, 100);
  CHECK(plausible.next(200, start + day + 200) == start + day + 200);
}

TEST_CASE("group clock: it never goes back, whatever comes", "[group_clock]") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    proofs::Random random{seed};
    GroupClock clock;
    clock.begin(start, start, 0, week);
    std::int64_t boot = 0;
    std::int64_t before = 0;
    for (int i = 0; i < 2'000; ++i) {
      boot += static_cast<std::int64_t>(random.below(3'000));
      const auto off = static_cast<std::int64_t>(random.below(20 * week)) - 10 * week;
      if (random.chance(1, 3)) {
        clock.saw(before + static_cast<std::int64_t>(random.below(100)), boot);
      }
      const std::int64_t now = clock.next(boot, start + boot + off);
      REQUIRE(now >= before);
      before = now;
    }
  }
}

}  // namespace semel::tests
