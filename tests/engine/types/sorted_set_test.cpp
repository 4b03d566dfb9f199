// The rules of sorted sets beside a model: a list of pairs that is sorted anew for each question.
#include "engine/types/sorted_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

using Pair = std::pair<double, std::string>;

struct Model {
  std::map<std::string, double> scores;

  [[nodiscard]] std::vector<Pair> sorted() const {
    std::vector<Pair> all;
    for (const auto& [member, score] : scores) all.emplace_back(score, member);
    std::sort(all.begin(), all.end());
    return all;
  }
};

std::vector<Pair> read(const ObjectReader& set, RankRange range,
                       Direction direction = Direction::up) {
  std::vector<Pair> all;
  each_scored(set, range, direction, [&](const Scored& each) {
    all.emplace_back(each.score, std::string{each.member});
    return true;
  });
  return all;
}

template <class Is>
std::vector<Pair> picked(const std::vector<Pair>& all, const Is& is) {
  std::vector<Pair> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), is);
  return some;
}

double score_near_zero(std::mt19937_64& random) {
  constexpr double edges[] = {infinity, -infinity, 0.0, -0.0, 1e300, -1e300, 5e-324};
  if (random() % 4 == 0) return edges[random() % std::size(edges)];
  return static_cast<double>(static_cast<int>(random() % 9) - 4) / 2;
}

std::string any_member(std::mt19937_64& random) {
  std::string member(random() % 3, '\0');
  for (char& c : member) c = "\0ab\xff"[random() % 4];
  return member;
}

/// What the model says of one addition.
AddOutcome expected_of(const Model& model, double score, const std::string& member,
                       const AddRule& rule) {
  const auto there = model.scores.find(member);
  if (there == model.scores.end()) {
    if (rule.only_present) return {};
    return {Added::inserted, score};
  }
  const double before = there->second;
  const double after = rule.adds ? before + score : score;
  if (rule.only_new) return {};
  if (std::isnan(after)) return {.what = Added::not_score};
  if (rule.only_greater && !(after > before)) return {};
  if (rule.only_less && !(after < before)) return {};
  return {after == before ? Added::same : Added::moved, after};
}

ObjectEdit& fill(ObjectEdit& set, const std::vector<Pair>& pairs) {
  for (const auto& [score, member] : pairs) add_member(set, score, member, {});
  return set;
}

LexBound bound(std::string_view text) {
  if (text == "-") return {.place = LexBound::Place::lowest};
  if (text == "+") return {.place = LexBound::Place::highest};
  return {.place = LexBound::Place::member, .excludes = text[0] == '(', .member = text.substr(1)};
}

std::string members_of(const ObjectReader& set, RankRange range) {
  std::string members;
  for (const auto& [score, member] : read(set, range)) members += member;
  return members;
}

}  // namespace

TEST_CASE("sorted sets: additions by every rule, removals and ranks are those of a model",
          "[types]") {
  const std::uint64_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  Model model;
  ObjectEdit set{Kind::sorted_set};
  for (int step = 0; step < 6'000; ++step) {
    const std::string member = any_member(random);
    if (random() % 4 == 0) {
      CHECK(remove_member(set, member) == (model.scores.erase(member) == 1));
    } else {
      const AddRule rule{.only_new = random() % 8 == 0,
                         .only_present = random() % 8 == 0,
                         .only_greater = random() % 8 == 0,
                         .only_less = random() % 8 == 0,
                         .adds = random() % 3 == 0};
      const double score = score_near_zero(random);
      const AddOutcome expected = expected_of(model, score, member, rule);
      const AddOutcome got = add_member(set, score, member, rule);
      REQUIRE(got.what == expected.what);
      CHECK(got.score == expected.score);
      if (got.what == Added::moved || got.what == Added::inserted) {
        model.scores[member] = got.score;
      }
    }
    const auto all = model.sorted();
    REQUIRE(read(set, {0, set.size()}) == all);
    const std::string asked = any_member(random);
    const auto there = std::find_if(all.begin(), all.end(),
                                    [&](const Pair& each) { return each.second == asked; });
    REQUIRE(rank_in(set, asked).has_value() == (there != all.end()));
    REQUIRE(score_in(set, asked).has_value() == (there != all.end()));
    if (there == all.end()) continue;
    CHECK(*rank_in(set, asked) == static_cast<std::size_t>(there - all.begin()));
    CHECK(*score_in(set, asked) == there->first);
  }
}

TEST_CASE("sorted sets: ranges of scores and places are those of a model", "[types]") {
  const std::uint64_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int round = 0; round < 300; ++round) {
    Model model;
    ObjectEdit set{Kind::sorted_set};
    for (std::uint64_t i = random() % 20; i > 0; --i) {
      const std::string member = any_member(random);
      const double score = score_near_zero(random);
      add_member(set, score, member, {});
      model.scores[member] = score;
    }
    const auto all = model.sorted();
    const ScoreRange range{.min = score_near_zero(random),
                           .max = score_near_zero(random),
                           .excludes_min = random() % 2 == 0,
                           .excludes_max = random() % 2 == 0};
    const auto expected = picked(all, [&](const Pair& each) {
      const double score = each.first;
      return (range.excludes_min ? score > range.min : score >= range.min) &&
             (range.excludes_max ? score < range.max : score <= range.max);
    });
    const RankRange ranks = ranks_of(set, range);
    CHECK(read(set, ranks) == expected);
    auto reversed = expected;
    std::reverse(reversed.begin(), reversed.end());
    CHECK(read(set, ranks, Direction::down) == reversed);

    const auto start = static_cast<std::int64_t>(random() % 50) - 25;
    const auto stop = static_cast<std::int64_t>(random() % 50) - 25;
    for (const Direction direction : {Direction::up, Direction::down}) {
      auto from = all;
      if (direction == Direction::down) std::reverse(from.begin(), from.end());
      const auto size = static_cast<std::int64_t>(from.size());
      std::vector<Pair> between;
      for (std::int64_t i = 0; i < size; ++i) {
        if (i >= (start < 0 ? start + size : start) && i <= (stop < 0 ? stop + size : stop)) {
          between.push_back(from[static_cast<std::size_t>(i)]);
        }
      }
      CHECK(read(set, ranks_between(set.size(), start, stop, direction), direction) == between);

      const auto& in_order = direction == Direction::up ? expected : reversed;
      std::vector<Pair> limited_to;
      for (std::int64_t i = start; start >= 0 && i < static_cast<std::int64_t>(in_order.size());
           ++i) {
        if (stop >= 0 && i - start >= stop) break;
        limited_to.push_back(in_order[static_cast<std::size_t>(i)]);
      }
      CHECK(read(set, limited(ranks, start, stop, direction), direction) == limited_to);
    }
  }
}

TEST_CASE("sorted sets: places at the ends of what a number can be", "[types]") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const auto is = [](RankRange range, std::size_t from, std::size_t to) {
    return range.empty() ? from == to : range.from == from && range.to == to;
  };
  CHECK(is(ranks_between(3, least, most, Direction::up), 0, 3));
  CHECK(is(ranks_between(3, most, least, Direction::up), 0, 0));
  CHECK(is(ranks_between(3, least, least, Direction::down), 0, 0));
  CHECK(is(ranks_between(0, 0, -1, Direction::up), 0, 0));
  CHECK(is(ranks_between(3, 0, 0, Direction::down), 2, 3));
  CHECK(is(limited({2, 9}, most, most, Direction::up), 0, 0));
  CHECK(is(limited({2, 9}, 0, most, Direction::down), 2, 9));
  CHECK(is(limited({2, 9}, 6, least, Direction::down), 2, 3));
  CHECK(is(limited({2, 9}, least, 1, Direction::up), 0, 0));
}

TEST_CASE("sorted sets: ranges of members", "[types]") {
  ObjectEdit set{Kind::sorted_set};
  fill(set, {{0, ""}, {0, "a"}, {0, "b"}, {0, "c"}});
  const auto between = [&](std::string_view min, std::string_view max) {
    const RankRange up = ranks_of(set, {bound(min), bound(max)}, Direction::up);
    const RankRange down = ranks_of(set, {bound(min), bound(max)}, Direction::down);
    CHECK(members_of(set, up) == members_of(set, down));
    return members_of(set, up) + ":" + std::to_string(up.size());
  };
  CHECK(between("-", "+") == "abc:4");
  CHECK(between("[a", "[b") == "ab:2");
  CHECK(between("(a", "(c") == "b:1");
  CHECK(between("(", "+") == "abc:3");
  CHECK(between("-", "[") == ":1");
  CHECK(between("-", "(") == ":0");
  CHECK(between("[aa", "[bb") == "b:1");
  CHECK(between("(b", "[b") == ":0");
  CHECK(between("[c", "[a") == ":0");
  CHECK(between("+", "-") == ":0");
  CHECK(between("-", "-") == ":0");
  CHECK(between("+", "+") == ":0");
}

TEST_CASE("sorted sets: ranges of members where scores differ, as a walk finds them", "[types]") {
  ObjectEdit set{Kind::sorted_set};
  fill(set, {{1, "c"}, {2, "a"}, {3, "d"}, {4, "b"}});
  const auto ranks = [&](std::string_view min, std::string_view max, Direction direction) {
    return members_of(set, ranks_of(set, {bound(min), bound(max)}, direction));
  };
  CHECK(ranks("-", "+", Direction::up) == "cadb");
  CHECK(ranks("[b", "+", Direction::up) == "cadb");
  CHECK(ranks("[b", "+", Direction::down) == "db");
  CHECK(ranks("-", "[c", Direction::up) == "ca");
  CHECK(ranks("-", "[c", Direction::down) == "cadb");
  // An offset is not looked at on the way.
  CHECK(members_of(set, ranks_of(set, {bound("-"), bound("[c")}, Direction::up, 3)) == "b");
  CHECK(members_of(set, ranks_of(set, {bound("-"), bound("[b")}, Direction::down, 1)).empty());
  CHECK(ranks_of(set, {bound("-"), bound("+")}, Direction::down, 4).empty());
  CHECK(ranks_of(set, {bound("-"), bound("+")}, Direction::up, -1).empty());
  CHECK(ranks("[c", "+", Direction::up).empty());  // the last one is before it
  CHECK(ranks("-", "[b", Direction::up).empty());  // the first one is behind it
  // Many: found by halves, and never out of bounds.
  for (int i = 0; i < 500; ++i) add_member(set, i, std::to_string(i * 7919 % 1000), {});
  const RankRange all = ranks_of(set, {bound("-"), bound("+")}, Direction::up);
  CHECK(all.size() == set.size());
  CHECK(ranks_of(set, {bound("[5"), bound("[6")}, Direction::up).to <= set.size());
}

TEST_CASE("sorted sets: pops come from either end, and say what they took", "[types]") {
  ObjectEdit set{Kind::sorted_set};
  fill(set, {{1, "a"}, {1, "b"}, {2, "c"}, {3, "d"}, {3, "e"}});
  std::vector<ScoredText> popped;
  const auto text = [&] {
    std::string all;
    for (const ScoredText& each : popped) all += each.member + std::to_string(int(each.score));
    return all;
  };
  pop_members(set, Direction::up, 2, popped);
  CHECK(text() == "a1b1");
  pop_members(set, Direction::down, 2, popped);
  CHECK(text() == "e3d3");
  pop_members(set, Direction::down, 0, popped);
  CHECK(text().empty());
  CHECK(set.size() == 1);
  pop_members(set, Direction::up, ~std::size_t{0}, popped);
  CHECK(text() == "c2");
  CHECK(set.empty());
  CHECK(set.only_erases() == false);  // it was made here
  pop_members(set, Direction::up, 1, popped);
  CHECK(popped.empty());
}

}  // namespace semel::engine
