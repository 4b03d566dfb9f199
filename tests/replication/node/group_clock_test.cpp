// The time of a group: it never goes back, and nobody's wall clock makes it jump.
#include "replication/parts/group_clock.hpp"

#include <array>
#include <limits>
#include <vector>

#include "tests/proofs/random.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

using replication::GroupClock;
using replication::NodeId;
using replication::Term;
using replication::TimeContent;
using replication::TimeEstimate;

namespace {

constexpr std::int64_t start = 1'700'000'000'000;
constexpr std::int64_t week = std::int64_t{7} * 24 * 3'600'000;
constexpr std::int64_t day = week / 7;

/// As a node does that leads a group of so many voters, in this term.
std::int64_t next(GroupClock& clock, std::int64_t boot, std::int64_t wall, std::size_t voters = 1,
                  Term term = 1) {
  if (clock.has_to_lead(term)) clock.lead(term, voters);
  return clock.next(boot, wall);
}

TimeContent known_at(std::int64_t boot, std::int64_t group) {
  TimeContent content;
  content.boot_ms = boot;
  content.offset = group - boot;
  content.term = 4;
  return content;
}

}  // namespace

TEST_CASE("group clock: a new group begins with the wall clock", "[group_clock]") {
  GroupClock clock;
  clock.begin(0, start, 5'000, week);
  CHECK(next(clock, 5'000, start) == start);
  CHECK(next(clock, 5'300, start + 300) == start + 300);
}

TEST_CASE("group clock: steps of the wall clock change nothing at once", "[group_clock]") {
  GroupClock clock;
  clock.begin(start, start + 10, 0, week);
  std::int64_t before = next(clock, 0, start + 10);
  for (std::int64_t boot = 100; boot <= 100'000; boot += 100) {
    const std::int64_t wall = boot < 50'000 ? start + 10 * week : start - 10 * week;
    const std::int64_t now = next(clock, boot, wall);
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
    now = next(clock, boot, start + boot + 1'000);
  }
  CHECK(now == start + 1'500'000 + 1'000);
}

TEST_CASE("group clock: after a start an implausible wall clock is not followed", "[group_clock]") {
  for (const std::int64_t wall : {start + week + 1, start - 1}) {
    GroupClock clock;
    clock.begin(start, wall, 0, week);
    CHECK(next(clock, 0, wall) == start);
    CHECK(clock.off_by(0, wall) == wall - start);
  }
  GroupClock clock;
  clock.begin(start, start + week, 0, week);
  CHECK(next(clock, 0, start + week) == start + week);
}

TEST_CASE("group clock: who begins with a wall clock days ahead has the time of the leader",
          "[group_clock]") {
  GroupClock clock;
  clock.begin(start, start + 6 * day, 0, week);
  clock.saw(start + 500, 500, 1);  // an entry of the log that is as old as the log
  CHECK(clock.at(500) == start + 6 * day + 500);
  CHECK_FALSE(clock.estimate(500).is_known);
  clock.follow(start + 1'000, 1'000, 1);
  CHECK(clock.at(1'100) == start + 1'100);
  CHECK(clock.estimate(1'100) == TimeEstimate{start + 1'100, true, 1});
  // From then on it is as with any other: what was counted on stays, if it is more.
  clock.follow(start + 1'150, 1'200, 1);
  CHECK(clock.at(1'200) == start + 1'200);
  CHECK(next(clock, 1'300, start + 6 * day + 1'300, 3, 2) == start + 1'300);
}

TEST_CASE("group clock: who leads a group that starts anew believes no clock that is years ahead",
          "[group_clock]") {
  GroupClock clock;
  // Its log is read after it has begun.
  clock.begin(0, start + 520 * week, 0, week);
  clock.saw(start, 100, 1);
  CHECK(next(clock, 200, start + 520 * week) == start + 100);
  CHECK(next(clock, 300, start + 520 * week) == start + 200);
  GroupClock plausible;
  plausible.begin(0, start + day, 0, week);
  plausible.saw(start, 100, 1);
  CHECK(next(plausible, 200, start + day + 200) == start + day + 200);
}

TEST_CASE("group clock: a wall clock that a majority of voters is behind is not followed",
          "[group_clock]") {
  struct Case {
    std::vector<TimeEstimate> voters;  // besides the leader itself, an hour ahead
    std::size_t of;
    std::int64_t expected;
  };
  const std::int64_t hour = day / 24;
  const Case cases[] = {
      {{{start, false}}, 3, start},                                 // the lesser of two
      {{{start + 2 * hour, false}}, 3, start + hour},               //
      {{{start, false}, {start + 1, false}}, 3, start + 1},         // the one in the middle
      {{{start + hour, false}, {start, false}}, 3, start + hour},   //
      {{{start - hour, false}, {start + 2, false}}, 3, start + 2},  // behind the newest entry
      {{{start + 2 * week, false}, {start + 3, false}}, 3, start + 3},
      {{{start + 5, false}}, 2, start + 5},
      {{{start + 5, false}, {start + 6, false}, {start + 7, false}, {start + 8, false}},
       5,
       start + 7},
      {{{start + 5, false}, {start + 6, false}}, 5, start + 5},  // three of five were heard
      // Whoever has followed the group knows it, whatever the others have.
      {{{start + 40, true}, {start + hour, false}}, 3, start + 40},
      {{{start + 40, true}, {start + 50, true}}, 3, start + 50},
      {{{start + week * 3, true}}, 3, start + week * 3},
  };
  for (const Case& each : cases) {
    GroupClock clock;
    clock.begin(start, start + hour, 0, week);
    NodeId from = 2;
    for (const TimeEstimate& voter : each.voters) clock.heard(from++, voter, 0);
    CHECK(next(clock, 0, start + hour, each.of) == each.expected);
    CHECK(clock.estimate(0) == TimeEstimate{each.expected, true, 1});
  }
}

TEST_CASE("group clock: a voter that is heard later counts as well, and time never goes back",
          "[group_clock]") {
  GroupClock clock;
  clock.begin(start, start + day, 0, week);
  clock.heard(2, {start, false}, 0);
  CHECK(next(clock, 100, start + day + 100, 3) == start + 100);
  clock.heard(3, {start + day + 200, false}, 200);
  CHECK(next(clock, 300, start + day + 300, 3) == start + day + 300);
  clock.heard(3, {start, true}, 400);
  CHECK(next(clock, 500, start + day + 500, 3) == start + day + 500);
  // Another one leads: nobody is asked any more.
  clock.follow(start + day + 600, 600, 2);
  CHECK(next(clock, 700, start, 3, 3) == start + day + 700);
  clock.heard(2, {start + 2 * day, true}, 600);
  CHECK_FALSE(clock.has_to_lead(3));
}

TEST_CASE("group clock: times that cannot be are not heard", "[group_clock]") {
  GroupClock clock;
  clock.begin(start, start, 0, week);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t wrong : {most, std::numeric_limits<std::int64_t>::min(), most / 2}) {
    for (const bool is_known : {true, false}) clock.heard(2, {wrong, is_known}, 0);
  }
  for (NodeId from = 2; from < 40; ++from) clock.heard(from, {start, false}, 0);
  CHECK(next(clock, 10, start + 10, 3) == start + 10);
}

TEST_CASE("group clock: an earlier process of the same boot has known it", "[group_clock]") {
  GroupClock clock;
  clock.begin(start, start + 6 * day, 100'000, week);
  clock.recall(known_at(40'000, start + 5'000), true, 100'000);
  // A minute has passed, in which a leader may have been slower by a thousandth.
  CHECK(clock.estimate(100'000) == TimeEstimate{start + 65'000 - 61, true, 4});
  clock.heard(2, {start + 5 * day, true, 3}, 100'000);
  CHECK(next(clock, 100'000, start + 6 * day, 3, 5) == start + 65'000 - 61);
  // One that says to be of later is of another boot, or damaged.
  GroupClock other;
  other.begin(start, start + 10, 1'000, week);
  other.recall(known_at(1'001, start + day), true, 1'000);
  CHECK(other.estimate(1'000) == TimeEstimate{start + 10, false});
  // The newest entry is later.
  GroupClock behind;
  behind.begin(start, start + 10, 1'000, week);
  behind.recall(known_at(1'000, start - day), true, 1'000);
  CHECK(next(behind, 1'500, start + 510) == start);
  // An entry of a newer term: it may have been granted by an earlier time.
  GroupClock stale;
  stale.begin(start, start + 10, 1'000, week);
  stale.recall(known_at(1'000, start + 3'000), true, 1'000);
  stale.saw(start + 100, 1'100, 5);
  CHECK(next(stale, 1'200, start + 210, 3, 6) == start + 200);
}

TEST_CASE("group clock: what is kept brings it back", "[group_clock]") {
  GroupClock clock;
  clock.begin(start, start + day, 0, week);
  const auto keep = [&](std::int64_t boot_ms) {  // the wall clock goes with CLOCK_BOOTTIME
    return clock.to_keep(boot_ms, start + day + boot_ms);
  };
  CHECK_FALSE(keep(0));  // a guess is not kept
  clock.follow(start, 1'000, 1);
  const auto kept = keep(1'000);
  REQUIRE(kept);
  CHECK(kept->behind == day + 1'000);
  CHECK_FALSE(keep(10'999));
  CHECK(keep(11'000));
  clock.follow(start + 12'500, 12'000, 1);
  CHECK(keep(12'000));
  clock.follow(start + 13'600, 12'100, 1);
  CHECK_FALSE(keep(12'200));  // at most once a second
  CHECK(keep(13'000));
  // The wall clock steps.
  CHECK_FALSE(clock.to_keep(15'000, start + day + 15'004));
  CHECK(clock.to_keep(15'000, start + day + 15'005));
  GroupClock next_one;
  next_one.begin(start, start + day, 13'500, week);
  next_one.recall(*kept, true, 13'500);
  CHECK(next_one.estimate(13'500) == TimeEstimate{start + 12'500 - 13, true, 1});
}

TEST_CASE("group clock: after a boot it is as far behind the wall clock as before",
          "[group_clock][between-8]") {
  TimeContent kept = known_at(4'000'000, start - 4'000'000);
  kept.behind = 2'500;
  GroupClock clock;
  clock.begin(start + 1, start + 10'000, 700, week);
  clock.recall(kept, false, 700);
  CHECK(clock.estimate(700) == TimeEstimate{start + 7'500, false});
  // Of a majority the least counts: one node was away, and knows of nothing.
  GroupClock alone;
  alone.begin(start + 1, start + 10'000, 700, week);
  alone.heard(2, clock.estimate(700), 700);
  CHECK(next(alone, 700, start + 10'000, 3) == start + 7'500);
  // Never before the newest entry.
  kept.behind = day;
  clock.begin(start + 1, start + 10'000, 700, week);
  clock.recall(kept, false, 700);
  CHECK(clock.estimate(700) == TimeEstimate{start + 1, false});
  // A wall clock that was behind, or makes no sense, says nothing: it may be right now.
  for (const std::int64_t behind :
       {-day, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    kept.behind = behind;
    clock.begin(start + 1, start + 10'000, 700, week);
    clock.recall(kept, false, 700);
    CHECK(clock.estimate(700) == TimeEstimate{start + 10'000, false});
  }
}

TEST_CASE("group clock: who follows a slow leader is ahead of it by milliseconds at most",
          "[group_clock]") {
  GroupClock leader;
  GroupClock follower;
  leader.begin(start, start, 0, week);
  follower.begin(start, start, 0, week);
  follower.heard(1, {start, false}, 0);
  proofs::Random random{11};
  // The leader's wall clock is years behind: its time goes slower by a thousandth, for ten hours.
  for (std::int64_t boot = 0; boot <= 36'000'000; boot += 100) {
    const std::int64_t entry = next(leader, boot, start - 100 * week + boot);
    follower.follow(entry, boot + static_cast<std::int64_t>(random.below(50)), 1);
    const std::int64_t later = boot + 50;
    REQUIRE(follower.at(later) - leader.at(later) <= 3);  // of two seconds, a thousandth
    REQUIRE(leader.at(later) - follower.at(later) <= 52);
  }
  CHECK(leader.at(36'000'000) <= start + 36'000'000 - 35'000);
}

TEST_CASE("group clock: who follows a new leader goes back with it", "[group_clock][between-8]") {
  GroupClock clock;
  clock.begin(start, start, 0, week);
  clock.follow(start + 1'000, 1'000, 1);
  clock.follow(start + 1'700, 2'000, 1);  // it came late
  CHECK(clock.at(2'000) == start + 2'000);
  clock.follow(start + 2'800, 3'000, 2);
  CHECK(clock.at(3'000) == start + 2'800);
  clock.follow(start + 3'900, 4'000, 2);
  CHECK(clock.at(4'000) == start + 3'900);
  clock.follow(start + 4'000, 4'100, 1);  // of a former leader, held up
  CHECK(clock.at(4'100) == start + 4'000);
  clock.follow(start + 5'000, 60'000, 3);  // it was held up itself
  CHECK(clock.at(60'000) == start + 5'000);
  clock.follow(start + 59'900, 60'010, 3);
  CHECK(clock.at(60'010) == start + 59'900);
}

TEST_CASE("group clock: who leads takes the latest time of the newest leader that a voter knows",
          "[group_clock][between-8]") {
  GroupClock clock;
  clock.begin(start, start, 0, week);
  clock.follow(start + 1'000, 1'000, 3);
  clock.saw(start + 900, 1'000, 3);
  clock.heard(2, {start + 9'000, true, 2}, 1'000);  // of a leader before it
  CHECK(next(clock, 1'000, start, 3, 4) == start + 1'000);
  clock.follow(start + 2'000, 2'000, 5);
  clock.heard(2, {start + 2'300, true, 5}, 2'000);
  clock.heard(3, {start + 9'000, false, 0}, 2'000);
  CHECK(next(clock, 2'000, start, 3, 6) == start + 2'300);
  clock.follow(start + 3'000, 3'000, 7);
  clock.heard(2, {start + 2'900, true, 8}, 3'000);  // it goes back with it
  CHECK(next(clock, 3'000, start, 3, 9) == start + 2'900);
}

TEST_CASE("group clock: a node is close when it knows the time to half a second",
          "[group_clock][between-8]") {
  GroupClock clock;
  clock.begin(start, start, 0, week);
  CHECK_FALSE(clock.is_close());
  clock.follow(start + 400, 1'000, 1);
  CHECK_FALSE(clock.is_close());
  clock.bound(start + 400, 499, 1);  // on its way for 501 ms at most
  CHECK_FALSE(clock.is_close());
  clock.bound(start + 400, 500, 1);
  CHECK(clock.is_close());
  clock.follow(start + 1'000, 2'000, 2);
  CHECK_FALSE(clock.is_close());
  clock.bound(start + 1'000, 1'990, 1);
  CHECK_FALSE(clock.is_close());
  static_cast<void>(next(clock, 2'000, start, 1, 3));
  CHECK(clock.is_close());
}

/// Two nodes hand over to and fro, and each is late once in each term; the third one is cut off
/// meanwhile, and leads then.
TEST_CASE("group clock: a node that missed how the time fell does not end leases early",
          "[group_clock][between-8]") {
  std::array<GroupClock, 3> clocks;
  std::int64_t boot = 0;
  for (GroupClock& each : clocks) each.begin(start, start, 0, week);
  std::int64_t granted = next(clocks[0], boot, start, 3, 1);
  for (GroupClock& each : clocks) each.follow(granted, boot, 1);
  for (Term term = 2; term <= 13; ++term) {
    GroupClock& leader = clocks[term % 2];
    boot += 1'000;
    granted = next(leader, boot, start + boot, 3, term);
    boot += 500;  // its messages come so late
    clocks[(term + 1) % 2].follow(granted, boot, term);
  }
  CHECK(granted <= start + boot - 5'000);
  // A lease of five seconds, and the third node, which gets that entry with the newest time.
  const std::int64_t until = granted + 5'000;
  boot += 100;
  clocks[2].saw(granted, boot, 13);
  clocks[2].follow(clocks[13 % 2].at(boot), boot, 13);
  boot += 1'000;
  CHECK(next(clocks[2], boot, start + boot, 3, 14) < until - 3'000);
}

TEST_CASE("group clock: leaders take turns, and no lease ends early", "[group_clock][between-8]") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    proofs::Random random{seed};
    std::array<GroupClock, 3> clocks;
    for (GroupClock& each : clocks) each.begin(start, start, 0, week);
    clocks[0].heard(1, {start, false}, 0);
    std::int64_t boot = 1'000;
    std::size_t leader = 0;
    // Of the times that entries were given, from the real one at its fastest: it never grows.
    std::int64_t ahead = week;
    for (Term term = 1; term <= 60; ++term) {
      const std::uint64_t entries = 1 + random.below(20);
      // Who is cut off in this term, if it is not the leader.
      const std::size_t away = random.below(2 * clocks.size());
      std::int64_t newest = 0;
      for (std::uint64_t i = 0; i < entries; ++i) {
        const std::int64_t entry = next(clocks[leader], boot, start + boot, 3, term);
        const std::int64_t now = entry - start - boot - (boot / 1'000) - 1;
        REQUIRE(now <= ahead + 4);
        ahead = std::min(ahead, now);
        newest = entry;
        const std::int64_t late = random.chance(1, 4) ? 2'000 : 20;
        boot += static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(late)));
        for (std::size_t node = 0; node < clocks.size(); ++node) {
          if (node == leader || node == away) continue;
          clocks[node].follow(entry, boot, term);
          clocks[node].saw(entry, boot, term);
        }
        boot += static_cast<std::int64_t>(random.below(1'000));
      }
      const std::size_t next_leader = random.below(clocks.size());
      if (next_leader == away && away != leader) {  // it has the entries first
        clocks[away].follow(clocks[leader].at(boot), boot, term);
        clocks[away].saw(newest, boot, term);
      }
      if (random.chance(1, 3)) {  // it starts, and knows nothing but what comes
        const auto other = (next_leader + 1) % clocks.size();
        clocks[other].begin(start, start + week, boot, week);
      }
      leader = next_leader;
    }
  }
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
      const auto entry = before + static_cast<std::int64_t>(random.below(100));
      if (random.chance(1, 3)) clock.saw(entry, boot, 1);
      const Term term = 1 + static_cast<Term>(i) / 10;
      if (random.chance(1, 10)) clock.follow(entry, boot, term);
      if (random.chance(1, 10)) {
        clock.heard(1 + random.below(5), {start + boot + off, random.chance(1, 2)}, boot);
      }
      const std::int64_t now = next(clock, boot, start + boot + off, 1 + random.below(5), term);
      REQUIRE(now >= before);
      before = now;
    }
  }
}

}  // namespace semel::tests
