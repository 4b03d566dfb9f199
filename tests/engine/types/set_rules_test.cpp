// The rules of sets: what SINTER and its like, SPOP and SSCAN do to elements.
#include "tests/support/catch.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/kinds/element_keys.hpp"
#include "engine/objects/object_edit.hpp"
#include "engine/types/object_limits.hpp"
#include "engine/types/set_algebra.hpp"
#include "engine/types/set_pop.hpp"
#include "engine/types/set_scan.hpp"

namespace semel::engine {
namespace {

using Members = std::set<std::string>;

/// Sets of a test, as computations read them.
struct Sets {
  explicit Sets(const std::vector<Members>& all) {
    for (const Members& members : all) {
      edits.push_back(std::make_unique<ObjectEdit>(Kind::set));
      for (const std::string& member : members) edits.back()->put(member_key(member));
      sizes.push_back(members.size());
    }
  }
  [[nodiscard]] ReadSet read() {
    return [this](std::size_t i, const Function<void(const ObjectReader&)>& look) {
      ++reads;
      if (reads > reads_max) return false;
      look(*edits[i]);
      return true;
    };
  }

  std::vector<std::unique_ptr<ObjectEdit>> edits{};
  std::vector<std::size_t> sizes{};
  std::size_t reads = 0;
  std::size_t reads_max = std::numeric_limits<std::size_t>::max();
};

using Compute = bool (*)(std::span<const std::size_t>, const ReadSet&, const TakeKey&);

/// What is found, which is in order and without repeats.
Members run(Compute compute, Sets& sets) {
  std::vector<std::string> keys;
  CHECK(compute(sets.sizes, sets.read(), [&](Bytes key) {
    keys.emplace_back(key);
    return true;
  }));
  CHECK(std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>{}) == keys.end());
  Members members;
  for (const std::string& key : keys) {
    MemberText text;
    members.emplace(member_of(key, text));
  }
  return members;
}

Members expected(Compute compute, const std::vector<Members>& all) {
  Members found = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (compute == &unite) found.insert(all[i].begin(), all[i].end());
    if (compute == &intersect) {
      std::erase_if(found, [&](const std::string& member) { return !all[i].contains(member); });
    }
    if (compute == &subtract) {
      std::erase_if(found, [&](const std::string& member) { return all[i].contains(member); });
    }
  }
  return found;
}

std::string any_member(std::mt19937_64& random, std::uint64_t range) {
  const std::uint64_t number = random() % range;
  switch (random() % 3) {
    case 0:
      return std::to_string(static_cast<std::int64_t>(number) -
                            static_cast<std::int64_t>(range / 2));
    case 1:
      return "m" + std::to_string(number);
    default:
      return std::string(number % 40, 'x');
  }
}

/// All that a scan returns while `change` runs between its calls.
template <class Change>
std::multiset<std::string> scan(ObjectEdit& set, std::size_t count, Change&& change) {
  std::multiset<std::string> seen;
  std::uint64_t cursor = 0;
  std::size_t calls = 0;
  do {
    cursor = scan_set(set, cursor, count, [&](Bytes key) {
      MemberText text;
      seen.emplace(member_of(key, text));
    });
    REQUIRE(++calls < 100'000);
    change();
  } while (cursor != 0);
  return seen;
}

}  // namespace

TEST_CASE("sets: intersection, union and difference are those of std::set",
          "[engine][types][set]") {
  std::mt19937_64 random{Catch::rngSeed()};
  INFO("seed " << Catch::rngSeed());
  for (int round = 0; round < 60; ++round) {
    std::vector<Members> all(1 + random() % 5);
    for (Members& members : all) {
      const std::uint64_t count = random() % (round % 10 == 0 ? 9'000 : 60);
      const std::uint64_t range = 1 + random() % (2 * count + 10);
      for (std::uint64_t i = 0; i < count; ++i) members.insert(any_member(random, range));
    }
    for (const Compute compute : {&intersect, &unite, &subtract}) {
      Sets sets{all};
      CHECK(run(compute, sets) == expected(compute, all));
    }
  }
}

TEST_CASE("sets: a computation ends where enough is found, or a set cannot be read",
          "[engine][types][set]") {
  const std::vector<Members> all{{"a", "b", "c", "1"}, {"a", "b", "c", "1", "2"}};
  for (const Compute compute : {&intersect, &unite, &subtract}) {
    Sets sets{all};
    std::size_t taken = 0;
    CHECK(compute(sets.sizes, sets.read(), [&](Bytes) { return ++taken < 2; }));
    CHECK(taken == (compute == &subtract ? 0 : 2));
    Sets broken{all};
    broken.reads_max = 1;
    CHECK_FALSE(compute(broken.sizes, broken.read(), [](Bytes) { return true; }));
  }
}

TEST_CASE("sets: pop takes what it returns, all if there is no more", "[engine][types][set]") {
  std::mt19937_64 random{Catch::rngSeed()};
  INFO("seed " << Catch::rngSeed());
  for (const std::size_t count : {0U, 1U, 5U, 50U, 99U, 100U, 101U, 100'000U}) {
    ObjectEdit set{Kind::set};
    Members all;
    for (int i = 0; i < 100; ++i) {
      const std::string member = i % 2 == 0 ? std::to_string(i) : "m" + std::to_string(i);
      set.put(member_key(member));
      all.insert(member);
    }
    ByteList popped;
    pop_members(set, count, random(), popped);
    CHECK(popped.size() == std::min<std::size_t>(count, 100));
    CHECK(set.size() == 100 - popped.size());
    for (std::size_t i = 0; i < popped.size(); ++i) {
      MemberText text;
      CHECK(all.erase(std::string{member_of(popped.at(i), text)}) == 1);
    }
    for (const std::string& member : all) CHECK(set.find(member_key(member)));
  }
}

TEST_CASE("sets: a scan meets each member once while nothing changes", "[engine][types][set]") {
  for (const std::size_t size :
       {limits::set_scan_whole_max, limits::set_scan_whole_max + 1, std::size_t{5'000}}) {
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{10}, std::size_t{700}, ~std::size_t{0}}) {
      for (const int kinds : {0, 1, 2}) {
        ObjectEdit set{Kind::set};
        for (std::size_t i = 0; i < size; ++i) {
          const bool is_number = kinds == 0 || (kinds == 2 && i % 2 == 0);
          const auto number = std::to_string(static_cast<std::int64_t>(i) - 300);
          set.put(member_key(is_number ? number : "m" + number));
        }
        std::size_t calls = 0;
        const auto seen = scan(set, count, [&] { ++calls; });
        CHECK(seen.size() == size);
        CHECK(Members{seen.begin(), seen.end()}.size() == size);
        const bool is_whole = size == limits::set_scan_whole_max || count >= size;
        CHECK((calls == 1) == is_whole);
        CHECK(calls <= 2 * set_scan_calls + 2);
      }
    }
  }
}

TEST_CASE("sets: a scan meets the least and the largest integers", "[engine][types][set]") {
  ObjectEdit set{Kind::set};
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  Members all;
  for (std::int64_t i = 0; i < 300; ++i) {
    for (const std::int64_t number : {least + i, most - i, i - 150}) {
      all.insert(std::to_string(number));
    }
  }
  for (const std::string& member : all) set.put(member_key(member));
  const auto seen = scan(set, 7, [] {});
  CHECK(Members{seen.begin(), seen.end()} == all);
  CHECK(seen.size() == all.size());
}

TEST_CASE("sets: a scan meets every member that is there throughout", "[engine][types][set]") {
  std::mt19937_64 random{Catch::rngSeed()};
  INFO("seed " << Catch::rngSeed());
  for (int round = 0; round < 30; ++round) {
    ObjectEdit set{Kind::set};
    Members stay;
    Members others;
    const std::size_t size = 400 + random() % 2'000;
    while (stay.size() < size) stay.insert("s" + std::to_string(random() % 100'000));
    for (std::size_t i = 0; i < size; ++i) stay.insert(std::to_string(random() % 100'000));
    for (const std::string& member : stay) set.put(member_key(member));
    const auto seen = scan(set, 1 + random() % 50, [&] {
      for (int i = 0; i < 20; ++i) {
        const std::string member = any_member(random, 50'000) + "+";
        if (others.insert(member).second) set.put(member_key(member));
        if (others.size() > 100) {
          set.erase(member_key(*others.begin()));
          others.erase(others.begin());
        }
      }
    });
    const Members found{seen.begin(), seen.end()};
    CHECK(std::includes(found.begin(), found.end(), stay.begin(), stay.end()));
  }
}

TEST_CASE("sets: a scan ends where a set is emptied by what it returns", "[engine][types][set]") {
  ObjectEdit set{Kind::set};
  for (int i = 0; i < 3'000; ++i) set.put(member_key("m" + std::to_string(i)));
  Members taken;
  std::uint64_t cursor = 0;
  do {
    std::vector<std::string> keys;
    cursor = scan_set(set, cursor, 10, [&](Bytes key) { keys.emplace_back(key); });
    for (const std::string& key : keys) taken.insert(key);
    for (const std::string& key : keys) set.erase(key);
  } while (cursor != 0);
  CHECK(taken.size() == 3'000);
  CHECK(set.empty());
}

}  // namespace semel::engine
