// Eviction: never a claim, never a key of a database that is no cache, enough, and the right ones.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <list>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <unordered_map>

#include "engine/api/eviction_calls.hpp"
#include "semel/hashes.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using engine::EvictionOrder;
using engine::EvictionTerms;

namespace {

constexpr std::size_t memory = std::size_t{64} << 20;
constexpr std::uint16_t all_databases = 0xffff;

struct CacheFixture : EngineFixture {
  explicit CacheFixture(Options options = {.memory_bytes = memory}) : EngineFixture(options) {}
  /// Limits what is counted to `room` more than now.
  void limit(EvictionTerms terms, std::uint64_t room) {
    terms.limit_bytes = engine::counted_bytes(*engine) + room;
    limit_bytes = terms.limit_bytes;
    REQUIRE(engine::set_eviction(*engine, terms));
  }
  [[nodiscard]] bool has_room() { return engine::keeps_within_limit(*engine); }
  [[nodiscard]] std::uint64_t counted() { return engine::counted_bytes(*engine); }
  [[nodiscard]] bool has(Bytes key, std::uint8_t db = 0) {
    const Bytes keys[] = {key};
    return store(db).exists(keys).value() == 1;
  }
  std::uint64_t limit_bytes = 0;
};

std::string numbered(const char* name, std::uint64_t number) {
  return name + std::to_string(number);
}

}  // namespace

TEST_CASE("eviction: random work in a small memory loses keys of caches and nothing else",
          "[engine][eviction]") {
  const auto order =
      GENERATE(EvictionOrder::lru, EvictionOrder::lfu, EvictionOrder::random, EvictionOrder::ttl);
  const bool only_with_ttl = GENERATE(false, true);
  const auto seed = GENERATE(std::uint64_t{1}, std::uint64_t{2});
  INFO("order " << static_cast<int>(order) << ", only with ttl " << only_with_ttl << ", seed "
                << seed);
  CacheFixture one;
  one.limit({.order = order, .only_with_ttl = only_with_ttl, .databases = 0b110, .seed = seed},
            300'000);
  std::set<std::pair<std::uint8_t, std::string>> gone;
  engine::on_evicted(*one.engine,
                     [&](std::uint8_t db, Bytes key) { gone.emplace(db, std::string{key}); });
  Claims claims = one.claims("work");
  std::mt19937_64 random{seed};
  const auto up_to = [&](std::uint64_t most) { return random() % most; };
  std::map<std::pair<std::uint8_t, std::string>, std::pair<std::string, bool>> model;
  std::set<std::string> jobs;
  std::uint64_t refused = 0;
  std::uint64_t staying = 0;
  for (int step = 0; step < 20'000; ++step) {
    gone.clear();
    const bool has_room = one.has_room();
    for (const auto& each : gone) {
      INFO("evicted " << int{each.first} << " " << each.second);
      const auto found = model.find(each);
      REQUIRE(found != model.end());
      REQUIRE((each.first == 1 || each.first == 2));
      const bool needs_ttl = only_with_ttl || order == EvictionOrder::ttl;
      REQUIRE((!needs_ttl || found->second.second));
      model.erase(found);
    }
    const auto db = static_cast<std::uint8_t>(up_to(4));
    const std::string key = numbered("key", up_to(4'000));
    const std::uint64_t what = up_to(100);
    if (what < 50) {
      if (!has_room) {
        ++refused;
        continue;
      }
      // Without a bound what is no cache would fill all.
      const bool stays = db == 0 || db == 3;
      if (stays && !model.contains({db, key}) && ++staying > 600) continue;
      const bool has_ttl = up_to(2) == 0;
      const std::string value(up_to(300), 'v');
      REQUIRE(one.put(key, value, has_ttl ? Expiry::in(1h) : Expiry::clear(), db));
      model[{db, key}] = {value, has_ttl};
    } else if (what < 90) {
      const auto found = model.find({db, key});
      REQUIRE(one.read(key, db) == (found == model.end() ? "<none>" : found->second.first));
    } else if (what < 97) {
      const Bytes keys[] = {key};
      REQUIRE(one.store(db).del(keys).value() == static_cast<std::int64_t>(model.erase({db, key})));
    } else if (jobs.size() < 200 && has_room) {
      const std::string job = numbered("job", jobs.size());
      REQUIRE(claims.claim({.key = job}).answer == ClaimAnswer::granted);
      jobs.insert(job);
    }
  }
  CHECK(one.engine->stats().evicted > 100);
  if (!only_with_ttl && order != EvictionOrder::ttl) CHECK(refused == 0);
  for (const auto& [where, held] : model) {
    REQUIRE(one.read(where.second, where.first) == held.first);
  }
  for (const std::string& job : jobs) {
    REQUIRE(claims.claim({.key = job}).answer == ClaimAnswer::in_flight);
  }
  CHECK(broken_rules(*one.engine).empty());
}

TEST_CASE("eviction: nothing goes where nothing may", "[engine][eviction]") {
  CacheFixture one;
  const auto fill = [&] {
    for (std::uint64_t i = 0; i < 100'000 && one.has_room(); ++i)
      one.put(numbered("k", i), "value");
  };
  SECTION("no database is a cache") {
    one.limit({.order = EvictionOrder::lru, .databases = 0b10}, 100'000);
  }
  SECTION("no key has a ttl") {
    one.limit({.order = EvictionOrder::lru, .only_with_ttl = true, .databases = all_databases},
              100'000);
  }
  SECTION("there is no policy") {
    one.limit({.databases = all_databases}, 100'000);
  }
  fill();
  CHECK_FALSE(one.has_room());
  CHECK(one.engine->stats().evicted == 0);
  const std::uint64_t records = one.engine->size(0);
  for (std::uint64_t i = 0; i < records; ++i) REQUIRE(one.has(numbered("k", i)));
  // What ends makes room, at once.
  for (std::uint64_t i = 0; i < 50; ++i) {
    const std::string key = numbered("k", i);
    const Bytes keys[] = {key};
    REQUIRE(one.store().del(keys).value() == 1);
  }
  CHECK(one.has_room());
}

TEST_CASE("eviction: a key that may go later is found although there was none before",
          "[engine][eviction]") {
  CacheFixture one;
  one.limit({.order = EvictionOrder::lru, .only_with_ttl = true, .databases = 1}, 50'000);
  std::uint64_t count = 0;
  for (; one.has_room(); ++count) one.put(numbered("k", count), std::string(100, 'v'));
  REQUIRE_FALSE(one.has_room());
  REQUIRE(one.store().expire("k7", Expiry::in(1h)).value());
  CHECK(one.has_room());
  CHECK_FALSE(one.has("k7"));
  CHECK(one.engine->stats().evicted == 1);
}

TEST_CASE("eviction: a SWAPDB makes a cache of what is under the number now",
          "[engine][eviction]") {
  CacheFixture one;
  one.limit({.order = EvictionOrder::random, .databases = 0b10}, 50'000);
  while (one.has_room()) one.put(numbered("k", one.engine->size(0)), std::string(100, 'v'));
  REQUIRE(one.engine->stats().evicted == 0);
  REQUIRE(one.engine->swap_db(0, 1));
  CHECK(one.has_room());
  CHECK(one.engine->stats().evicted > 0);
}

TEST_CASE("eviction: an engine that is full makes room by itself", "[engine][eviction]") {
  constexpr std::size_t small = std::size_t{8} << 20;
  CacheFixture one{Options{.memory_bytes = small, .shard_count = 2}};
  REQUIRE(
      engine::set_eviction(*one.engine, {.order = EvictionOrder::lru, .databases = 1, .seed = 5}));
  Claims claims = one.claims("work");
  REQUIRE(claims.claim({.key = "job"}).answer == ClaimAnswer::granted);
  std::mt19937_64 random{7};
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    // Of all sizes, so that what went has to be moved together.
    REQUIRE(one.put(numbered("k", i), std::string(random() % 2'000, 'v')));
  }
  CHECK(one.engine->stats().evicted > 10'000);
  CHECK(one.engine->size(0) > 1'000);
  CHECK(claims.claim({.key = "job"}).answer == ClaimAnswer::in_flight);
  CHECK(broken_rules(*one.engine).empty());
}

TEST_CASE("eviction: an evicted key is erased in the journal, with a newer version",
          "[engine][eviction]") {
  CacheFixture one;
  one.limit({.order = EvictionOrder::lru, .databases = 1}, 20'000);
  std::set<std::string> gone;
  engine::on_evicted(*one.engine, [&](std::uint8_t, Bytes key) { gone.emplace(key); });
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    REQUIRE(one.has_room());
    REQUIRE(one.put(numbered("k", i), std::string(100, 'v')));
  }
  REQUIRE(gone.size() > 100);
  std::map<std::string, Mutation::Type> last;
  one.journal.replay(
      [&](Ticket, const Mutation& mutation) { last[std::string{mutation.key}] = mutation.type; });
  for (const std::string& key : gone) REQUIRE(last.at(key) == Mutation::Type::erase);
  EngineFixture twin{Options{.memory_bytes = memory}};
  one.journal.replay(
      [&](Ticket, const Mutation& mutation) { REQUIRE(twin.engine->host().restore(mutation)); });
  Contents here = contents_of(*one.engine);
  CHECK(here == contents_of(*twin.engine));
}

TEST_CASE("eviction: the key with the nearest end goes first", "[engine][eviction]") {
  CacheFixture one{Options{.memory_bytes = memory, .shard_count = 1}};
  EvictionTerms terms{
      .order = EvictionOrder::ttl, .only_with_ttl = true, .databases = 1, .samples = 1'000};
  constexpr std::uint64_t count = 200;
  one.limit(terms, 1 << 20);
  for (std::uint64_t i = 0; i < count; ++i) {
    REQUIRE(one.put(numbered("k", i), std::string(1'000, 'v'),
                    Expiry::in(Millis{1'000'000 + static_cast<std::int64_t>(i * 7 % count)})));
  }
  std::vector<std::uint64_t> gone;
  engine::on_evicted(*one.engine, [&](std::uint8_t, Bytes key) {
    gone.push_back(std::stoull(std::string{key.substr(1)}) * 7 % count);
  });
  terms.limit_bytes = one.counted() - 50'000;
  REQUIRE(engine::set_eviction(*one.engine, terms));
  REQUIRE(one.has_room());
  REQUIRE(gone.size() > 30);
  // All keys were compared for each that went.
  for (std::size_t i = 0; i < gone.size(); ++i) CHECK(gone[i] == i);
}

TEST_CASE("eviction: idle time has redis-server's resolution, frequency its counter",
          "[engine][eviction]") {
  CacheFixture one;
  REQUIRE(engine::set_eviction(*one.engine, {.order = EvictionOrder::lru, .databases = 0b11}));
  const auto idle = [&](Bytes key) { return engine::use_of(*one.engine, {0, key})->idle_seconds; };
  REQUIRE(one.put("k", "v"));
  CHECK(idle("k") == 0);
  one.pass(90s);
  CHECK(idle("k") == 90);
  CHECK(one.has("k"));
  CHECK(one.store().ttl("k").ok());
  CHECK(one.store().type("k").value() == Kind::string);
  CHECK(idle("k") == 90);  // these are no uses
  {
    const engine::OnlyLooks looks{*one.engine};
    CHECK(one.read("k") == "v");
  }
  CHECK(idle("k") == 90);
  CHECK(one.read("k") == "v");
  CHECK(idle("k") == 0);
  one.pass(5s);
  REQUIRE(one.store().expire("k", Expiry::in(1h)).value());
  CHECK(idle("k") == 0);
  CHECK_FALSE(engine::use_of(*one.engine, {2, "k"}).has_value());
  REQUIRE(one.engine->hashes(1).hset("h", "f", "v").ok());
  one.pass(7s);
  CHECK(engine::use_of(*one.engine, {1, "h"})->idle_seconds == 7);
  REQUIRE(one.engine->hashes(1).hget("h", "f").ok());
  CHECK(engine::use_of(*one.engine, {1, "h"})->idle_seconds == 0);

  REQUIRE(engine::set_eviction(*one.engine,
                               {.order = EvictionOrder::lfu, .databases = 1, .lfu_log_factor = 0}));
  const auto often = [&](Bytes key) { return engine::use_of(*one.engine, {0, key})->frequency; };
  REQUIRE(one.put("f", "v"));
  CHECK(often("f") == 5);
  for (int i = 0; i < 10; ++i) CHECK(one.read("f") == "v");
  CHECK(often("f") == 15);
  one.pass(3min);
  CHECK(often("f") == 12);
  for (int i = 0; i < 400; ++i) CHECK(one.read("f") == "v");
  CHECK(often("f") == 255);
}

namespace {

/// Share of reads that find their key in a cache of `capacity` records, by a popularity like
/// 1/rank.
template <class Cache>
double hit_rate(std::uint64_t seed, Cache&& cache) {
  constexpr std::uint64_t keys = 20'000;
  constexpr int reads = 120'000;
  std::vector<double> weights;
  for (std::uint64_t i = 0; i < keys; ++i) weights.push_back(1 / std::pow(double(i + 1), 0.9));
  std::discrete_distribution<std::uint64_t> choose{weights.begin(), weights.end()};
  std::mt19937_64 random{seed};
  int hits = 0;
  for (int i = 0; i < reads; ++i) {
    if (cache(numbered("key:", choose(random))) && i >= reads / 2) ++hits;
  }
  return double(hits) / (reads - reads / 2);
}

double rate_of(EvictionOrder order, std::uint64_t seed, std::uint64_t& capacity) {
  CacheFixture one;
  one.limit({.order = order, .databases = 1, .seed = seed}, 500'000);
  int step = 0;
  const double rate = hit_rate(seed, [&](const std::string& key) {
    if (++step % 100 == 0) one.clock.advance(1s);
    if (one.store().get(key).value()) return true;
    REQUIRE(one.has_room());
    REQUIRE(one.put(key, std::string(200, 'v')));
    return false;
  });
  capacity = one.engine->size(0);
  return rate;
}

}  // namespace

TEST_CASE("eviction: lru and lfu keep what is used, close to what an exact order would",
          "[engine][eviction]") {
  const auto seed = GENERATE(std::uint64_t{11}, std::uint64_t{12});
  std::uint64_t capacity = 0;
  const double by_chance = rate_of(EvictionOrder::random, seed, capacity);
  const double lfu = rate_of(EvictionOrder::lfu, seed, capacity);
  const double lru = rate_of(EvictionOrder::lru, seed, capacity);
  std::list<std::string> order;
  std::unordered_map<std::string, std::list<std::string>::iterator> places;
  const double exact = hit_rate(seed, [&](const std::string& key) {
    const auto found = places.find(key);
    if (found != places.end()) order.splice(order.begin(), order, found->second);
    if (found != places.end()) return true;
    if (order.size() >= capacity) {
      places.erase(order.back());
      order.pop_back();
    }
    order.push_front(key);
    places[key] = order.begin();
    return false;
  });
  // The best that could be done: the most popular keys stay.
  const double ideal =
      hit_rate(seed, [&](const std::string& key) { return std::stoull(key.substr(4)) < capacity; });
  INFO("capacity " << capacity << ": random " << by_chance << ", lru " << lru << ", exact lru "
                   << exact << ", lfu " << lfu << ", ideal " << ideal);
  CHECK(lru > by_chance + 0.02);
  CHECK(lru > exact - 0.02);
  CHECK(lfu > lru);
  CHECK(lfu > by_chance + 0.05);
  CHECK(lfu < ideal + 0.02);
}

TEST_CASE("eviction: 16 threads stay within the limit and lose nothing but cached keys",
          "[engine][eviction][threads]") {
  constexpr unsigned threads = 16;
  constexpr std::uint64_t each = 4'000;
  CacheFixture one;
  one.limit({.order = EvictionOrder::lru, .databases = 0b10}, 1'000'000);
  std::atomic<std::uint64_t> told{0};
  engine::on_evicted(*one.engine, [&](std::uint8_t db, Bytes) { told += db == 1 ? 1 : 1'000'000; });
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> above{0};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      std::mt19937_64 random{t};
      for (std::uint64_t i = 0; i < each; ++i) {
        if (!engine::keeps_within_limit(*one.engine)) ++refused;
        const std::string key = numbered("k", random() % 100'000);
        if (!one.engine->store(1).set(key, std::string(random() % 400, 'v')).ok()) ++refused;
        static_cast<void>(one.engine->store(1).get(numbered("k", random() % 100'000)));
        if (i % 100 == 0 && !one.engine->store(0).set(numbered("stays", t * each + i), "v").ok()) {
          ++refused;
        }
        if (engine::counted_bytes(*one.engine) > one.limit_bytes + 200'000) ++above;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  CHECK(refused == 0);
  CHECK(above == 0);
  CHECK(one.engine->stats().evicted == told);
  CHECK(told > 1'000);
  CHECK(one.engine->size(0) == threads * each / 100);
  one.engine->host().quiesce();
  CHECK(broken_rules(*one.engine).empty());
}

TEST_CASE("eviction: a replica refuses it", "[engine][eviction]") {
  ManualClock clock;
  Options options{.clock = &clock, .memory_bytes = memory};
  options.replicated = true;
  const auto replica = open_engine(options);
  CHECK(
      engine::set_eviction(*replica, {.order = EvictionOrder::lru, .databases = 1}).error().code ==
      ErrorCode::bad_option);
  CHECK(engine::set_eviction(*replica, {}));
}

}  // namespace semel::tests
