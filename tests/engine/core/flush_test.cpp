// Whole databases that are emptied at once and taken out behind it.
// Vocabulary: left = flushed, and still in the table; gone = taken out.
#include <algorithm>
#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::uint64_t left(const EngineFixture& f) {
  return f.engine->stats().records_flushed;
}

/// advance() until nothing is left.
void take_out(EngineFixture& f) {
  for (int i = 0; i < 1'000 && left(f) != 0; ++i) static_cast<void>(f.engine->advance());
  REQUIRE(left(f) == 0);
}

}  // namespace

TEST_CASE("flush: what is flushed is invisible at once, though its memory is still in use",
          "[engine][flush]") {
  EngineFixture f;
  std::vector<std::string> ended;
  static_cast<void>(f.engine->subscribe_expired(
      [&](const ExpiredEvent& event) { ended.emplace_back(event.key); }));
  Claims ns = f.claims("ns");
  const ClaimOutcome before = ns.claim({.key = "c"});
  REQUIRE(before.answer == ClaimAnswer::granted);
  REQUIRE(f.put("timed", "v", Expiry::in(10ms)));
  REQUIRE(f.put("taken", "v"));
  REQUIRE(f.engine->hashes().hset("hash", "f", "v").has_value());
  REQUIRE(f.put("other", "v", Expiry::clear(), 1));
  CHECK(f.engine->flush(0, FlushMode::async).value() == 4);
  CHECK(left(f) == 4);
  CHECK(f.engine->stats().records == 1);

  CHECK(f.read("timed") == "<none>");
  CHECK(f.store().randomkey().value() == std::nullopt);
  CHECK(f.store().exists("taken").value() == false);
  CHECK_FALSE(f.store().ttl("timed").value().found);
  CHECK(f.engine->hashes().hget("hash", "f").value() == std::nullopt);
  CHECK(f.store().del("taken").value() == false);
  CHECK(contents_of(*f.engine).size() == 1);
  CHECK(f.read("other", 1) == "v");
  CHECK(left(f) == 4);  // none was taken out on the way
  CHECK(ns.complete({.key = "c", .epoch = before.epoch}).answer == OwnerAnswer::unknown);
  const ClaimOutcome after = ns.claim({.key = "c"});
  CHECK(after.answer == ClaimAnswer::granted);
  CHECK(after.epoch > before.epoch);
  CHECK(f.store().set("taken", "new", {.condition = Condition::if_absent})->stored);
  CHECK(f.store().incr_by("hash", 1).value() == 1);  // of another kind than it was
  CHECK(f.engine->size(0) == 3);
  CHECK(broken_rules(*f.engine) == "");

  f.clock.advance(20ms);
  take_out(f);
  CHECK(ended.empty());  // a flushed record is not reported as expired
  CHECK(f.engine->size(0) == 3);
  CHECK(f.read("taken") == "new");
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("flush: a swap goes with what is flushed, and both numbers are as they should be",
          "[engine][flush][db]") {
  EngineFixture f;
  REQUIRE(f.put("a", "zero"));
  REQUIRE(f.put("b", "one", Expiry::clear(), 1));
  REQUIRE(f.engine->flush(0, FlushMode::async).ok());
  REQUIRE(f.engine->swap_db(0, 1).ok());
  CHECK(f.read("b") == "one");
  CHECK(f.read("a", 1) == "<none>");
  REQUIRE(f.put("a", "new", Expiry::clear(), 1));
  take_out(f);
  CHECK(f.read("a", 1) == "new");
  CHECK(f.engine->size(1) == 1);
}

TEST_CASE("flush: a snapshot shows what was there at its cut", "[engine][flush][snapshot]") {
  EngineFixture f;
  for (int i = 0; i < 500; ++i) REQUIRE(f.put("old" + std::to_string(i), "v"));
  REQUIRE(f.engine->flush(std::nullopt, FlushMode::async).ok());
  for (int i = 0; i < 300; ++i) REQUIRE(f.put("new" + std::to_string(i), "v"));
  std::size_t seen = 0;
  bool flushed = false;
  REQUIRE(f.engine->host()
              .snapshot([&](const Mutation& mutation) {
                if (mutation.type != Mutation::Type::put) return;
                CHECK(mutation.key.substr(0, 3) == "new");
                ++seen;
                if (!std::exchange(flushed, true))
                  REQUIRE(f.engine->flush(0, FlushMode::sync).ok());
              })
              .ok());
  CHECK(seen == 300);
  CHECK(left(f) != 0);  // the snapshot was in the way
  take_out(f);
  CHECK(f.engine->stats().bytes_records == 0);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("flush: memory of what is left serves the next call that finds none",
          "[engine][flush][memory]") {
  EngineFixture f{{.memory_bytes = 8 * mib, .shard_count = 4}};
  const std::string value(200, 'v');
  for (int round = 0; round < 4; ++round) {
    std::size_t count = 0;
    while (f.put("key" + std::to_string(count), value)) ++count;
    CHECK(count > 10'000);
    REQUIRE(f.engine->flush(0, FlushMode::async).value() == count);
    // No thread calls advance().
    for (std::size_t i = 0; i < count / 2; ++i) {
      REQUIRE(f.put("again" + std::to_string(i), std::string(400, 'w')) == (i < count / 3));
      if (i + 1 == count / 3) break;
    }
    REQUIRE(f.engine->flush(0, FlushMode::sync).value() == count / 3);
    CHECK(left(f) == 0);
    CHECK(f.engine->stats().bytes_records == 0);
  }
}

TEST_CASE("flush: one flush after the other does not keep what is left from going",
          "[engine][flush][memory]") {
  EngineFixture f{{.memory_bytes = 128 * mib, .shard_count = 16}};
  constexpr int count = 400'000;  // of which a call of advance() takes out a part
  for (int i = 0; i < count; ++i) REQUIRE(f.put(std::to_string(i), "v"));
  for (int round = 0; round < 100; ++round) {
    REQUIRE(f.engine->flush(0, FlushMode::async).ok());
    for (int i = 0; i < 100; ++i) REQUIRE(f.put(std::to_string(i), "v"));
    if (round == 1) CHECK(left(f) > count / 2);
    static_cast<void>(f.engine->advance());
  }
  CHECK(left(f) < 2'000);
  take_out(f);
  CHECK(f.engine->stats().records == 100);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("flush: inside a section and without an end of it", "[engine][flush][section]") {
  EngineFixture f;
  REQUIRE(f.put("k", "v"));
  {
    auto all = f.engine->section({});
    REQUIRE(all.ok());
    StoreOutcome outcome;
    all->apply({.verb = Verb::set, .key = "in", .value = "v"}, outcome);
    CHECK(f.engine->flush(0, FlushMode::sync).value() == 2);
    CHECK(left(f) == 2);  // others would wait for it
    all->apply({.verb = Verb::get, .key = "in"}, outcome);
    CHECK_FALSE(outcome.found);
    all->apply({.verb = Verb::set, .key = "in", .value = "later"}, outcome);
    CHECK(outcome.applied);
  }
  CHECK(f.read("k") == "<none>");
  CHECK(f.read("in") == "later");
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("flush: a journal puts back what a flush has left of it", "[engine][flush][journal]") {
  EngineFixture f;
  REQUIRE(f.put("old", "v"));
  REQUIRE(f.engine->flush(0, FlushMode::async).ok());
  REQUIRE(f.put("new", "v"));
  // In the order they came and the other way round: a recovery keeps to none.
  for (const bool backwards : {false, true}) {
    EngineFixture other;
    std::deque<std::string> bytes;  // what the mutations point to
    std::vector<Mutation> all;
    f.journal.replay([&](Ticket, const Mutation& mutation) {
      Mutation& kept = all.emplace_back(mutation);
      kept.key = bytes.emplace_back(mutation.key);
      kept.value = bytes.emplace_back(mutation.value);
    });
    if (backwards) std::reverse(all.begin(), all.end());
    for (const Mutation& mutation : all) REQUIRE(other.engine->host().restore(mutation).ok());
    CHECK(other.read("old") == "<none>");
    CHECK(other.read("new") == "v");
    CHECK(broken_rules(*other.engine) == "");
  }
}

TEST_CASE("flush: beside threads that write, read, claim, sweep and take snapshots",
          "[engine][flush][race]") {
  EngineFixture f{{.memory_bytes = 32 * mib, .shard_count = 4}};
  Claims ns = f.claims("ns");
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> calls{0};
  std::vector<std::thread> threads;
  for (unsigned lane = 0; lane < 4; ++lane) {
    threads.emplace_back([&, lane] {
      std::mt19937_64 random{lane};
      while (!ends.load(std::memory_order_relaxed)) {   // mo: relaxed: a stop sign
        calls.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: paces the flushes only
        const std::string key = std::to_string(random() % 2'000);
        switch (random() % 6) {
          case 0:
            static_cast<void>(f.store().get(key));
            break;
          case 1: {
            const ClaimOutcome granted = ns.claim({.key = key});
            if (granted.answer != ClaimAnswer::granted) break;
            static_cast<void>(ns.complete({.key = key, .epoch = granted.epoch}));
            break;
          }
          case 2:
            if (lane == 0) static_cast<void>(f.engine->host().snapshot([](const Mutation&) {}));
            static_cast<void>(f.engine->advance(500));
            break;
          default:
            static_cast<void>(f.put(key, std::string(random() % 300, 'v'),
                                    random() % 2 == 0 ? Expiry::in(5ms) : Expiry::clear()));
        }
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t enough = calls.load(std::memory_order_relaxed) + 200;  // mo: relaxed: pace
    while (calls.load(std::memory_order_relaxed) < enough) {  // mo: relaxed: as above
      std::this_thread::yield();
    }
    const FlushMode mode = i % 2 == 0 ? FlushMode::async : FlushMode::sync;
    REQUIRE(f.engine->flush(i % 3 == 0 ? std::nullopt : std::optional<std::uint8_t>{0}, mode).ok());
    f.clock.advance(1ms);
  }
  ends.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
  for (std::thread& thread : threads) thread.join();
  take_out(f);  // also of those in segments that were being replaced
  REQUIRE(f.engine->flush(std::nullopt).ok());
  CHECK(left(f) == 0);
  CHECK(f.engine->stats().records == 0);
  CHECK(broken_rules(*f.engine) == "");
}

}  // namespace semel::tests
