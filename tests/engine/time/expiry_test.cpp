// Time in a whole engine: when a record is dead, when its memory is back, who is notified.
// Words: dead = its end has come; swept = its memory is back; pass = the clock moves, advance runs.
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "engine/api/engine_impl.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Counts the events of a subscriber.
struct Events {
  explicit Events(Engine& source) : engine(source) {
    handle = engine.subscribe_expired([this](const ExpiredEvent& event) {
      const std::lock_guard lock{mutex};
      ++times[std::string{event.key}];
      changed.notify_all();
    });
  }
  std::size_t total() {
    const std::lock_guard lock{mutex};
    std::size_t sum = 0;
    for (const auto& [key, count] : times) sum += count;
    return sum;
  }
  std::size_t of(const std::string& key) {
    const std::lock_guard lock{mutex};
    return times[key];
  }

  Engine& engine;
  std::uint64_t handle = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::size_t> times;
};

}  // namespace

TEST_CASE("expiry: a record is dead from the millisecond its ttl ends, swept or not",
          "[engine][expiry]") {
  for (const bool swept : {false, true}) {
    EngineFixture f;
    REQUIRE(f.put("k", "v", Expiry::in(10ms)));
    f.clock.advance(9ms);
    if (swept) f.pass(0ms);
    CHECK(f.read("k") == "v");
    CHECK(f.store().ttl("k")->remaining == 1ms);
    f.clock.advance(1ms);
    if (swept) f.pass(0ms);
    CHECK(f.read("k") == "<none>");
    CHECK_FALSE(*f.store().exists("k"));
    CHECK_FALSE(f.store().ttl("k")->found);
    CHECK(f.engine->stats().records == (swept ? 0 : 1));
    CHECK(f.engine->size(0) == 0);  // the dead never count
    CHECK(*f.store().incr_by("k", 5) == 5);
  }
}

TEST_CASE("expiry: advance gives back what has ended, to the millisecond and to the byte",
          "[engine][expiry]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  EngineFixture f;
  std::multimap<std::int64_t, std::string> ends;
  for (int i = 0; i < 20'000; ++i) {
    // A third ends within the first wheel level, the others on the levels above.
    const auto ttl = static_cast<std::int64_t>(random() % (i % 3 == 0 ? 200 : 100'000)) + 1;
    const std::string key = "key" + std::to_string(i);
    REQUIRE(f.put(key, std::string(random() % 40, 'v'), Expiry::in(Millis{ttl})));
    ends.emplace(ttl, key);
  }
  REQUIRE(f.put("stays", "v"));
  Events events{*f.engine};
  std::int64_t now = 0;
  while (!ends.empty()) {
    const auto step = static_cast<std::int64_t>(random() % (now < 300 ? 7 : 5000));
    f.pass(Millis{step});
    now += step;
    ends.erase(ends.begin(), ends.upper_bound(now));
    REQUIRE(f.engine->stats().records == ends.size() + 1);
    REQUIRE(f.engine->stats().wheel_items == ends.size());
  }
  CHECK(events.total() == 20'000);
  CHECK(f.engine->stats().expired == 20'000);
  CHECK(f.engine->stats().bytes_records == 24);  // of "stays"
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("expiry: records of all kinds that end together leave every figure exact",
          "[engine][expiry]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  EngineFixture f;
  Policy policy;
  policy.result_ttl = policy.unique_ttl = 40ms;
  Claims ns = f.claims("ns", policy);
  REQUIRE(f.put("stays", "v"));
  constexpr std::array<std::size_t, 5> lengths{0, 9, 255, 256, 5'000};
  std::uint64_t ended = 0;
  for (int round = 0; round < 6; ++round) {
    std::uint64_t made = 0;
    for (int i = 0; i < 1'500; ++i) {
      const std::string key = std::to_string(round) + ":" + std::to_string(i);
      const auto db = static_cast<std::uint8_t>(random() % (round % 2 == 0 ? 2 : 16));
      const Expiry expiry = Expiry::in(Millis{30 + random() % 11});
      if (i % 10 == 0) {
        const ClaimOutcome granted = ns.claim({.key = key});
        REQUIRE(ns.complete({.key = key, .epoch = granted.epoch, .payload = "r"}).answer ==
                OwnerAnswer::ok);
      } else if (i % 10 == 1) {
        REQUIRE(f.store(db).append(key, "raw").ok());
        REQUIRE(f.store(db).expire(key, expiry).ok());
      } else {
        REQUIRE(f.put(key, std::string(lengths[random() % lengths.size()], 'v'), expiry, db));
      }
      ++made;
      if (i % 10 != 3) continue;
      REQUIRE(*f.store(db).del(key));
      --made;
    }
    // Flushed records are no ends, and while a snapshot runs what it needs is kept.
    std::uint64_t flushed = 0;
    if (round == 3) {
      flushed = f.engine->size(1);
      REQUIRE(f.engine->flush(1).has_value());
    }
    CHECK(f.engine->stats().records == made - flushed + 1);
    if (round == 4) {
      bool is_first = true;
      REQUIRE(f.engine->host()
                  .snapshot([&](const Mutation&) {
                    if (is_first) f.pass(40ms);
                    is_first = false;
                  })
                  .has_value());
    }
    f.pass(2'000ms);  // delete markers as well
    ended += made - flushed;
    const Stats stats = f.engine->stats();
    CHECK(stats.records == 1);
    CHECK(stats.records_with_ttl == 0);
    CHECK(stats.expired == ended);
    CHECK(stats.bytes_records == 24);  // of "stays"
    for (std::uint8_t db = 0; db < 16; ++db) CHECK(f.engine->size(db) == (db == 0 ? 1 : 0));
    CHECK(broken_rules(*f.engine) == "");
  }
}

TEST_CASE("expiry: advance stops at its budget and says so", "[engine][expiry]") {
  EngineFixture f;
  for (int i = 0; i < 1000; ++i) REQUIRE(f.put(std::to_string(i), "v", Expiry::in(5ms)));
  f.clock.advance(5ms);
  CHECK(f.engine->advance(100) == 0);
  CHECK(f.engine->stats().records == 900);
  CHECK(f.engine->stats().wheel_lag <= 5ms);
  CHECK(f.engine->advance(950) == 50);
  CHECK(f.engine->stats().records == 0);
}

TEST_CASE("expiry: each record that ended is reported once, by the call that removes it",
          "[engine][expiry]") {
  EngineFixture f;
  Events events{*f.engine};
  const auto end_in = [&](Bytes key, Millis ttl) { REQUIRE(f.put(key, "v", Expiry::in(ttl))); };
  for (const char* key : {"swept", "replaced", "deleted late", "deleted", "overwritten", "kept"}) {
    end_in(key, 10ms);
  }
  CHECK(*f.store().del("deleted"));
  end_in("overwritten", 20ms);
  REQUIRE(f.put("kept", "w", Expiry::keep()));
  REQUIRE(f.put("never", "v"));
  f.clock.advance(10ms);
  CHECK(events.total() == 0);
  REQUIRE(f.put("replaced", "new", Expiry::in(100ms)));
  CHECK(events.of("replaced") == 1);
  CHECK_FALSE(*f.store().del("deleted late"));
  f.pass(0ms);
  CHECK(events.of("swept") == 1);
  CHECK(events.of("replaced") == 1);
  CHECK(events.of("deleted late") == 1);
  CHECK(events.of("kept") == 1);
  CHECK(events.total() == 4);
  f.pass(10ms);
  CHECK(events.of("overwritten") == 1);
  f.pass(100ms);
  CHECK(events.of("replaced") == 2);  // the second life ended as well
  CHECK(events.total() == 6);

  f.engine->unsubscribe_expired(events.handle);
  f.engine->unsubscribe_expired(events.handle + 7);  // of no subscriber
  end_in("swept", 1ms);
  f.pass(1ms);
  CHECK(events.total() == 6);
  Events other{*f.engine};
  end_in("swept", 1ms);
  f.pass(1ms);
  CHECK(other.total() == 1);
  CHECK(events.total() == 6);
}

TEST_CASE("expiry: claims end by their own clocks and give memory back in two steps",
          "[engine][expiry][claims]") {
  EngineFixture f;
  Events events{*f.engine};
  Policy policy;
  policy.lease = 100ms;
  policy.result_ttl = 1000ms;
  policy.unique_ttl = 5000ms;
  Claims ns = f.claims("ns", policy);
  const ClaimOutcome granted = ns.claim({.key = "k"});
  const std::string result(3000, 'r');
  REQUIRE(ns.complete({.key = "k", .epoch = granted.epoch, .payload = result}).answer ==
          OwnerAnswer::ok);
  f.pass(999ms);
  CHECK(ns.claim({.key = "k"}).result == result);
  CHECK(f.engine->stats().bytes_records > 3000);
  f.pass(1ms);
  CHECK(ns.claim({.key = "k"}).result_expired);
  CHECK(f.engine->stats().bytes_records < 300);
  CHECK(events.total() == 0);
  f.pass(3999ms);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::replay);
  f.pass(1ms);
  CHECK(f.engine->stats().records == 0);
  CHECK(events.of("ns:k") == 1);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
}

TEST_CASE("expiry: a result that could not be trimmed still goes with its record",
          "[engine][expiry][claims]") {
  EngineFixture f;
  Policy policy;
  policy.result_ttl = 1000ms;
  policy.unique_ttl = 5000ms;
  Claims ns = f.claims("ns", policy);
  const ClaimOutcome granted = ns.claim({.key = "k"});
  REQUIRE(ns.complete({.key = "k", .epoch = granted.epoch, .payload = "result"}).answer ==
          OwnerAnswer::ok);
  f.journal.set_accepts_writes(false);
  f.pass(1000ms);
  CHECK(ns.claim({.key = "k"}).result_expired);  // answered as ended all the same
  f.journal.set_accepts_writes(true);
  f.pass(4000ms);
  CHECK(f.engine->stats().records == 0);
}

TEST_CASE("expiry: a step of the wall clock ends nothing and pins nothing", "[engine][expiry]") {
  EngineFixture f;
  Policy policy;
  policy.lease = 1000ms;
  Claims ns = f.claims("ns", policy);
  REQUIRE(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
  REQUIRE(f.put("in", "v", Expiry::in(1000ms)));
  REQUIRE(f.put("at", "v", Expiry::at(f.store().from_unix_ms(f.clock.unix_ms() + 1000))));
  const Millis year{std::int64_t{365} * 24 * 3600 * 1000};
  for (const Millis step : {year, -2 * year, year}) {
    f.clock.step_wall(step);
    f.pass(0ms);
    CHECK(f.read("in") == "v");
    CHECK(f.read("at") == "v");
    CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::in_flight);
  }
  f.clock.step_wall(-year);
  f.pass(999ms);
  CHECK(f.read("at") == "v");
  f.pass(1ms);
  CHECK(f.read("in") == "<none>");
  CHECK(f.read("at") == "<none>");
  CHECK(ns.claim({.key = "k"}).takeover);
}

TEST_CASE("expiry: a hundred years are kept to the millisecond, one more is refused",
          "[engine][expiry][limits]") {
  EngineFixture f;
  REQUIRE(f.put("k", "v", Expiry::in(limits::ttl_max)));
  CHECK(code_of(f.store().set("k", "w", {.expiry = Expiry::in(limits::ttl_max + 1ms)})) ==
        ErrorCode::invalid_expire);
  CHECK(code_of(f.store().set("k", "w", {.expiry = Expiry::in(0ms)})) == ErrorCode::invalid_expire);
  CHECK(f.store().ttl("k")->remaining == limits::ttl_max);
  f.pass(limits::ttl_max - 1ms);
  CHECK(f.read("k") == "v");
  CHECK(f.engine->stats().records == 1);
  f.pass(1ms);
  CHECK(f.engine->stats().records == 0);
}

TEST_CASE("expiry: the background thread removes what has ended", "[engine][expiry][race]") {
  EngineFixture f{{.background = 1ms}};
  Events events{*f.engine};
  for (int i = 0; i < 100; ++i) REQUIRE(f.put(std::to_string(i), "v", Expiry::in(50ms)));
  f.clock.advance(49ms);
  CHECK(f.read("7") == "v");
  f.clock.advance(1ms);
  {
    std::unique_lock lock{events.mutex};
    events.changed.wait(lock, [&] { return events.times.size() == 100; });
  }
  CHECK(events.total() == 100);
  CHECK(f.engine->size(0) == 0);
}

TEST_CASE("expiry: a thread whose time lags behind the wheel's loses no timer",
          "[engine][expiry]") {
  EngineFixture f;
  engine::EngineUpkeep& upkeep = semel::engine::impl_of(*f.engine).upkeep();
  const Timestamp now = f.clock.now();
  // One thread has read a later time than another, which read its own before it waited.
  static_cast<void>(upkeep.advance(now + 10ms, 1000, true));
  REQUIRE(f.put("k", "v", Expiry::at(now + 10ms)));
  static_cast<void>(upkeep.advance(now + 5ms, 1000, true));
  f.pass(20ms);
  CHECK(f.engine->stats().records == 0);
}

TEST_CASE("expiry: timers of records that ended early do not pile up", "[engine][expiry]") {
  EngineFixture f;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 3000; ++i) {
      REQUIRE(f.put(std::to_string(i), "v", Expiry::in(Millis{3'600'000 + round})));
    }
    f.pass(1ms);
  }
  // 300,000 were set, 3,000 are alive; some slack is left alone.
  CHECK(f.engine->stats().wheel_items < 150'000);
  f.pass(3'600'100ms);
  CHECK(f.engine->stats().records == 0);
  CHECK(f.engine->stats().wheel_items == 0);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("expiry: a key that is replaced, deleted and expired at once ends in one of these states",
          "[engine][expiry][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f{{.shard_count = 1}};
  Events events{*f.engine};
  std::atomic<std::uint64_t> created{0};
  std::atomic<std::uint64_t> deleted{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random{seed + t};
      for (int i = 0; i < 10'000; ++i) {
        const std::string key = std::to_string(random() % 16);
        if (random() % 3 != 0) {
          const auto set = f.store().set(
              key, "v",
              {.condition = Condition::if_absent, .expiry = Expiry::in(Millis{1 + random() % 8})});
          if (set.ok() && set->stored) created.fetch_add(1, std::memory_order_relaxed);
        } else if (const auto del = f.store().del(key); del.ok() && *del) {
          deleted.fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  }
  for (int i = 0; i < 3000; ++i) {
    f.clock.advance(1ms);
    static_cast<void>(f.engine->advance(20));
  }
  for (std::thread& thread : threads) thread.join();
  f.pass(100ms);
  // Whatever the interleaving, each life ended exactly once: deleted, or reported as expired.
  CHECK(created.load(std::memory_order_acquire) ==
        deleted.load(std::memory_order_acquire) + events.total());
  CHECK(f.engine->stats().records == 0);
  CHECK(f.engine->stats().expired == events.total());
  CHECK(broken_rules(*f.engine) == "");
}

}  // namespace semel::tests
