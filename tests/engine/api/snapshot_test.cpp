// The consistent cut: one instant of everything, while writers go on.
// Words: cut = what a snapshot visits; twin = an engine the cut was restored into.
#include <atomic>
#include <random>
#include <thread>

#include "semel/engine_host.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Visits every record and puts it into `twin`.
void copy_into(Engine& from, Engine& twin) {
  const Status status = from.host().snapshot([&](const Mutation& mutation) {
    const Status restored = twin.host().restore(mutation);
    if (!restored) FAIL_CHECK(restored.error().message());
  });
  REQUIRE(status.has_value());
}

}  // namespace

TEST_CASE("snapshot: restored into another engine it is the same, times and epochs included",
          "[engine][snapshot]") {
  EngineFixture f;
  EngineFixture twin;
  Policy policy;
  policy.unique_ttl = std::chrono::hours{48};
  Claims ns = f.claims("ns", policy);
  for (int i = 0; i < 3000; ++i) {
    REQUIRE(f.put("key" + std::to_string(i), std::string(static_cast<std::size_t>(i % 400), 'v'),
                  i % 3 == 0 ? Expiry::in(Millis{1000 + i}) : Expiry::clear(),
                  static_cast<std::uint8_t>(static_cast<unsigned>(i) % limits::db_count)));
  }
  const ClaimOutcome held = ns.claim({.key = "held", .owner = "me"});
  REQUIRE(ns.complete({.key = "done", .epoch = ns.claim({.key = "done"}).epoch, .payload = "r"})
              .answer == OwnerAnswer::ok);
  REQUIRE(f.engine->swap_db(2, 9).has_value());
  REQUIRE(f.put("dead", "v", Expiry::in(5ms)));
  f.clock.advance(5ms);
  twin.clock.advance(5ms);
  copy_into(*f.engine, *twin.engine);
  CHECK(contents_of(*f.engine) == contents_of(*twin.engine));
  CHECK(twin.read("dead") == "<none>");
  CHECK(twin.journal.size() == 0);  // the way back in leaves no trace of its own

  Claims twin_ns = twin.claims("ns", policy);
  CHECK(twin_ns.claim({.key = "done"}).result == "r");
  CHECK(twin_ns.complete({.key = "held", .epoch = held.epoch}).answer == OwnerAnswer::ok);
  CHECK(ns.complete({.key = "held", .epoch = held.epoch}).answer == OwnerAnswer::ok);
  REQUIRE(twin_ns.claim({.key = "new"}).epoch > held.epoch);
  REQUIRE(ns.claim({.key = "new"}).answer == ClaimAnswer::granted);
  for (EngineFixture* each : {&f, &twin}) each->pass(5000ms);
  CHECK(f.engine->stats().records == twin.engine->stats().records);
  CHECK(broken_rules(*twin.engine) == "");
}

TEST_CASE("snapshot: what is replaced, deleted, expired or flushed meanwhile is visited as it was",
          "[engine][snapshot]") {
  EngineFixture f{{.shard_count = 2}};
  constexpr int count = 4000;
  for (int i = 0; i < count; ++i) {
    REQUIRE(f.put(std::to_string(i), "old", i % 4 == 0 ? Expiry::in(10ms) : Expiry::clear(),
                  i % 5 == 0 ? std::uint8_t{1} : std::uint8_t{0}));
  }
  const Contents before = contents_of(*f.engine);
  Contents cut;
  std::size_t visits = 0;
  const auto disturb = [&] {
    for (int i = 0; i < count; ++i) {
      const std::string key = std::to_string(i);
      if (i % 4 == 1) REQUIRE(f.put(key, "new", Expiry::in(7ms)));
      if (i % 4 == 2) REQUIRE(f.store().del(key).has_value());
    }
    for (int i = 0; i < count; ++i) REQUIRE(f.put("later" + std::to_string(i), "new"));
    f.pass(10ms);
    CHECK(f.engine->flush(1).value() > 0);
  };
  REQUIRE(f.engine->host().snapshot([&](const Mutation& mutation) {
    if (++visits == 2) disturb();  // the first is the map of the databases
    if (mutation.type != Mutation::Type::put) return;
    const Held held{mutation.kind, mutation.due, mutation.version, std::string{mutation.value}};
    const auto [at, fresh] = cut.insert({{mutation.db, std::string{mutation.key}}, held});
    CHECK((fresh || at->second == held));  // twice only if alike
  }));
  CHECK(cut == before);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("snapshot: a second one meanwhile is refused, afterwards it is not",
          "[engine][snapshot]") {
  EngineFixture f;
  REQUIRE(f.put("k", "v"));
  int inner = 0;
  REQUIRE(f.engine->host().snapshot([&](const Mutation&) {
    // From another thread: a mutex must not be tried by the thread that holds it.
    std::thread{[&] {
      inner +=
          code_of(f.engine->host().snapshot([](const Mutation&) {})) == ErrorCode::snapshot_running;
    }}.join();
  }));
  CHECK(inner == 2);
  CHECK(f.engine->host().snapshot([](const Mutation&) {}).has_value());
}

TEST_CASE("snapshot: the memory it held comes back when it ends", "[engine][snapshot][memory]") {
  EngineFixture f{{.memory_bytes = std::size_t{64} << 20}};
  const std::string value(1000, 'v');
  const auto write_all = [&] {
    for (int i = 0; i < 10'000; ++i) REQUIRE(f.put(std::to_string(i), value));
  };
  write_all();
  write_all();
  f.engine->host().quiesce();
  const std::uint64_t before = f.engine->stats().bytes_used;
  std::uint64_t during = 0;
  int visits = 0;
  REQUIRE(f.engine->host().snapshot([&](const Mutation&) {
    if (++visits != 2) return;
    write_all();
    during = f.engine->stats().bytes_used;
  }));
  CHECK(during > before + 9'000'000);
  const std::uint64_t after = f.engine->stats().bytes_used;
  CHECK(after < before + 2'000'000);
  for (int round = 0; round < 3; ++round) write_all();
  CHECK(f.engine->stats().bytes_used < before + 4'000'000);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("snapshot: writers that keep a sum find it kept in every cut",
          "[engine][snapshot][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f{{.shard_count = 4}};
  constexpr int pairs = 50;
  const auto left = [](int i) { return "left" + std::to_string(i); };
  const auto right = [](int i) { return "right" + std::to_string(i); };
  for (int i = 0; i < pairs; ++i) REQUIRE((f.put(left(i), "500") && f.put(right(i), "500")));
  std::atomic<int> running{2};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random{seed + t};
      for (int step = 0; step < 4000; ++step) {
        const int i = static_cast<int>(random() % pairs);
        const std::string a = left(i);
        const std::string b = right(i);
        {
          auto section = f.engine->section(std::array{KeyRef{0, a}, KeyRef{0, b}});
          StoreOutcome outcome;
          const auto amount = static_cast<std::int64_t>(random() % 9);
          section->apply({.verb = Verb::incr_by, .key = a, .amount = amount}, outcome);
          section->apply({.verb = Verb::decr_by, .key = b, .amount = amount}, outcome);
        }
        // Churn beside, with growth, deletion and expiry.
        const std::string other = "other" + std::to_string(random() % 5000);
        static_cast<void>(f.put(other, "v", Expiry::in(Millis{1 + random() % 20})));
        if (step % 50 == 0) f.pass(1ms);
      }
      running.fetch_sub(1, std::memory_order_release);
    });
  }
  int cuts = 0;
  while (running.load(std::memory_order_acquire) != 0 || cuts == 0) {
    std::map<std::string, std::int64_t> seen;
    REQUIRE(f.engine->host().snapshot([&](const Mutation& mutation) {
      if (mutation.type != Mutation::Type::put || mutation.key.substr(0, 5) == "other") return;
      const std::int64_t value = std::stoll(std::string{mutation.value});
      const auto [at, fresh] = seen.insert({std::string{mutation.key}, value});
      if (!fresh && at->second != value) FAIL_CHECK("two values of one key in a cut");
    }));
    REQUIRE(seen.size() == std::size_t{2} * pairs);
    for (int i = 0; i < pairs; ++i) REQUIRE(seen[left(i)] + seen[right(i)] == 1000);
    ++cuts;
  }
  for (std::thread& thread : threads) thread.join();
  INFO("cuts " << cuts);
  f.pass(100ms);
  CHECK(f.engine->size(0) == std::uint64_t{2} * pairs);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("snapshot: a cut taken while writers go on, with what follows it in the journal, is all",
          "[engine][snapshot][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f{{.shard_count = 2}};
  EngineFixture twin;
  for (int i = 0; i < 3000; ++i) REQUIRE(f.put(std::to_string(i), "old"));
  std::thread writer{[&] {
    std::mt19937_64 random{seed};
    for (int i = 0; i < 20'000; ++i) {
      const std::string key = std::to_string(random() % 6000);
      if (random() % 4 == 0) {
        static_cast<void>(f.store().del(key));
      } else {
        static_cast<void>(f.put(key, std::to_string(i)));
      }
    }
  }};
  copy_into(*f.engine, *twin.engine);
  writer.join();
  f.journal.replay([&](Ticket, const Mutation& mutation) {
    if (!twin.engine->host().restore(mutation)) FAIL_CHECK("not restored");
  });
  CHECK(contents_of(*f.engine) == contents_of(*twin.engine));
  CHECK(broken_rules(*twin.engine) == "");
}

TEST_CASE("restore: a flush that another thread restores takes everything below it",
          "[engine][snapshot][race]") {
  constexpr Version flushed_at = 1'000'000;
  constexpr int rounds = 40;
  for (int round = 0; round < rounds; ++round) {
    EngineFixture f{{.shard_count = 2}};
    std::atomic<bool> begun{false};
    std::thread puts{[&] {
      Mutation put;
      for (int i = 0; i < 4'000; ++i) {
        const std::string key = std::to_string(i);
        put.key = key;
        put.value = "v";
        put.version = static_cast<Version>(i) + 1;
        if (!f.engine->host().restore(put)) FAIL_CHECK("not restored");
        if (i == round * 50) begun.store(true, std::memory_order_release);
      }
    }};
    while (!begun.load(std::memory_order_acquire)) {
    }
    Mutation flush;
    flush.type = Mutation::Type::flush;
    flush.version = flushed_at;
    CHECK(f.engine->host().restore(flush));
    puts.join();
    CHECK(f.engine->store().keys("*").value().empty());
  }
}

}  // namespace semel::tests
