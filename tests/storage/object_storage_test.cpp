// Lists, sets, sorted sets and streams on the disk: the next process, the files behind the log, the
// cold store, and the tools.
#include <array>
#include <set>
#include <string>
#include "tests/support/catch.hpp"

#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/object_calls.hpp"
#include "semel/storage_tools.hpp"
#include "tests/storage/cold/cold_fixture.hpp"
#include "tests/storage/directory.hpp"
#include "tests/storage/golden.hpp"
#include "tests/storage/repair/tool_fixture.hpp"
#include "tests/support/stream_elements.hpp"

namespace semel::tests::object_storage {  // names that other tests have as well

using namespace std::chrono_literals;
using engine::ObjectEdit;
using engine::ObjectReader;

namespace {

constexpr std::array object_kinds{Kind::list, Kind::set, Kind::sorted_set, Kind::stream};
constexpr int many = 30;  // fits into the values of golden::open
constexpr int few = 3;

/// In the order of its kind.
std::string element_key(Kind kind, int number) {
  if (kind == Kind::set) return engine::member_key(std::to_string(number));
  const auto score = engine::encode_score(number);
  return std::string{score.data(), score.size()} + "m" + std::to_string(number);
}

/// Each has bytes that are no text.
std::string element_value(int number) {
  return std::string{"\0\xff", 2} + std::to_string(number);
}

void put(ObjectEdit& object, int number) {
  const Kind kind = object.kind();
  if (kind == Kind::list) return object.insert_at(object.size(), element_value(number));
  if (kind == Kind::stream) return put_stream_element(object, number);
  object.put(element_key(kind, number));
}

void make(Engine& engine, const std::string& key, Kind kind, int elements) {
  const auto made = engine::change_object(engine, {2, key}, kind, [&](ObjectEdit& object) {
    object.clear();
    for (int i = 0; i < elements; ++i) put(object, i);
    return ErrorCode::ok;
  });
  REQUIRE(made.ok());
}

std::string key_of(Kind kind, const std::string& size, const std::string& part) {
  return std::string{name_of(kind)} + " " + size + " " + part;
}

void fill(Engine& engine, const std::string& part) {
  for (const Kind kind : object_kinds) {
    make(engine, key_of(kind, "few", part), kind, few);
    make(engine, key_of(kind, "many", part), kind, many);
    make(engine, key_of(kind, "gone", part), kind, few);
    make(engine, key_of(kind, "gone", part), kind, 0);
    make(engine, key_of(kind, "ends", part), kind, few);
    REQUIRE(engine.store(2).expire(key_of(kind, "ends", part), Expiry::in(60s)).value());
  }
}

void check_elements(const ObjectReader& object, Kind kind, int elements) {
  REQUIRE(object.size() == static_cast<std::size_t>(elements));
  ObjectEdit wanted{kind};
  for (int i = 0; i < elements; ++i) put(wanted, i);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(object.at(i).key == wanted.at(i).key);
    CHECK(object.at(i).value == wanted.at(i).value);
  }
}

void check(Engine& engine, const std::string& part) {
  for (const Kind kind : object_kinds) {
    INFO(name_of(kind) << " " << part);
    const auto holds = [&](const std::string& size, int elements) {
      REQUIRE(engine::read_object(
          engine, {2, key_of(kind, size, part)}, kind,
          [&](const ObjectReader& object) { check_elements(object, kind, elements); }));
    };
    holds("few", few);
    holds("many", many);
    holds("ends", few);
    CHECK_FALSE(engine.store(2).exists(key_of(kind, "gone", part)).value());
    CHECK(engine.store(2).ttl(key_of(kind, "ends", part)).value().remaining == 60s);
    CHECK(engine.store(2).type(key_of(kind, "few", part)).value() == kind);
  }
}

std::set<std::string> names_of_kinds() {
  std::set<std::string> names;
  for (const Kind kind : object_kinds) names.emplace(name_of(kind));
  return names;
}

/// The first word of a cold store's or part's facts, which is their format.
std::set<int> formats_of(ColdDatabase& cold) {
  std::set<int> formats;
  const std::unique_ptr<rocksdb::Iterator> at{cold.database->NewIterator({}, cold.families[1])};
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    if (at->key().ToString().substr(8) != std::string(5, '\0')) continue;  // what 0, index 0
    formats.insert(static_cast<unsigned char>(at->value()[0]));
  }
  return formats;
}

void set_formats(ColdDatabase& cold, char format) {
  const std::unique_ptr<rocksdb::Iterator> at{cold.database->NewIterator({}, cold.families[1])};
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    const std::string key = at->key().ToString();
    if (key.substr(8) != std::string(5, '\0')) continue;
    std::string value = at->value().ToString();
    value[0] = format;
    REQUIRE(cold.database->Put({}, cold.families[1], key, value).ok());
  }
}

}  // namespace

TEST_CASE("storage: objects are there in the next process, from the log and from files",
          "[storage][object]") {
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
  CHECK(kinds == names_of_kinds());
  CHECK(verify_storage(directory.path()).value().findings.empty());
  for (int life_number = 0; life_number < 2; ++life_number) {
    auto process = golden::open(directory.path(), clock);
    REQUIRE(process);
    check(*process->engine, "drained");
    check(*process->engine, "logged");
    if (life_number == 0) REQUIRE(process->storage->rewrite(*process->engine));
  }
}

TEST_CASE("storage: a backup and a repair keep objects", "[storage][object]") {
  const Directory directory;
  const std::string path = directory.path() + "/s";
  ManualClock clock{golden::engine_start, golden::unix_start_ms};
  {
    auto process = golden::open(path, clock);
    REQUIRE(process);
    fill(*process->engine, "drained");
    REQUIRE(process->storage->drain());
    fill(*process->engine, "logged");
    REQUIRE(process->storage->backup(directory.path() + "/backup"));
  }
  REQUIRE(restore_backup(directory.path() + "/backup", directory.path() + "/back"));
  for (const std::size_t slot : {0U, 4096U}) flip(path + "/mark", slot + 20);
  CHECK_FALSE(verify_storage(path).value().findings.empty());
  REQUIRE(repair_storage(path, true));
  CHECK(verify_storage(path).value().findings.empty());
  for (const char* where : {"/s", "/back"}) {
    auto process = golden::open(directory.path() + where, clock);
    REQUIRE(process);
    check(*process->engine, "drained");
    check(*process->engine, "logged");
  }
}

TEST_CASE("cold store: objects leave memory, are read, changed and come back",
          "[storage][cold][object]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  MemoryJournal journal;
  {
    ColdLife process{directory, clock, &journal};
    fill(*process.engine, "a");
    CHECK(process.spill().records == 3 * object_kinds.size());
    CHECK(process.engine->stats().records == 0);
    check(*process.engine, "a");
    for (const Kind kind : object_kinds) {
      INFO(name_of(kind));
      const std::string key = key_of(kind, "few", "a");
      std::set<std::string> keys;
      std::uint64_t cursor = 0;
      do {
        cursor = process.engine
                     ->scan(cursor, {.kind = kind},
                            [&](const ScanItem& item) { keys.emplace(item.key); })
                     .value();
      } while (cursor != 0);
      CHECK(keys.size() == 3);
      CHECK(keys.contains(key));
      CHECK(process.engine->store(2).get(key).error().code == ErrorCode::wrong_type);
      make(*process.engine, key, kind, few + 1);
      make(*process.engine, key, kind, few);
    }
    check(*process.engine, "a");
    process.spill();
    check(*process.engine, "a");
    CHECK(process.broken().empty());
  }
  ColdLife process{directory, clock, &journal};
  check(*process.engine, "a");
}

TEST_CASE("cold store: what was written before there were objects is read, and takes them",
          "[storage][cold][object]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  {
    ColdLife process{directory, clock};
    REQUIRE(process.engine->store().set("old", "string").ok());
    process.spill();
  }
  {
    ColdDatabase cold{directory};
    set_formats(cold, 2);
    CHECK(formats_of(cold) == std::set{2});
  }
  {
    ColdLife process{directory, clock};
    CHECK(process.read("old") == "string");
    fill(*process.engine, "a");
    process.spill();
  }
  {
    ColdLife process{directory, clock};
    CHECK(process.read("old") == "string");
    check(*process.engine, "a");
  }
  // The store itself says now what an earlier release cannot read.
  ColdDatabase cold{directory};
  std::string facts;
  REQUIRE(cold.database->Get({}, cold.families[1], std::string(13, '\0'), &facts).ok());
  CHECK(facts[0] == 3);
  CHECK(formats_of(cold).contains(3));
}

}  // namespace semel::tests::object_storage
