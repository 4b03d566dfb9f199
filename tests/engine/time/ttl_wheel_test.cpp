// The wheel alone. Vocabulary: at(ms), fired.
#include "engine/time/ttl_wheel.hpp"

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/memory/region.hpp"
#include "semel/limits.hpp"

using namespace semel;
using namespace semel::engine;

namespace {

constexpr std::int64_t start = 1'000'000;

Timestamp at(std::int64_t ms) {
  return Timestamp{Millis{start + ms}};
}

struct Fixture {
  Region region;
  std::unique_ptr<TtlWheel> wheel;
  std::vector<std::uint64_t> fired;
  Fixture() {
    REQUIRE(region.reserve(std::size_t{64} << 20));
    wheel = std::make_unique<TtlWheel>(region, at(0));
  }
  std::size_t advance(std::int64_t ms, std::size_t budget = 1'000'000'000) {
    return wheel->advance(at(ms), budget, [&](std::span<const std::uint64_t> batch) {
      fired.insert(fired.end(), batch.begin(), batch.end());
    });
  }
  [[nodiscard]] std::vector<std::string> broken() const {
    std::vector<std::string> sentences;
    wheel->check(sentences);
    return sentences;
  }
};

}  // namespace

TEST_CASE("wheel: a timer fires at its millisecond and not one before", "[engine][wheel]") {
  for (const std::int64_t ttl :
       {std::int64_t{1}, std::int64_t{255}, std::int64_t{256}, std::int64_t{257},
        std::int64_t{16'383}, std::int64_t{16'384}, std::int64_t{1} << 20,
        (std::int64_t{1} << 26) - 1, std::int64_t{1} << 26, (std::int64_t{1} << 32) - 1,
        std::int64_t{1} << 32, (std::int64_t{1} << 32) + 12'345, limits::ttl_max.count()}) {
    Fixture f;
    f.advance(77);
    REQUIRE(f.wheel->schedule({7, at(77 + ttl)}));
    f.advance(77 + ttl - 1);
    INFO("ttl " << ttl);
    CHECK(f.fired.empty());
    f.advance(77 + ttl);
    CHECK(f.fired == std::vector<std::uint64_t>{7});
    CHECK(f.wheel->size() == 0);
    CHECK(f.broken().empty());
  }
}

TEST_CASE("wheel: a timer that is late fires at the next advance", "[engine][wheel]") {
  Fixture f;
  f.advance(1'000);
  REQUIRE(f.wheel->schedule({1, at(10)}));
  f.advance(1'000);
  CHECK(f.fired == std::vector<std::uint64_t>{1});
}

TEST_CASE("wheel: a budget stops it in the middle and it goes on from there", "[engine][wheel]") {
  Fixture f;
  for (std::uint64_t i = 0; i < 1'000; ++i) REQUIRE(f.wheel->schedule({i, at(5)}));
  CHECK(f.advance(10, 100) == 0);
  CHECK(f.fired.size() == 100);
  CHECK(f.advance(10) > 0);
  CHECK(f.fired.size() == 1'000);
  CHECK(f.wheel->time() == at(10));
}

TEST_CASE("wheel: random timers fire in their millisecond, whatever the steps", "[engine][wheel]") {
  const auto seed = Catch::rngSeed();
  std::mt19937_64 random{seed};
  INFO("seed " << seed);
  Fixture f;
  std::multimap<std::int64_t, std::uint64_t> expected;
  std::int64_t now = 0;
  std::uint64_t name = 0;
  for (int step = 0; step < 3'000; ++step) {
    for (int i = 0; i < 5; ++i) {
      const auto width = static_cast<unsigned>(random() % 41);
      const auto ttl = static_cast<std::int64_t>(random() & ((std::uint64_t{1} << width) - 1)) + 1;
      REQUIRE(f.wheel->schedule({++name, at(now + ttl)}));
      expected.emplace(now + ttl, name);
    }
    const auto width = static_cast<unsigned>(random() % 34);
    now += static_cast<std::int64_t>(random() & ((std::uint64_t{1} << width) - 1));
    f.fired.clear();
    f.advance(now);
    std::multiset<std::uint64_t> due;
    while (!expected.empty() && expected.begin()->first <= now) {
      due.insert(expected.begin()->second);
      expected.erase(expected.begin());
    }
    REQUIRE(std::multiset<std::uint64_t>(f.fired.begin(), f.fired.end()) == due);
    REQUIRE(f.wheel->size() == expected.size());
  }
  CHECK(f.broken().empty());
}

TEST_CASE("wheel: timers of nearly one ttl fire in their millisecond, late ones at once",
          "[engine][wheel]") {
  const auto seed = Catch::rngSeed();
  std::mt19937_64 random{seed};
  INFO("seed " << seed);
  Fixture f;
  std::multimap<std::int64_t, std::uint64_t> expected;
  std::int64_t now = 0;
  std::uint64_t name = 0;
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  for (int step = 0; step < 2'000; ++step) {
    // About the edges of the levels, and over the edges of their slots in both directions.
    const std::int64_t ttl = std::int64_t{1} << (6 + below(22));
    for (int i = 0; i < 20; ++i) {
      const std::int64_t wake = now + ttl + below(ttl + 600) - ttl / 2 - 300;
      REQUIRE(f.wheel->schedule({++name, at(wake)}));
      expected.emplace(wake, name);
    }
    now += below(4) == 0 ? below(ttl * 2) : below(3);
    f.fired.clear();
    f.advance(now);
    std::multiset<std::uint64_t> due;
    while (!expected.empty() && expected.begin()->first <= now) {
      due.insert(expected.begin()->second);
      expected.erase(expected.begin());
    }
    REQUIRE(std::multiset<std::uint64_t>(f.fired.begin(), f.fired.end()) == due);
    REQUIRE(f.wheel->size() == expected.size());
  }
  std::map<std::uint64_t, std::int64_t> wakes;
  for (const auto& [wake, timer] : expected) wakes[timer] = wake;
  while (!f.wheel->compact(500, [&](std::uint64_t timer, Timestamp wake) {
    REQUIRE(wake == at(wakes.at(timer)));
    return true;
  })) {
  }
  CHECK(f.broken().empty());
}

TEST_CASE("wheel: compaction asks with the exact wake and keeps what is alive", "[engine][wheel]") {
  Fixture f;
  std::map<std::uint64_t, Timestamp> wakes;
  for (std::uint64_t i = 1; i <= 5'000; ++i) {
    const Timestamp wake = at(static_cast<std::int64_t>(i * i * 37 % 8'000'000'000) + 1);
    wakes[i] = wake;
    REQUIRE(f.wheel->schedule({i, wake}));
  }
  f.advance(0);
  std::size_t asked = 0;
  while (!f.wheel->compact(500, [&](std::uint64_t name, Timestamp wake) {
    ++asked;
    CHECK(wakes.at(name) == wake);
    return name % 2 == 0;
  })) {
  }
  CHECK(asked == 5'000);
  CHECK(f.wheel->size() == 2'500);
  CHECK(f.broken().empty());
  f.advance(8'000'000'001);
  CHECK(f.fired.size() == 2'500);
}

TEST_CASE("wheel: timers far away that are moved keep the room that they may need",
          "[engine][wheel]") {
  Fixture f;
  constexpr std::int64_t day = 86'400'000;
  // Short ones take the first pieces of memory, and leave them when they fire.
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    REQUIRE(f.wheel->schedule({i, at(1 + static_cast<std::int64_t>(i % 1'000))}));
  }
  for (std::uint64_t i = 0; i < 100'000; ++i) REQUIRE(f.wheel->schedule({i, at(60 * day)}));
  f.advance(1'001);
  CHECK(f.fired.size() == 60'000);
  CHECK(f.broken().empty());
  for (std::int64_t ms = 1'001; ms < 3 * day; ms += day / 4) {
    f.advance(ms);
    CHECK(f.broken().empty());
  }
  CHECK(f.wheel->size() == 100'000);
  f.advance(60 * day);
  CHECK(f.fired.size() == 160'000);
}

TEST_CASE("wheel: an empty wheel jumps over a century at once", "[engine][wheel]") {
  Fixture f;
  f.advance(limits::ttl_max.count());
  CHECK(f.wheel->time() == at(limits::ttl_max.count()));
}
