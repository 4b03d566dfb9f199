// Region and arena. Vocabulary: take, give, cache.
#include "engine/memory/arena.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

using namespace semel;
using namespace semel::engine;

namespace {
constexpr std::size_t mib = std::size_t{1} << 20;
}

TEST_CASE("region: the limit holds and what is given back can be taken again", "[engine][arena]") {
  Region region;
  REQUIRE(region.reserve(8 * mib));
  std::vector<std::uint32_t> spans;
  while (const auto span = region.take(1, Region::Use::record)) spans.push_back(*span);
  CHECK(region.used_bytes() <= 8 * mib);
  CHECK(region.used_bytes() >= 7 * mib);
  std::vector<std::uint32_t> reserve;
  while (const auto span = region.take(1, Region::Use::structure)) reserve.push_back(*span);
  CHECK(reserve.size() == 8);  // the reserve is for structure
  while (const auto span = region.take(1, Region::Use::timer)) reserve.push_back(*span);
  CHECK(region.used_bytes() == 8 * mib);
  CHECK(reserve.size() == 12);  // and some of it for timers alone
  for (const std::uint32_t span : reserve) region.give(span, 1);
  for (const std::uint32_t span : spans) region.give(span, 1);
  CHECK(region.used_bytes() == 0);
  CHECK(region.take(100, Region::Use::record));  // the pieces have joined
}

TEST_CASE("arena: classes waste at most an eighth above 64 bytes and nothing in steps of 8",
          "[engine][arena]") {
  for (std::size_t bytes = 8; bytes <= Arena::large_bytes; ++bytes) {
    const std::size_t rounded = Arena::rounded(bytes);
    REQUIRE(rounded >= bytes);
    REQUIRE(rounded % 8 == 0);
    if (bytes <= 256) REQUIRE(rounded < bytes + 8);
    REQUIRE(rounded <= bytes + bytes / 4 + 8);
  }
}

TEST_CASE("arena: nodes have spans of their own, which are never left", "[engine][arena]") {
  Region region;
  REQUIRE(region.reserve(64 * mib));
  Arena arena{region};
  Arena::Cache cache{arena};
  constexpr std::size_t bytes = 448;
  std::vector<Handle> nodes;
  std::vector<Handle> records;
  for (int i = 0; i < 2'000; ++i) {
    nodes.push_back(cache.allocate_node(bytes, Region::Use::record));
    records.push_back(cache.allocate(bytes, Region::Use::record));
    REQUIRE((nodes.back() != 0 && records.back() != 0));
    REQUIRE(Region::span_of(nodes.back()) != Region::span_of(records.back()));
    REQUIRE(arena.bytes_at(nodes.back()) == Arena::rounded(bytes));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i % 10 == 0) continue;
    cache.free(nodes[i]);
    cache.free(records[i]);
  }
  cache.flush();
  CHECK(arena.choose_leaving(16) != 0);
  std::size_t leaving = 0;
  for (std::size_t i = 0; i < nodes.size(); i += 10) {
    CHECK_FALSE(arena.is_leaving(nodes[i]));
    leaving += arena.is_leaving(records[i]) ? 1 : 0;
  }
  CHECK(leaving != 0);
  arena.end_leaving();
  for (std::size_t i = 0; i < nodes.size(); i += 10) {
    cache.free(nodes[i]);
    cache.free(records[i]);
  }
  const Handle large = cache.allocate_node(100'000, Region::Use::record);
  CHECK(arena.bytes_at(large) == Arena::rounded(100'000));
  cache.free(large);
  cache.flush();
  static_cast<void>(arena.purge_all());
  CHECK(region.used_bytes() == region.charged_bytes());
}

TEST_CASE("arena: live records never overlap and their bytes stay", "[engine][arena]") {
  const auto seed = Catch::rngSeed();
  std::mt19937_64 random{seed};
  INFO("seed " << seed);
  Region region;
  REQUIRE(region.reserve(64 * mib));
  Arena arena{region};
  Arena::Cache cache{arena};
  struct Live {
    Handle handle;
    std::size_t bytes;
    unsigned char fill;
  };
  std::vector<Live> live;
  for (int step = 0; step < 50'000; ++step) {
    if (live.empty() || random() % 5 < 3) {
      const std::size_t bytes = 1 + random() % (random() % 50 == 0 ? 200'000 : 600);
      const Handle handle = cache.allocate(bytes, Region::Use::record);
      if (handle == 0) continue;
      const auto fill = static_cast<unsigned char>(random());
      std::memset(region.at(handle), fill, bytes);
      live.push_back({handle, bytes, fill});
    } else {
      std::swap(live[random() % live.size()], live.back());
      const auto* bytes = static_cast<const unsigned char*>(region.at(live.back().handle));
      REQUIRE(bytes[0] == live.back().fill);
      REQUIRE(bytes[live.back().bytes - 1] == live.back().fill);
      cache.free(live.back().handle);
      live.pop_back();
    }
  }
}

TEST_CASE("arena: records freed together serve again, each once, and their spans go back",
          "[engine][arena]") {
  const auto seed = Catch::rngSeed();
  std::mt19937_64 random{seed};
  INFO("seed " << seed);
  Region region;
  REQUIRE(region.reserve(64 * mib));
  Arena arena{region};
  Arena::Cache cache{arena};
  std::set<Handle> live;
  std::vector<Handle> order;
  for (int round = 0; round < 60; ++round) {
    const bool is_mixed = round % 3 != 0;
    const std::size_t usual = 8 + random() % 400;
    while (order.size() < 6'000) {
      const bool is_large = is_mixed && random() % 500 == 0;
      const std::size_t bytes = is_large ? 100'000 : is_mixed ? 8 + random() % 400 : usual;
      const Handle handle = random() % 10 == 0 && is_mixed
                                ? cache.allocate_node(bytes, Region::Use::record)
                                : cache.allocate(bytes, Region::Use::record);
      REQUIRE(handle != 0);
      REQUIRE(live.insert(handle).second);
      order.push_back(handle);
    }
    // Neighbours end together, or records from anywhere; some lie in spans that are to be left.
    if (round % 2 == 0) std::shuffle(order.begin(), order.end(), random);
    if (round % 5 == 0) static_cast<void>(arena.choose_leaving(16));
    for (std::size_t left = 2'000 + random() % 3'000; left != 0;) {
      const std::size_t count = std::min<std::size_t>(left, 1 + random() % 700);
      cache.free(std::span<const Handle>{order}.last(count));
      for (std::size_t i = 0; i < count; ++i, order.pop_back()) live.erase(order.back());
      left -= count;
    }
    if (round % 5 == 0) arena.end_leaving();
  }
  cache.free(std::span<const Handle>{order});
  cache.free(std::span<const Handle>{});
  cache.flush();
  static_cast<void>(arena.purge_all());
  CHECK(region.used_bytes() == region.charged_bytes());
}

TEST_CASE("arena: memory of one size serves another once it is free", "[engine][arena]") {
  Region region;
  REQUIRE(region.reserve(8 * mib));
  Arena arena{region};
  Arena::Cache cache{arena};
  std::vector<Handle> small;
  while (const Handle handle = cache.allocate(56, Region::Use::record)) small.push_back(handle);
  CHECK(small.size() > 7 * mib / 56 / 10 * 9);
  CHECK(cache.allocate(200, Region::Use::record) == 0);
  for (const Handle handle : small) cache.free(handle);
  cache.flush();
  CHECK(region.used_bytes() < mib);
  std::size_t large = 0;
  while (cache.allocate(200, Region::Use::record) != 0) ++large;
  CHECK(large > 7 * mib / 200 / 10 * 9);
}
