// Hashes on the disk: the next process, the files behind the log, the cold store, and the tools.
#include <set>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/storage_tools.hpp"
#include "tests/storage/cold/cold_fixture.hpp"
#include "tests/storage/directory.hpp"
#include "tests/storage/golden.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

constexpr int many = 40;  // so many fields have an index

void fill(Engine& engine, const std::string& part) {
  Hashes hashes = engine.hashes(2);
  REQUIRE(hashes.hset("few " + part, "one", "1").ok());
  REQUIRE(hashes.hset("few " + part, "two", part).ok());
  REQUIRE(hashes.hincrby("few " + part, "one", 41).ok());
  for (int i = 0; i < many; ++i) {
    REQUIRE(hashes.hset("many " + part, "f" + std::to_string(i), std::to_string(i)).ok());
  }
  REQUIRE(hashes.hset("gone " + part, "f", "v").ok());
  const Bytes field = "f";
  REQUIRE(hashes.hdel("gone " + part, {&field, 1}).value() == 1);
  REQUIRE(hashes.hset("ends " + part, "f", "v").ok());
  REQUIRE(engine.store(2).expire("ends " + part, Expiry::in(60s)).value());
}

void check(Engine& engine, const std::string& part) {
  INFO(part);
  Hashes hashes = engine.hashes(2);
  CHECK(hashes.hkeys("few " + part).value() == std::vector<std::string>{"one", "two"});
  CHECK(hashes.hvals("few " + part).value() == std::vector<std::string>{"42", part});
  CHECK(hashes.hlen("many " + part).value() == many);
  for (int i = 0; i < many; ++i) {
    CHECK(hashes.hget("many " + part, "f" + std::to_string(i)).value() == std::to_string(i));
  }
  CHECK_FALSE(engine.store(2).exists("gone " + part).value());
  CHECK(engine.store(2).ttl("ends " + part).value().remaining == 60s);
  CHECK(engine.store(2).type("few " + part).value() == Kind::hash);
}

/// The first word of a cold store's or part's facts, which is their format, and how many there are.
unsigned set_formats(ColdDatabase& cold, char format) {
  unsigned formats = 0;
  const std::unique_ptr<rocksdb::Iterator> at{cold.database->NewIterator({}, cold.families[1])};
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    const std::string key = at->key().ToString();
    if (key.substr(8) != std::string(5, '\0')) continue;  // what 0, index 0
    std::string value = at->value().ToString();
    CHECK(value[0] == 3);
    value[0] = format;
    REQUIRE(cold.database->Put({}, cold.families[1], key, value).ok());
    ++formats;
  }
  return formats;
}

}  // namespace

TEST_CASE("storage: hashes are there in the next process, from the log and from files",
          "[storage][hash]") {
  const Directory directory;
  ManualClock clock{golden::engine_start, golden::unix_start_ms};
  {
    auto process = golden::open(directory.path(), clock);
    REQUIRE(process);
    fill(*process->engine, "drained");
    REQUIRE(process->storage->drain());
    fill(*process->engine, "logged");
  }
  std::set<std::string> kinds;
  const auto info = inspect_storage(directory.path(), [&](const StoredMutation& stored) {
    kinds.emplace(name_of(stored.mutation.kind));
  });
  REQUIRE(info);
  CHECK(kinds == std::set<std::string>{"hash"});
  CHECK(verify_storage(directory.path()).value().findings.empty());
  for (int life_number = 0; life_number < 2; ++life_number) {
    auto process = golden::open(directory.path(), clock);
    REQUIRE(process);
    check(*process->engine, "drained");
    check(*process->engine, "logged");
    if (life_number == 0) REQUIRE(process->storage->rewrite(*process->engine));
  }
}

TEST_CASE("storage: a backup and a repair keep hashes", "[storage][hash]") {
  const Directory directory;
  const std::string path = directory.path() + "/s";
  ManualClock clock{golden::engine_start, golden::unix_start_ms};
  {
    auto process = golden::open(path, clock);
    REQUIRE(process);
    fill(*process->engine, "a");
    REQUIRE(process->storage->backup(directory.path() + "/backup"));
  }
  REQUIRE(restore_backup(directory.path() + "/backup", directory.path() + "/back"));
  REQUIRE(repair_storage(path, true));
  for (const char* where : {"/s", "/back"}) {
    auto process = golden::open(directory.path() + where, clock);
    REQUIRE(process);
    check(*process->engine, "a");
  }
}

TEST_CASE("cold store: hashes leave memory, are read, changed and come back",
          "[storage][cold][hash]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  MemoryJournal journal;
  {
    ColdLife process{directory, clock, &journal};
    fill(*process.engine, "a");
    CHECK(process.spill().records == 3);
    CHECK(process.engine->stats().records == 0);
    check(*process.engine, "a");
    std::set<std::string> keys;
    std::uint64_t cursor = 0;
    do {
      cursor = process.engine
                   ->scan(cursor, {.kind = Kind::hash},
                          [&](const ScanItem& item) { keys.emplace(item.key); })
                   .value();
    } while (cursor != 0);
    CHECK(keys == std::set<std::string>{"few a", "many a", "ends a"});
    CHECK(process.engine->store(2).get("few a").error().code == ErrorCode::wrong_type);
    CHECK(process.engine->hashes(2).hincrby("few a", "one", 1).value() == 43);
    CHECK(process.engine->hashes(2).hincrby("few a", "one", -1).value() == 42);
    check(*process.engine, "a");
    process.spill();
    check(*process.engine, "a");
    CHECK(process.broken().empty());
  }
  ColdLife process{directory, clock, &journal};
  check(*process.engine, "a");
}

TEST_CASE("cold store: what was written before there were hashes is read, and takes them",
          "[storage][cold][hash]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  {
    ColdLife process{directory, clock};
    REQUIRE(process.engine->store().set("old", "string").ok());
    process.spill();
  }
  {
    ColdDatabase cold{directory};
    CHECK(set_formats(cold, 1) == 2);  // the store's and its part's
  }
  {
    ColdLife process{directory, clock};
    CHECK(process.read("old") == "string");
    fill(*process.engine, "a");
    process.spill();
  }
  ColdLife process{directory, clock};
  CHECK(process.read("old") == "string");
  check(*process.engine, "a");
  // The store says now what an earlier release cannot read.
  std::string facts;
  REQUIRE(
      process.cold.database->Get({}, process.cold.families[1], std::string(13, '\0'), &facts).ok());
  CHECK(facts[0] == 3);
}

}  // namespace semel::tests
