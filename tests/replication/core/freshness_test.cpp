// How long ago a node had all that was decided: by marks that come back, whatever the network does.
#include "replication/core/freshness.hpp"

#include <algorithm>
#include <deque>
#include <vector>

#include "tests/proofs/random.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

using namespace replication;

TEST_CASE("freshness: counts from when the mark was sent, once all is applied", "[freshness]") {
  Freshness node{7};
  CHECK(node.fresh_at(100) == 0);
  const std::uint64_t first = node.mark(1'000);
  CHECK(first != 0);
  CHECK(node.mark(1'010) == first);  // it is on its way
  node.came(first, 5);
  CHECK(node.fresh_at(4) == 0);
  CHECK(node.fresh_at(5) == 1'000);
  const std::uint64_t second = node.mark(2'000);
  CHECK(second != first);
  node.came(first, 6);  // an old message
  CHECK(node.fresh_at(6) == 1'000);
  node.came(0, 6);
  node.came(second + 1, 6);  // of an earlier life, or of no node
  CHECK(node.fresh_at(6) == 1'000);
  node.came(second, 6);
  CHECK(node.fresh_at(6) == 2'000);
}

TEST_CASE("freshness: under load, what is never all applied is fresh nevertheless", "[freshness]") {
  Freshness node{1};
  std::uint64_t fresh = 0;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    node.came(node.mark(i * 10), 100 * i);
    fresh = node.fresh_at(100 * i - 150);  // always behind
  }
  CHECK(fresh >= 970);
  CHECK(fresh < 1'000);
}

TEST_CASE("freshness: a leader tells the newest mark of a node in its term", "[freshness]") {
  Freshness leader{1};
  CHECK(leader.mark_of(2, 4, 20) == 0);
  leader.replied(2, 4, 900, 10);
  CHECK(leader.mark_of(2, 4, 20) == 900);
  CHECK(leader.mark_of(2, 5, 20) == 0);
  CHECK(leader.mark_of(3, 4, 20) == 0);
  leader.replied(2, 4, 7, 12);  // it has begun anew
  CHECK(leader.mark_of(2, 4, 20) == 7);
  leader.leads(0, 3);
  CHECK(leader.fresh_at(3) == 0);
  leader.leads(50, 4);
  CHECK(leader.fresh_at(3) == 0);
  CHECK(leader.fresh_at(4) == 50);
}

TEST_CASE("freshness: a leader tells a mark once a majority has answered what it sent since",
          "[freshness]") {
  Freshness leader{1};
  leader.replied(2, 4, 900, 10);
  CHECK(leader.mark_of(2, 4, 0) == 0);
  CHECK(leader.mark_of(2, 4, 10) == 0);  // sent in the same millisecond, perhaps before
  CHECK(leader.mark_of(2, 4, 11) == 900);
  leader.replied(2, 4, 900, 30);  // the same one: it was new no later
  CHECK(leader.mark_of(2, 4, 11) == 900);
  leader.replied(2, 4, 901, 30);
  CHECK(leader.mark_of(2, 4, 30) == 0);
  CHECK(leader.mark_of(2, 4, 31) == 901);
  leader.replied(2, 5, 901, 40);  // it leads again, in a later term
  CHECK(leader.mark_of(2, 5, 40) == 0);
  CHECK(leader.mark_of(2, 5, 41) == 901);
}

TEST_CASE("freshness: marks are never 0, and go on behind the largest", "[freshness]") {
  for (const std::uint64_t seed : {0xffff'fffdULL, 0xffff'fffeULL, 0xffff'ffffULL, ~0ULL, 0ULL}) {
    Freshness node{seed};
    std::uint64_t before = 0;
    for (std::uint64_t i = 1; i < 6; ++i) {
      const std::uint64_t mark = node.mark(i);
      CHECK(mark != 0);
      CHECK(mark <= 0xffff'ffff);
      CHECK(mark != before);
      node.came(mark, 0);
      CHECK(node.fresh_at(0) == i);
      before = mark;
    }
  }
}

// A leader decides all the time; replies and appends wait for as long as they like, in order, and
// now and then all that is on its way is lost. At some time a majority follows another leader. That
// one decides too, and neither this leader nor the node hears of it. What a node believes is never
// more than was so.
TEST_CASE("freshness: never says more than was so, with any delays", "[freshness]") {
  struct Append {
    std::uint64_t mark;
    LogIndex commit;
  };
  std::uint64_t most = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    proofs::Random random{seed};
    Freshness leader{random.bits()};
    Freshness node{random.bits()};
    std::deque<std::uint64_t> replies;
    std::deque<Append> appends;
    std::deque<std::uint64_t> asked;     // when the leader has sent to the majority
    std::deque<std::uint64_t> answered;  // by it, and not heard yet
    std::uint64_t heard = 0;
    const std::uint64_t replaced_at = 100 + random.below(400);
    std::vector<LogIndex> decided{0};  // by then
    LogIndex commit = 0;               // of the leader
    LogIndex applied = 0;
    for (std::uint64_t now = 1; now < 400; ++now) {
      decided.push_back(decided.back() + random.below(3));
      if (now < replaced_at) commit = decided.back();
      switch (random.below(9)) {
        case 0:
          appends.push_back({leader.mark_of(2, 1, heard), commit});
          break;
        case 1:
          replies.push_back(node.mark(now));
          break;
        case 2:
          if (replies.empty()) break;
          leader.replied(2, 1, replies.front(), now);
          replies.pop_front();
          break;
        case 3:
          if (appends.empty()) break;
          node.came(appends.front().mark, appends.front().commit);
          appends.pop_front();
          break;
        case 4:
          applied = std::min(applied + random.below(12), commit);
          break;
        case 5:
          asked.push_back(now);
          break;
        case 6:
          if (asked.empty() || now >= replaced_at) break;
          answered.push_back(asked.front());
          asked.pop_front();
          break;
        case 7:
          if (answered.empty()) break;
          heard = std::max(heard, answered.front());
          answered.pop_front();
          break;
        default:
          if (!random.chance(1, 20)) break;
          replies.clear();
          appends.clear();
          if (random.chance(1, 2)) node = Freshness{random.bits()};  // it has begun anew
      }
      const std::uint64_t fresh = node.fresh_at(applied);
      REQUIRE(fresh <= now);
      REQUIRE(decided.at(fresh) <= applied);
      most = std::max(most, fresh);
    }
  }
  CHECK(most > 100);
}

}  // namespace semel::tests
