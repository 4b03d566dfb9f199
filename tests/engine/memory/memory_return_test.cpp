// Memory that comes back. Vocabulary: full = a new record was refused; thinned out = nine of ten
// records deleted; gone = all of them.
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "engine/api/engine_impl.hpp"
#include "engine/time/ttl_wheel.hpp"
#include "semel/engine_host.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::string key_of(std::size_t i) {
  return "key" + std::to_string(i);
}

/// Puts records until one is refused; returns how many were accepted.
std::size_t fill(EngineFixture& f, Bytes value, Expiry expiry = Expiry::clear(),
                 std::size_t first = 0) {
  std::size_t count = 0;
  for (;; ++count) {
    const auto result = f.store().set(key_of(first + count), value, {.expiry = expiry});
    if (result.has_value()) continue;
    REQUIRE(result.error().code == ErrorCode::memory_full);
    return count;
  }
}

/// What is used but for the table, which does not shrink.
std::size_t used_beside_table(const EngineFixture& f) {
  const Stats stats = f.engine->stats();
  return stats.bytes_used - stats.bytes_table;
}

}  // namespace

TEST_CASE("memory: one key that is claimed and given back for ever takes no more than one",
          "[engine][memory][attack][fault-19]") {
  // No thread calls advance(), and the clock moves a little, as it would.
  ManualClock clock;
  const auto engine = open_engine({.clock = &clock, .memory_bytes = 4 * mib, .shard_count = 4});
  for (const Millis attempts_ttl : {1ms, 86'400'000ms}) {
    const auto made = engine->claims(attempts_ttl == 1ms ? "short" : "long",
                                     {.lease = 30'000ms, .attempts_ttl = attempts_ttl});
    REQUIRE(made.has_value());
    Claims ns = *made;
    for (int i = 0; i < 200'000; ++i) {
      if (i % 500 == 0) clock.advance(1ms);
      const ClaimOutcome granted = ns.claim({.key = "one"});
      REQUIRE(granted.answer == ClaimAnswer::granted);
      REQUIRE(ns.release({.key = "one", .epoch = granted.epoch, .payload = {}}).answer ==
              OwnerAnswer::ok);
    }
  }
  const Stats stats = engine->stats();
  CHECK(stats.bytes_used - stats.bytes_table < mib);
  CHECK(broken_rules(*engine) == "");
}

TEST_CASE("memory: a refusal sweeps what has ended before it answers",
          "[engine][memory][attack][fault-19]") {
  EngineFixture f{{.memory_bytes = 8 * mib, .shard_count = 2}};
  const std::string value(100, 'v');
  const std::size_t first = fill(f, value, Expiry::in(10ms));
  for (std::size_t round = 1; round < 4; ++round) {
    f.clock.advance(10ms);
    REQUIRE(f.put("at once", value));  // without a call of advance()
    // The table keeps its size, and how far it has grown depends on the engine's secret.
    CHECK(fill(f, value, Expiry::in(10ms), round * first) * 5 >= first * 4);
  }
  f.clock.advance(10ms);
  CHECK(f.claims("ns").claim({.key = "k"}).answer == ClaimAnswer::granted);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: what a thread keeps for itself is taken back before another is refused",
          "[engine][memory][race][attack][fault-19]") {
  EngineFixture f{{.memory_bytes = 8 * mib, .shard_count = 2}};
  const std::string small(60, 's');
  std::mutex mutex;
  std::condition_variable turn;
  bool is_empty = false;
  bool is_over = false;
  std::thread other{[&] {
    // Fills the engine, deletes all and then does nothing, but does not end either.
    std::size_t count = 0;
    while (f.store().set(key_of(count), small).ok()) ++count;
    for (std::size_t i = 0; i < count; ++i) static_cast<void>(f.store().del(key_of(i)));
    std::unique_lock lock{mutex};
    is_empty = true;
    turn.notify_all();
    turn.wait(lock, [&] { return is_over; });
  }};
  {
    std::unique_lock lock{mutex};
    turn.wait(lock, [&] { return is_empty; });
  }
  const std::string value(1'000, 'v');
  const std::size_t count = fill(f, value);
  const Stats stats = f.engine->stats();
  CHECK(stats.bytes_records + stats.bytes_table + stats.bytes_wheel >= 13 * mib / 2);
  CHECK(count * 1'000 > 3 * mib);
  {
    const std::lock_guard lock{mutex};
    is_over = true;
  }
  turn.notify_all();
  other.join();
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: records are moved together when no more of them end, or near the limit",
          "[engine][memory][expiry]") {
  constexpr std::size_t count = 200'000;
  constexpr int ends = 400;  // milliseconds, in which every other record ends
  struct Used {
    std::size_t all, start, late, after;
  };
  const auto play = [&](std::size_t limit) {
    EngineFixture f{{.memory_bytes = limit, .shard_count = 2}};
    const std::string value(60, 'v');
    for (std::size_t i = 0; i < count; ++i) {
      const Millis end{1'000 + static_cast<int>(i % ends)};
      REQUIRE(f.store()
                  .set(key_of(i), value, {.expiry = i % 2 == 0 ? Expiry::clear() : Expiry::in(end)})
                  .has_value());
    }
    Used used{f.engine->stats().bytes_used, used_beside_table(f), 0, 0};
    f.clock.advance(999ms);
    for (int call = 0; call < 2 * ends; ++call) {
      f.clock.advance(1ms);
      static_cast<void>(f.engine->advance());
      if (call == ends * 4 / 5) used.late = used_beside_table(f);
    }
    used.after = used_beside_table(f);
    CHECK(f.engine->stats().expired == count / 2);
    CHECK(broken_rules(*f.engine) == "");
    return used;
  };
  const Used wide = play(256 * mib);
  CHECK(wide.late > wide.start / 10 * 9);
  CHECK(wide.after < wide.start / 10 * 7);
  const Used narrow = play(wide.all + wide.all / 8);
  CHECK(narrow.late < narrow.start / 10 * 9);
  CHECK(narrow.after < narrow.start / 10 * 7);
}

TEST_CASE("wheel: timers far away are held in the region, and their memory comes back",
          "[engine][wheel][attack][fault-19]") {
  engine::Region region;
  REQUIRE(region.reserve(64 * mib));
  const Timestamp start{Millis{1'000}};
  const Millis year{std::int64_t{365} * 24 * 3600 * 1000};
  {
    engine::TtlWheel wheel{region, start};
    for (std::uint64_t i = 0; i < 1'000'000; ++i) {
      REQUIRE(wheel.schedule({i, start + year + Millis{static_cast<std::int64_t>(i)}}));
    }
    CHECK(wheel.size() == 1'000'000);
    CHECK(region.used_bytes() >= 16 * mib - mib);
    CHECK(wheel.bytes() <= 18 * mib);
    std::size_t fired = 0;
    const auto fire = [&](std::span<const std::uint64_t> batch) { fired += batch.size(); };
    static_cast<void>(wheel.advance(start + year + 499'999ms, ~std::size_t{0}, fire));
    CHECK(fired == 500'000);
    static_cast<void>(wheel.advance(start + year + year, ~std::size_t{0}, fire));
    CHECK(fired == 1'000'000);
    CHECK(wheel.bytes() <= mib);
    std::vector<std::string> broken;
    wheel.check(broken);
    CHECK(broken.empty());
  }
  CHECK(region.used_bytes() == 0);
}

TEST_CASE("wheel: a region that is full serves timers from the heap, and counts them",
          "[engine][wheel][attack][fault-19]") {
  engine::Region region;
  REQUIRE(region.reserve(4 * mib));
  while (region.take(1, engine::Region::Use::timer)) {
  }
  const std::size_t full = region.used_bytes();
  {
    engine::TtlWheel wheel{region, Timestamp{Millis{1}}};
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      REQUIRE(wheel.schedule({i, Timestamp{Millis{static_cast<std::int64_t>(i)}}}));
    }
    CHECK(region.used_bytes() >= full + 800'000);
  }
  CHECK(region.used_bytes() == full);
}

TEST_CASE("memory: what is charged counts, and is refused at the limit",
          "[engine][memory][attack][fault-19]") {
  engine::Region region;
  REQUIRE(region.reserve(8 * mib));
  REQUIRE(region.try_charge(2 * mib));
  CHECK(region.used_bytes() == 2 * mib);
  CHECK_FALSE(region.try_charge(6 * mib));
  CHECK(region.used_bytes() == 2 * mib);
  CHECK(region.try_charge(5 * mib + mib / 2, engine::Region::Use::structure));
  region.release(5 * mib + mib / 2);
  region.release(2 * mib);
  CHECK(region.used_bytes() == 0);
}

TEST_CASE("memory: thinned out, records of one size make room for any other",
          "[engine][memory][attack][fault-20]") {
  for (const std::size_t size : {1'000U, 30'000U}) {
    EngineFixture f{{.memory_bytes = 32 * mib}};
    const std::string value(100, 'v');
    const std::size_t count = fill(f, value);
    std::map<std::size_t, Version> versions;
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 10 == 0) {
        versions[i] = f.store().get_versioned(key_of(i)).value()->version;
      } else {
        REQUIRE(*f.store().del(key_of(i)));
      }
    }
    // The first may find that a part of the work is still to be done.
    const std::string large(size, 'l');
    for (int i = 0; i < 8 && !f.put("large0", large); ++i) {
    }
    CHECK(f.claims("ns").claim({.key = "k"}).answer == ClaimAnswer::granted);
    const std::size_t mutations = f.journal.size();
    const std::size_t others = fill(f, large, Expiry::clear(), 10'000'000);
    const Stats stats = f.engine->stats();
    INFO(count << " records, " << others << " of " << size << " bytes; held " << stats.bytes_records
               << ", table " << stats.bytes_table << ", wheel " << stats.bytes_wheel << ", used "
               << stats.bytes_used);
    // The table and what is left of the small ones take the rest, and a reserve.
    CHECK(stats.bytes_records + stats.bytes_table > 28 * mib);
    CHECK(f.journal.size() == mutations + others);  // no move is a mutation
    for (const auto& [i, version] : versions) {
      const auto found = f.store().get_versioned(key_of(i));
      REQUIRE(found.value().has_value());
      REQUIRE((*found)->value == value);
      REQUIRE((*found)->version == version);
    }
    CHECK(broken_rules(*f.engine) == "");
  }
}

TEST_CASE("memory: advance() moves thinned out records together by itself",
          "[engine][memory][attack][fault-20]") {
  EngineFixture f{{.memory_bytes = 64 * mib}};
  const std::string value(100, 'v');
  constexpr std::size_t count = 200'000;
  for (std::size_t i = 0; i < count; ++i) REQUIRE(f.put(key_of(i), value));
  const std::size_t before = used_beside_table(f);
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 10 != 0) REQUIRE(*f.store().del(key_of(i)));
  }
  for (int i = 0; i < 20; ++i) static_cast<void>(f.engine->advance());
  INFO(before << " before, " << used_beside_table(f) << " after");
  CHECK(used_beside_table(f) < before / 10 + 3 * mib);
  for (std::size_t i = 0; i < count; i += 10) REQUIRE(f.read(key_of(i)) == value);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: when all are gone next to nothing is used",
          "[engine][memory][attack][fault-22]") {
  EngineFixture f{{.memory_bytes = 32 * mib}};
  const std::string value(100, 'v');
  const std::size_t count = fill(f, value, Expiry::in(60'000ms));
  for (std::size_t i = 0; i < count; i += 2) REQUIRE(*f.store().del(key_of(i)));
  f.pass(60'000ms);
  for (int i = 0; i < 4; ++i) static_cast<void>(f.engine->advance());
  CHECK(f.engine->stats().records == 0);
  CHECK(used_beside_table(f) < 3 * mib);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: records move beside readers, writers and sections, which do not notice",
          "[engine][memory][race][attack][fault-20]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f{{.memory_bytes = 16 * mib, .shard_count = 4}};
  const std::string value(200, 'v');
  constexpr std::size_t count = 8'000;
  for (std::size_t i = 0; i < count; ++i) REQUIRE(f.put(key_of(i), value));
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 4 != 0) REQUIRE(*f.store().del(key_of(i)));
  }
  REQUIRE(f.put("counter", std::string(100, '0')));
  REQUIRE(*f.store().del("counter"));
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!over.load(std::memory_order_relaxed)) static_cast<void>(f.engine->host().compact());
  });
  threads.emplace_back([&] {
    for (int round = 0; round < 6; ++round) {
      for (std::size_t i = 0; i < count; i += 4) {
        if (f.read(key_of(i)) != value) wrong.fetch_add(1, std::memory_order_relaxed);
      }
    }
    over.store(true, std::memory_order_relaxed);
  });
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; !over.load(std::memory_order_relaxed); ++i) {
        static_cast<void>(f.store().incr_by("counter", 1));
        const std::string own = std::to_string(writer) + "/" + std::to_string(i % 500);
        static_cast<void>(f.put(own, value));
        if (i % 3 != 0) static_cast<void>(f.store().del(own));
        if (i % 50 != 0) continue;
        auto section = f.engine->section({});
        static_cast<void>(f.store().incr_by("counter", 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong.load(std::memory_order_relaxed) == 0);
  CHECK(broken_rules(*f.engine) == "");
}

}  // namespace semel::tests
