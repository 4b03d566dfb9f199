// The rules of lists, against a deque that counts places one by one.
#include "engine/types/list.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <limits>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

using Model = std::deque<std::string>;

constexpr std::int64_t rank_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t rank_min = std::numeric_limits<std::int64_t>::min();

Model all_of(const ObjectReader& list) {
  Model all;
  list.each(0, list.size(), [&](const Element& element) {
    all.emplace_back(element.value);
    return true;
  });
  return all;
}

/// What the first and last place select, found by asking each element.
Model part_of(const Model& model, std::int64_t first, std::int64_t last) {
  Model part;
  const auto size = static_cast<std::int64_t>(model.size());
  for (std::int64_t i = 0; i < size; ++i) {
    const auto is_before = [&](std::int64_t index) {
      return index >= 0 ? i < index : i - size < index;
    };
    const auto is_behind = [&](std::int64_t index) {
      return index >= 0 ? i > index : i - size > index;
    };
    if (!is_before(first) && !is_behind(last)) part.push_back(model[static_cast<std::size_t>(i)]);
  }
  return part;
}

}  // namespace

TEST_CASE("list places: negative ones count from the tail, and none lies outside",
          "[engine][types][lists]") {
  CHECK(list_rank(3, 0) == 0U);
  CHECK(list_rank(3, -1) == 2U);
  CHECK(list_rank(3, -3) == 0U);
  for (const std::int64_t outside : {std::int64_t{3}, std::int64_t{-4}, rank_max, rank_min}) {
    CHECK_FALSE(list_rank(3, outside));
    CHECK_FALSE(list_rank(0, outside));
  }
  CHECK(list_range(3, rank_min, rank_max).size() == 3);
  CHECK(list_range(3, rank_max, rank_min).size() == 0);
  CHECK(list_range(3, 0, rank_min).size() == 0);
  CHECK(list_range(3, rank_max, rank_max).size() == 0);
  CHECK(list_range(0, 0, -1).size() == 0);
}

TEST_CASE("list places: every range of a short list is what asking each element gives",
          "[engine][types][lists]") {
  for (std::size_t size = 0; size < 6; ++size) {
    Model model;
    for (std::size_t i = 0; i < size; ++i) model.push_back(std::to_string(i));
    for (std::int64_t first = -8; first <= 8; ++first) {
      for (std::int64_t last = -8; last <= 8; ++last) {
        const ListRange range = list_range(size, first, last);
        REQUIRE(range.to <= size);
        const auto begin = model.begin();
        const Model part{begin + static_cast<std::ptrdiff_t>(range.from),
                         begin + static_cast<std::ptrdiff_t>(range.to)};
        INFO(size << " elements, " << first << " to " << last);
        REQUIRE(part == part_of(model, first, last));
      }
    }
  }
}

namespace {

/// A list and what it should be, changed alike.
struct Pair {
  ObjectEdit list{Kind::list};
  Model model;

  void push(ListEnd end, const std::string& element) {
    push_to_list(list, end, element);
    end == ListEnd::head ? model.push_front(element) : model.push_back(element);
  }
  void remove(const std::string& element, std::int64_t count) {
    Model kept;
    std::int64_t left = count == 0 ? rank_max : std::abs(count);
    std::size_t gone = 0;
    if (count < 0) std::reverse(model.begin(), model.end());
    for (const std::string& each : model) {
      const bool goes = each == element && left != 0;
      left -= goes ? 1 : 0;
      gone += goes ? 1 : 0;
      if (!goes) kept.push_back(each);
    }
    if (count < 0) std::reverse(kept.begin(), kept.end());
    model = kept;
    REQUIRE(remove_from_list(list, element, count) == gone);
  }
  void insert(const std::string& pivot, bool is_behind) {
    const auto found = std::find(model.begin(), model.end(), pivot);
    const bool is_there = found != model.end();
    if (is_there) model.insert(found + (is_behind ? 1 : 0), "new");
    REQUIRE(insert_into_list(list, pivot, is_behind, "new") == is_there);
  }
  void trim(std::int64_t first, std::int64_t last) {
    model = part_of(model, first, last);
    trim_list(list, list_range(list.size(), first, last));
  }
  void search(const std::string& element) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < model.size(); ++i) {
      if (model[i] == element) places.push_back(i);
    }
    REQUIRE(find_in_list(list, {.element = element}) == places);
    std::reverse(places.begin(), places.end());
    REQUIRE(find_in_list(list, {.element = element, .first_match = -1}) == places);
    REQUIRE(find_in_list(list, {.element = element, .first_match = rank_min}) == places);
  }
};

}  // namespace

TEST_CASE("list rules: random changes give what a deque has", "[engine][types][lists]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  const auto around_0 = [&](std::uint64_t bound) {
    return static_cast<std::int64_t>(below(bound)) - 2;
  };
  Pair pair;
  for (int step = 0; step < 20'000; ++step) {
    INFO("step " << step);
    const std::string element(1, static_cast<char>('a' + below(3)));
    switch (below(6)) {
      case 0:
      case 1:
        pair.push(below(2) == 0 ? ListEnd::head : ListEnd::tail, element);
        break;
      case 2:
        pair.remove(element, around_0(5));
        break;
      case 3:
        pair.insert(element, below(2) == 0);
        break;
      case 4:
        pair.trim(around_0(4), around_0(40));
        break;
      default:
        pair.search(element);
        break;
    }
    REQUIRE(all_of(pair.list) == pair.model);
  }
}

TEST_CASE("list rules: a search stops after so many elements and matches",
          "[engine][types][lists]") {
  ObjectEdit list{Kind::list};
  for (const char* each : {"x", "a", "x", "x"}) push_to_list(list, ListEnd::tail, each);
  using Ranks = std::vector<std::size_t>;
  CHECK(find_in_list(list, {.element = "x", .matches_max = 2}) == Ranks{0, 2});
  CHECK(find_in_list(list, {.element = "x", .first_match = 2}) == Ranks{2, 3});
  CHECK(find_in_list(list, {.element = "x", .first_match = -2, .matches_max = 1}) == Ranks{2});
  CHECK(find_in_list(list, {.element = "x", .compared_max = 3}) == Ranks{0, 2});
  CHECK(find_in_list(list, {.element = "x", .first_match = -1, .compared_max = 1}) == Ranks{3});
  CHECK(find_in_list(list, {.element = "x", .first_match = rank_max}).empty());
}

}  // namespace semel::engine
