// Unions, intersections and differences beside a model on maps.
#include "engine/types/score_algebra.hpp"

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t plenty = std::size_t{1} << 30;

using Scores = std::map<std::string, double>;

struct Input {
  Kind kind;
  double weight;
  Scores scores;
  std::unique_ptr<ObjectEdit> object;

  [[nodiscard]] WeightedSet weighted() const { return {*object, kind, weight}; }
};

Input make(Kind kind, double weight, Scores scores) {
  Input input{kind, weight, std::move(scores), std::make_unique<ObjectEdit>(kind)};
  for (const auto& [member, score] : input.scores) {
    if (kind == Kind::set) {
      input.object->put(member_key(member));
    } else {
      add_member(*input.object, score, member, {});
    }
  }
  return input;
}

Scores result_of(const ScoreTable& table) {
  Scores scores;
  double before = -infinity;
  for (const Scored& each : table.sorted()) {
    CHECK(each.score >= before);
    before = each.score;
    CHECK(scores.emplace(each.member, each.score).second);
  }
  return scores;
}

double join(double a, double b, Aggregate aggregate) {
  if (aggregate == Aggregate::min) return b < a ? b : a;
  if (aggregate == Aggregate::max) return b > a ? b : a;
  return a + b == a + b ? a + b : 0;
}

double weigh(double score, double weight) {
  return score * weight == score * weight ? score * weight : 0;
}

}  // namespace

TEST_CASE("algebra of scores: random inputs, sets among them, beside maps", "[types]") {
  const std::uint64_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  constexpr double weights[] = {1, 1, 0, -2, 0.5};
  for (int round = 0; round < 400; ++round) {
    const auto aggregate = static_cast<Aggregate>(random() % 3);
    std::vector<Input> inputs;
    for (std::uint64_t i = 1 + random() % 4; i > 0; --i) {
      const Kind kind = random() % 3 == 0 ? Kind::set : Kind::sorted_set;
      Scores scores;
      // A large one now and then, so that members are looked up one by one.
      const std::uint64_t count = random() % 6 == 0 ? 400 : random() % 12;
      const std::uint64_t among = count > 100 ? 1'000 : 20;
      for (std::uint64_t n = count; n > 0; --n) {
        const double score = static_cast<double>(random() % 16) - 8;
        scores[std::to_string(random() % among)] = kind == Kind::set ? 1 : score;
      }
      inputs.push_back(make(kind, weights[random() % std::size(weights)], std::move(scores)));
    }
    Scores all;
    Scores both;
    Scores rest = inputs[0].scores;
    ScoreTable united{plenty};
    ScoreTable common{plenty};
    ScoreTable left{plenty};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Input& input = inputs[i];
      Scores next;
      for (const auto& [member, unweighted] : input.scores) {
        const double score = weigh(unweighted, input.weight);
        const auto [there, is_new] = all.emplace(member, score);
        if (!is_new) there->second = join(there->second, score, aggregate);
        if (i == 0) {
          next[member] = score;
        } else if (const auto old = both.find(member); old != both.end()) {
          next[member] = join(old->second, score, aggregate);
        }
        if (i != 0) rest.erase(member);
      }
      both = std::move(next);
      REQUIRE(united.unite(input.weighted(), aggregate));
      if (i == 0) {
        REQUIRE(common.unite(input.weighted(), aggregate));
        REQUIRE(left.unite({*input.object, input.kind}, Aggregate::sum));
      } else {
        common.intersect(input.weighted(), aggregate);
        left.subtract(input.weighted());
      }
    }
    CHECK(result_of(united) == all);
    CHECK(result_of(common) == both);
    CHECK(result_of(left) == rest);
  }
}

TEST_CASE("algebra of scores: what is not a number becomes 0", "[types]") {
  const Input up = make(Kind::sorted_set, 1, {{"a", infinity}, {"b", -infinity}});
  const Input down = make(Kind::sorted_set, 1, {{"a", -infinity}, {"b", infinity}});
  ScoreTable sum{plenty};
  REQUIRE(sum.unite(up.weighted(), Aggregate::sum));
  REQUIRE(sum.unite(down.weighted(), Aggregate::sum));
  CHECK(result_of(sum) == Scores{{"a", 0}, {"b", 0}});
  ScoreTable none{plenty};
  REQUIRE(none.unite({*up.object, Kind::sorted_set, 0}, Aggregate::sum));
  CHECK(result_of(none) == Scores{{"a", 0}, {"b", 0}});
  // Of a later input of an intersection only the sum is.
  ScoreTable least{plenty};
  REQUIRE(least.unite(up.weighted(), Aggregate::min));
  least.intersect({*up.object, Kind::sorted_set, 0}, Aggregate::min);
  CHECK(result_of(least) == Scores{{"a", infinity}, {"b", -infinity}});
}

TEST_CASE("algebra of scores: inputs are taken by size, equal ones as they were named", "[types]") {
  CHECK(by_size(std::vector<std::size_t>{3, 1, 2, 1}) == std::vector<std::size_t>{1, 3, 2, 0});
  CHECK(by_size({}).empty());
}

TEST_CASE("algebra of scores: a union without room is given up", "[types]") {
  Scores scores;
  for (int i = 0; i < 100; ++i) scores[std::to_string(i)] = i;
  const Input input = make(Kind::sorted_set, 1, scores);
  ScoreTable small{500};
  CHECK_FALSE(small.unite(input.weighted(), Aggregate::sum));
  CHECK(small.size() < 6);
  ScoreTable enough{100 * 200};
  CHECK(enough.unite(input.weighted(), Aggregate::sum));
  CHECK(enough.unite(input.weighted(), Aggregate::sum));  // nothing new
}

}  // namespace semel::engine
