// Iteration: what was there from start to end is returned, whatever happens meanwhile.
// Words: steady keys = those that do not change; churn = writes that make the table grow and
// rebuild.
#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Scans to the end and returns the keys; `between` runs after each step.
template <class Between>
std::multiset<std::string> scan_all(Engine& engine, const ScanOptions& options, Between&& between) {
  std::multiset<std::string> keys;
  std::uint64_t cursor = 0;
  do {
    const auto next = engine.scan(
        cursor, options, [&](const ScanItem& item) { keys.insert(std::string{item.key}); });
    REQUIRE(next.has_value());
    cursor = *next;
    between();
  } while (cursor != 0);
  return keys;
}
std::multiset<std::string> scan_all(Engine& engine, const ScanOptions& options) {
  return scan_all(engine, options, [] {});
}

std::string steady(int i) {
  return "steady" + std::to_string(i);
}

bool has_all_steady(const std::multiset<std::string>& keys, int count) {
  for (int i = 0; i < count; ++i) {
    if (!keys.contains(steady(i))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("scan: finds every record exactly once while nothing changes, at any count",
          "[engine][scan]") {
  EngineFixture f{{.shard_count = 4}};
  CHECK(scan_all(*f.engine, {}).empty());
  for (int i = 0; i < 10'000; ++i) REQUIRE(f.put(steady(i), "v"));
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{10}, std::size_t{1000}, limits::scan_count_max}) {
    ScanOptions options;
    options.count = count;
    std::size_t steps = 0;
    const auto keys = scan_all(*f.engine, options, [&] { ++steps; });
    CHECK(keys.size() == 10'000);
    CHECK(has_all_steady(keys, 10'000));
    CHECK(steps <= 10'000 / count * 20 + 100);
  }
}

TEST_CASE("scan: an item carries all of its record", "[engine][scan]") {
  EngineFixture f;
  Claims ns = f.claims("ns", {.db = 4});
  const ClaimOutcome granted = ns.claim({.key = "job", .owner = "worker"});
  const SetResult set = *f.store(2).set("text", "value", {.expiry = Expiry::in(50ms)});
  int seen = 0;
  REQUIRE(f.engine
              ->scan(0, {.count = 1000},
                     [&](const ScanItem& item) {
                       ++seen;
                       if (item.kind == Kind::string) {
                         CHECK(item.db == 2);
                         CHECK(item.key == "text");
                         CHECK(item.value == "value");
                         CHECK(item.due == f.clock.now() + 50ms);
                         CHECK(item.version == set.version);
                         CHECK(item.claim == nullptr);
                       } else {
                         CHECK(item.db == 4);
                         CHECK(item.key == "ns:job");
                         REQUIRE(item.claim != nullptr);
                         CHECK(item.claim->owner == "worker");
                         CHECK(item.claim->epoch == granted.epoch);
                       }
                     })
              .ok());
  CHECK(seen == 2);
}

TEST_CASE("scan: filters by database, kind, prefix and state, alone and together",
          "[engine][scan]") {
  EngineFixture f;
  Policy policy;
  policy.lease = 100ms;
  Claims ns = f.claims("ns", policy);
  Policy doubtful = policy;
  doubtful.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  Claims pay = f.claims("pay", doubtful);
  REQUIRE(f.put("ns", "string"));
  REQUIRE(f.put("ns:string", "string"));
  REQUIRE(f.put("ns:string", "string", Expiry::clear(), 1));
  static_cast<void>(ns.claim({.key = "held"}));
  static_cast<void>(pay.claim({.key = "held"}));
  static_cast<void>(ns.complete({.key = "done", .epoch = ns.claim({.key = "done"}).epoch}));
  static_cast<void>(ns.fail({.key = "failed",
                             .epoch = ns.claim({.key = "failed"}).epoch,
                             .on_failure = Policy::OnFailure::keep}));
  static_cast<void>(ns.fail({.key = "gone", .epoch = ns.claim({.key = "gone"}).epoch}));

  using Keys = std::multiset<std::string>;
  const auto with = [&](const ScanOptions& options) { return scan_all(*f.engine, options); };
  CHECK(with({.db = 1}) == Keys{"ns:string"});
  CHECK(with({.kind = Kind::string}) == Keys{"ns", "ns:string", "ns:string"});
  CHECK(with({.kind = Kind::claim}) == Keys{"ns:done", "ns:failed", "ns:held", "pay:held"});
  CHECK(with({.prefix = "ns:s"}) == Keys{"ns:string", "ns:string"});
  CHECK(with({.db = 0, .kind = Kind::string, .prefix = "ns:"}) == Keys{"ns:string"});
  CHECK(with({.state = ClaimState::held}) == Keys{"ns:held", "pay:held"});
  CHECK(with({.state = ClaimState::done}) == Keys{"ns:done"});
  CHECK(with({.state = ClaimState::failed, .prefix = "ns"}) == Keys{"ns:failed"});
  CHECK(with({.state = ClaimState::in_doubt}).empty());
  CHECK(with({.prefix = "nobody"}).empty());
  f.clock.advance(100ms);
  CHECK(with({.state = ClaimState::in_doubt}) == Keys{"pay:held"});
  CHECK(with({.state = ClaimState::held}) == Keys{"ns:held"});
}

TEST_CASE("scan: the dead are not returned, swept or not", "[engine][scan]") {
  EngineFixture f;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(f.put(steady(i), "v", i % 2 == 0 ? Expiry::in(10ms) : Expiry::clear()));
  }
  f.clock.advance(9ms);
  CHECK(scan_all(*f.engine, {}).size() == 100);
  f.clock.advance(1ms);
  CHECK(scan_all(*f.engine, {}).size() == 50);
  f.pass(0ms);
  CHECK(scan_all(*f.engine, {}).size() == 50);
}

TEST_CASE("scan: count 1..scan_count_max is taken, and a bad cursor or database is refused",
          "[engine][scan][limits]") {
  EngineFixture f;
  REQUIRE(f.put("k", "v"));
  const auto nothing = [](const ScanItem&) {};
  CHECK(code_of(f.engine->scan(0, {.count = 0}, nothing)) == ErrorCode::bad_option);
  CHECK(f.engine->scan(0, {.count = limits::scan_count_max}, nothing).has_value());
  CHECK(code_of(f.engine->scan(0, {.count = limits::scan_count_max + 1}, nothing)) ==
        ErrorCode::bad_option);
  CHECK(code_of(f.engine->scan(0, {.db = limits::db_count}, nothing)) ==
        ErrorCode::db_out_of_range);
  CHECK(code_of(f.engine->scan(17, {}, nothing)) == ErrorCode::bad_cursor);  // shard 16 of 16
  // Numbers that were not handed out end in an error or in a cursor, never in foreign memory.
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int i = 0; i < 20'000; ++i) {
    std::uint64_t cursor = random() >> (random() % 64);
    for (int steps = 0; steps < 3 && cursor != 0; ++steps) {
      const auto next = f.engine->scan(cursor, {.count = 1 + random() % 20}, nothing);
      if (!next.ok()) REQUIRE(next.error().code == ErrorCode::bad_cursor);
      cursor = next.ok() ? *next : 0;
    }
  }
}

TEST_CASE("scan: steady keys are returned while segments split between the steps",
          "[engine][scan]") {
  EngineFixture f{{.shard_count = 1}};
  for (int i = 0; i < 1000; ++i) REQUIRE(f.put(steady(i), "v"));
  int added = 0;
  const auto keys = scan_all(*f.engine, {}, [&] {
    // Grows fast at first; a scan that never ended would be caught by the limit.
    for (int i = 0; i < 200 && added < 60'000; ++i) {
      REQUIRE(f.put("added" + std::to_string(added++), "v"));
    }
  });
  CHECK(f.engine->stats().growth_steps >= 8);
  CHECK(has_all_steady(keys, 1000));
}

TEST_CASE("scan: steady keys are returned while segments are rebuilt between the steps",
          "[engine][scan]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  EngineFixture f{{.shard_count = 1}};
  for (int i = 0; i < 500; ++i) REQUIRE(f.put(steady(i), "v"));
  for (int round = 0; round < 10; ++round) {
    ScanOptions options;
    options.count = 1 + random() % 30;
    const auto keys = scan_all(*f.engine, options, [&] {
      for (int i = 0; i < 50; ++i) {  // short lives leave tombstones behind
        const std::string key = "short" + std::to_string(random());
        REQUIRE(f.put(key, "v"));
        REQUIRE(*f.store().del(key));
      }
    });
    CHECK(has_all_steady(keys, 500));
  }
  CHECK(f.engine->stats().growth_steps >= 3);
  CHECK(f.engine->stats().slots < 10'000);  // cleaned, not only split
}

TEST_CASE("scan: steady keys are returned while two threads churn", "[engine][scan][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f{{.shard_count = 2}};
  constexpr int count = 1500;
  for (int i = 0; i < count; ++i) REQUIRE(f.put(steady(i), "v"));
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random{seed + t};
      for (int i = 0; i < 60'000; ++i) {
        const std::string key = "churn" + std::to_string(random() % 20'000);
        if (random() % 2 == 0) {
          static_cast<void>(f.put(key, "v", Expiry::in(5ms)));
        } else {
          static_cast<void>(f.store().del(key));
        }
        if (i % 100 == 0) f.pass(1ms);
        // A steady key may change its value: it is there all the time.
        if (i % 10 == 0) static_cast<void>(f.put(steady(static_cast<int>(random() % count)), "w"));
      }
      done.store(true, std::memory_order_release);
    });
  }
  int scans = 0;
  bool complete = true;
  do {
    ScanOptions options;
    options.count = 100;
    options.prefix = "steady";
    complete = complete && has_all_steady(scan_all(*f.engine, options), count);
    ++scans;
  } while (!done.load(std::memory_order_acquire));
  for (std::thread& thread : threads) thread.join();
  INFO("scans " << scans);
  CHECK(complete);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("scan: the visitor may use the engine", "[engine][scan]") {
  EngineFixture f;
  for (int i = 0; i < 1000; ++i) REQUIRE(f.put(steady(i), "v"));
  std::uint64_t cursor = 0;
  do {
    cursor = *f.engine->scan(cursor, {}, [&](const ScanItem& item) {
      REQUIRE(*f.store().del(item.key));
      auto all = f.engine->section({});
      REQUIRE(all.has_value());
    });
  } while (cursor != 0);
  CHECK(f.engine->size(0) == 0);
}

}  // namespace semel::tests
