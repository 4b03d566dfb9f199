// Hashes as callers meet them, and as records among others: ttl, rename, copy, journal, snapshot,
// sections, claims.
#include "semel/hashes.hpp"

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/limits.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs all_of(Engine& engine, Bytes key, std::uint8_t db = 0) {
  Pairs pairs;
  const auto all = engine.hashes(db).hgetall(key);
  REQUIRE(all);
  for (const FieldValue& each : *all) pairs.emplace_back(each.field, each.value);
  return pairs;
}

const FieldValue two[] = {{"name", "Ann"}, {"age", "41"}};
const Pairs both{{"name", "Ann"}, {"age", "41"}};

}  // namespace

TEST_CASE("hashes: every call answers as its command does", "[engine][hashes]") {
  EngineFixture bench;
  Hashes hashes = bench.engine->hashes();
  CHECK(hashes.hset("h", two).value() == 2);
  CHECK(hashes.hset("h", two).value() == 0);
  CHECK(hashes.hset("h", "city", "Rome").value());
  CHECK_FALSE(hashes.hset("h", "city", "Bern").value());
  CHECK(hashes.hsetnx("h", "city", "Oslo").value() == false);
  CHECK(hashes.hsetnx("h", "new", "").value());
  CHECK(hashes.hget("h", "city").value() == "Bern");
  CHECK_FALSE(hashes.hget("h", "none").value());
  CHECK(hashes.hlen("h").value() == 4);
  CHECK(hashes.hexists("h", "new").value());
  CHECK_FALSE(hashes.hexists("h", "old").value());
  CHECK(hashes.hstrlen("h", "city").value() == 4);
  CHECK(hashes.hkeys("h").value() == std::vector<std::string>{"name", "age", "city", "new"});
  CHECK(hashes.hvals("h").value() == std::vector<std::string>{"Ann", "41", "Bern", ""});
  const Bytes wanted[] = {"age", "x", "age"};
  const auto values = hashes.hmget("h", wanted).value();
  CHECK(values == std::vector<std::optional<std::string>>{"41", std::nullopt, "41"});
  CHECK(hashes.hincrby("h", "age", 1).value() == 42);
  CHECK(hashes.hincrbyfloat("h", "age", 0.5L).value() == "42.5");
  CHECK(code_of(hashes.hincrby("h", "age", 1)) == ErrorCode::not_an_integer);
  CHECK(hashes.hrandfield("h").value().has_value());
  CHECK(hashes.hrandfield("h", 10).value().size() == 4);
  CHECK(hashes.hscan("h", 0, "n*").value().items.size() == 2);
  CHECK(hashes.hdel("h", wanted).value() == 1);
  const Bytes rest[] = {"name", "city", "new"};
  CHECK(hashes.hdel("h", rest).value() == 3);
  CHECK_FALSE(bench.store().exists("h").value());
  CHECK_FALSE(hashes.hrandfield("h").value());
  CHECK(broken_rules(*bench.engine).empty());
}

TEST_CASE("hashes: an error names the value and the limit", "[engine][hashes]") {
  EngineFixture bench{{.value_bytes_max = 100}};
  Hashes hashes = bench.engine->hashes();
  CHECK(code_of(hashes.hset("", two)) == ErrorCode::key_empty);
  CHECK(code_of(hashes.hset(std::string(limits::key_bytes_max + 1, 'k'), two)) ==
        ErrorCode::key_too_long);
  CHECK(code_of(bench.engine->hashes(16).hget("h", "f")) == ErrorCode::db_out_of_range);
  // Head and lengths take four bytes, the field one.
  REQUIRE(hashes.hset("h", "f", std::string(95, 'v')).ok());
  const auto too_long = hashes.hset("h", "f", std::string(96, 'v'));
  REQUIRE_FALSE(too_long.ok());
  CHECK(too_long.error().message() ==
        "value exceeds the limit: fields of the hash = 1, bytes = 101, limit 100");
  CHECK(hashes.hstrlen("h", "f").value() == 95);
  const auto overflow = hashes.hincrby("n", "f", std::numeric_limits<std::int64_t>::max());
  REQUIRE(overflow.ok());
  CHECK(hashes.hincrby("n", "f", 1).error().message() ==
        "increment or decrement would overflow: by = 1");
  CHECK(code_of(hashes.hscan("h", 0, {}, 0)) == ErrorCode::bad_option);
}

TEST_CASE("hashes: strings, claims and hashes keep to their kind", "[engine][hashes]") {
  EngineFixture bench;
  Hashes hashes = bench.engine->hashes();
  Store store = bench.store();
  REQUIRE(hashes.hset("h", two).ok());
  CHECK(store.type("h").value() == Kind::hash);
  CHECK(name_of(Kind::hash) == "hash");
  CHECK(code_of(store.get("h")) == ErrorCode::wrong_type);
  CHECK(code_of(store.append("h", "x")) == ErrorCode::wrong_type);
  CHECK(code_of(store.incr_by("h", 1)) == ErrorCode::wrong_type);
  CHECK(code_of(store.set("h", "v", {.get = true})) == ErrorCode::wrong_type);
  CHECK_FALSE(store.setnx("h", "v").value());
  const Bytes keys[] = {"h", "none"};
  CHECK(store.mget(keys).value() == std::vector<std::optional<std::string>>(2));
  CHECK(all_of(*bench.engine, "h") == both);

  Claims claims = bench.claims("jobs");
  REQUIRE(hashes.hset("jobs:h", two).ok());
  CHECK(claims.claim({.key = "h"}).error == ErrorCode::wrong_kind);
  CHECK(claims.get("h").error().code == ErrorCode::wrong_kind);
  REQUIRE(claims.claim({.key = "c"}).answer == ClaimAnswer::granted);
  CHECK(code_of(hashes.hset("jobs:c", two)) == ErrorCode::wrong_type);
  CHECK(code_of(hashes.hlen("jobs:c")) == ErrorCode::wrong_type);

  REQUIRE(bench.put("s", "v"));
  CHECK(code_of(hashes.hget("s", "f")) == ErrorCode::wrong_type);
  REQUIRE(bench.put("h", "now a string"));
  CHECK(bench.read("h") == "now a string");
  CHECK(code_of(hashes.hgetall("h")) == ErrorCode::wrong_type);
}

TEST_CASE("hashes: a claim that was given back is not in the way", "[engine][hashes]") {
  EngineFixture bench;
  Claims claims = bench.claims("jobs");
  const auto granted = claims.claim({.key = "c"});
  REQUIRE(claims.fail({.key = "c", .epoch = granted.epoch}).answer == OwnerAnswer::ok);
  Hashes hashes = bench.engine->hashes();
  CHECK(hashes.hlen("jobs:c").value() == 0);
  CHECK(hashes.hset("jobs:c", two).value() == 2);
  CHECK(bench.store().type("jobs:c").value() == Kind::hash);
}

TEST_CASE("hashes: a ttl is the hash's, stays through changes and ends it", "[engine][hashes]") {
  EngineFixture bench;
  Hashes hashes = bench.engine->hashes();
  REQUIRE(hashes.hset("h", two).ok());
  REQUIRE(bench.store().expire("h", Expiry::in(100ms)).value());
  REQUIRE(hashes.hincrby("h", "age", 1).ok());
  CHECK(bench.store().ttl("h").value().remaining == 100ms);
  bench.pass(99ms);
  CHECK(hashes.hlen("h").value() == 2);
  bench.pass(1ms);
  CHECK(hashes.hlen("h").value() == 0);
  CHECK(hashes.hset("h", "a", "b").value());
  CHECK_FALSE(bench.store().ttl("h").value().has_ttl);
  CHECK(all_of(*bench.engine, "h") == Pairs{{"a", "b"}});
}

TEST_CASE("hashes: rename, copy, move and databases take them as they are", "[engine][hashes]") {
  EngineFixture bench;
  Store store = bench.store();
  REQUIRE(bench.engine->hashes().hset("h", two).ok());
  REQUIRE(store.rename("h", "renamed"));
  CHECK(store.copy("renamed", "copied", std::nullopt, false).value());
  CHECK(store.move("renamed", 3).value());
  CHECK(all_of(*bench.engine, "h").empty());
  CHECK(all_of(*bench.engine, "copied") == both);
  CHECK(all_of(*bench.engine, "renamed", 3) == both);
  // The copy is another record.
  REQUIRE(bench.engine->hashes().hset("copied", "age", "0").ok());
  CHECK(all_of(*bench.engine, "renamed", 3) == both);
  REQUIRE(bench.engine->swap_db(0, 3));
  CHECK(all_of(*bench.engine, "renamed") == both);
  REQUIRE(bench.engine->flush(0).ok());
  CHECK(all_of(*bench.engine, "renamed").empty());
}

TEST_CASE("hashes: an engine that is given the journal holds the same", "[engine][hashes]") {
  EngineFixture bench;
  Hashes hashes = bench.engine->hashes();
  for (int i = 0; i < 100; ++i) REQUIRE(hashes.hset("large", "f" + std::to_string(i), "v").ok());
  REQUIRE(hashes.hset("h", two).ok());
  REQUIRE(hashes.hset("gone", two).ok());
  const Bytes fields[] = {"name", "age"};
  REQUIRE(hashes.hdel("gone", fields).ok());
  REQUIRE(hashes.hincrby("h", "age", 1).ok());

  const auto again = open_engine({.clock = &bench.clock});
  std::size_t erased = 0;
  bench.journal.replay([&](Ticket, const Mutation& mutation) {
    CHECK(again->host().restore(mutation));
    if (mutation.type != Mutation::Type::erase) return;
    CHECK(mutation.kind == Kind::hash);
    ++erased;
  });
  CHECK(erased == 1);
  CHECK(contents_of(*again) == contents_of(*bench.engine));
  for (const Bytes key : {"large", "h", "gone"}) {
    CHECK(all_of(*again, key) == all_of(*bench.engine, key));
  }
  // And the snapshot's way.
  const auto third = open_engine({.clock = &bench.clock});
  REQUIRE(bench.engine->host().snapshot(
      [&](const Mutation& put) { CHECK(third->host().restore(put)); }));
  CHECK(all_of(*third, "large") == all_of(*bench.engine, "large"));
  CHECK(third->hashes().hincrby("h", "age", 1).value() == 43);
}

TEST_CASE("hashes: bytes that are not a hash are not restored", "[engine][hashes]") {
  EngineFixture bench;
  Mutation put;
  put.kind = Kind::hash;
  put.version = 5;
  put.key = "h";
  for (const Bytes wrong : {Bytes{}, Bytes{"\1\1\1\1a", 5}, Bytes{"text"}}) {
    put.value = wrong;
    CHECK(bench.engine->host().restore(put).error().code == ErrorCode::storage_damaged);
  }
  put.value = Bytes{"\1\1\1\1ab", 6};
  REQUIRE(bench.engine->host().restore(put));
  CHECK(all_of(*bench.engine, "h") == Pairs{{"a", "b"}});
}

TEST_CASE("hashes: a scan of keys shows their kind, and no bytes", "[engine][hashes]") {
  EngineFixture bench;
  REQUIRE(bench.engine->hashes().hset("h", two).ok());
  REQUIRE(bench.put("s", "v"));
  int seen = 0;
  REQUIRE(bench.engine
              ->scan(0, {.kind = Kind::hash, .count = 65'536},
                     [&](const ScanItem& item) {
                       ++seen;
                       CHECK(item.key == "h");
                       CHECK(item.value.empty());
                     })
              .ok());
  CHECK(seen == 1);
  std::vector<Kind> ended;
  bench.engine->subscribe_expired([&](const ExpiredEvent& event) { ended.push_back(event.kind); });
  REQUIRE(bench.store().expire("h", Expiry::in(1ms)).value());
  bench.pass(1ms);
  CHECK(ended == std::vector<Kind>{Kind::hash});
}

TEST_CASE("hashes: calls in a section of this thread are a part of it", "[engine][hashes]") {
  EngineFixture bench;
  Hashes hashes = bench.engine->hashes();
  const std::size_t before = bench.journal.size();
  {
    auto section = bench.engine->section({});
    REQUIRE(section);
    REQUIRE(hashes.hset("h", two).ok());
    REQUIRE(hashes.hincrby("h", "age", 1).ok());
    CHECK(hashes.hget("h", "age").value() == "42");
    CHECK(bench.journal.size() == before);
    REQUIRE(section->commit());
  }
  CHECK(bench.journal.size() == before + 2);
  CHECK(hashes.hget("h", "age").value() == "42");
}

TEST_CASE("hashes: a full machine refuses and keeps what was there", "[engine][hashes]") {
  EngineFixture bench{{.memory_bytes = limits::memory_bytes_min}};
  Hashes hashes = bench.engine->hashes();
  const std::string large(10'000, 'v');
  std::size_t made = 0;
  for (;; ++made) {
    REQUIRE(made < 1'000);
    const auto added = hashes.hset("h" + std::to_string(made), "f", large);
    if (added.ok()) continue;
    CHECK(added.error().code == ErrorCode::memory_full);
    break;
  }
  for (std::size_t i = 0; i < made; ++i) {
    CHECK(hashes.hstrlen("h" + std::to_string(i), "f").value() == 10'000);
  }
  CHECK(bench.store().del("h0").value());
}

TEST_CASE("hashes: random calls answer as a map does", "[engine][hashes]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  EngineFixture bench;
  Hashes hashes = bench.engine->hashes();
  std::map<std::string, std::map<std::string, std::string>> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::string key = "h" + std::to_string(below(4));
    const std::string field = "f" + std::to_string(below(key == "h0" ? 200 : 6));
    auto& fields = model[key];
    const bool there = fields.count(field) != 0;
    switch (below(7)) {
      case 0:
      case 1: {
        const std::string value = std::to_string(below(1'000));
        REQUIRE(hashes.hset(key, field, value).value() == !there);
        fields[field] = value;
        break;
      }
      case 2: {
        const Bytes one = field;
        REQUIRE(hashes.hdel(key, {&one, 1}).value() == (there ? 1 : 0));
        fields.erase(field);
        break;
      }
      case 3: {
        const std::int64_t next = (there ? std::stoll(fields[field]) : 0) + 7;
        REQUIRE(hashes.hincrby(key, field, 7).value() == next);
        fields[field] = std::to_string(next);
        break;
      }
      case 4: {
        const auto value = hashes.hget(key, field).value();
        REQUIRE(value.has_value() == there);
        if (there) REQUIRE(*value == fields[field]);
        break;
      }
      case 5:
        REQUIRE(hashes.hlen(key).value() == static_cast<std::int64_t>(fields.size()));
        break;
      default: {
        Pairs pairs = all_of(*bench.engine, key);
        std::sort(pairs.begin(), pairs.end());
        REQUIRE(pairs == Pairs(fields.begin(), fields.end()));
      }
    }
  }
  CHECK(broken_rules(*bench.engine).empty());
}

TEST_CASE("hashes: of threads that count in one hash none loses a step", "[engine][hashes][race]") {
  auto engine = open_engine({});
  constexpr int steps = 2'000;
  std::atomic<int> wrong{0};
  const auto work = [&](int thread) {
    Hashes hashes = engine->hashes();
    const std::string own = "own " + std::to_string(thread);
    for (int i = 0; i < steps; ++i) {
      // mo: relaxed: read after the threads have ended.
      const auto fail = [&] { wrong.fetch_add(1, std::memory_order_relaxed); };
      if (!hashes.hincrby("h", "all", 1).ok()) fail();
      if (hashes.hincrby("h", own, 1).value() != i + 1) fail();
      // Fields that come and go move the others about.
      const std::string passing = "p" + std::to_string(i % 50) + own;
      const Bytes gone = passing;
      if (!hashes.hset("h", passing, passing).value()) fail();
      if (hashes.hget("h", passing).value() != passing) fail();
      if (hashes.hdel("h", {&gone, 1}).value() != 1) fail();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < 3; ++i) threads.emplace_back(work, i);
  work(0);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong.load(std::memory_order_relaxed) == 0);  // mo: relaxed: as above
  CHECK(engine->hashes().hget("h", "all").value() == std::to_string(3 * steps));
  CHECK(engine->hashes().hlen("h").value() == 4);
}

}  // namespace semel::tests
