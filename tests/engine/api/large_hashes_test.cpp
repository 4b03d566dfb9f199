// Hashes that are kept in trees: what sees them whole, what shares their nodes, and where they
// become packed again.
#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/object_api/hash_fields.hpp"
#include "engine/object_api/whole_record.hpp"
#include "engine/rules/hash_value.hpp"
#include "semel/hashes.hpp"
#include "semel/limits.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests::large_hashes {

using namespace std::chrono_literals;

namespace {

constexpr int many = 3'000;

std::string field(int i) {
  return "field " + std::to_string(i);
}
std::string value_of(int i) {
  return "value " + std::to_string(i * 7);
}
void fill(Engine& engine, Bytes key, int from, int to) {
  std::vector<std::string> texts;
  for (int i = from; i < to; ++i) {
    texts.push_back(field(i));
    texts.push_back(value_of(i));
  }
  std::vector<FieldValue> pairs;
  for (std::size_t i = 0; i < texts.size(); i += 2) pairs.push_back({texts[i], texts[i + 1]});
  CHECK(engine.hashes().hset(key, pairs).value() == to - from);
}
std::int64_t remove(Engine& engine, Bytes key, int from, int to) {
  std::vector<std::string> texts;
  for (int i = from; i < to; ++i) texts.push_back(field(i));
  const std::vector<Bytes> fields{texts.begin(), texts.end()};
  return engine.hashes().hdel(key, fields).value();
}
using Content = std::map<std::string, std::string>;
Content content_of(Engine& engine, Bytes key) {
  Content all;
  const auto fields = engine.hashes().hgetall(key);
  for (const FieldValue& each : fields.value()) {
    CHECK(all.emplace(each.field, each.value).second);
  }
  CHECK(engine.hashes().hlen(key).value() == static_cast<std::int64_t>(all.size()));
  return all;
}
Content numbers(int from, int to) {
  Content all;
  for (int i = from; i < to; ++i) all[field(i)] = value_of(i);
  return all;
}
/// What records and nodes take, when nothing waits any more.
std::uint64_t held_bytes(Engine& engine) {
  engine.host().quiesce();
  CHECK(broken_rules(engine).empty());
  return engine.stats().bytes_records;
}
std::vector<std::string> fields_in_order(Engine& engine, Bytes key) {
  return engine.hashes().hkeys(key).value();
}

}  // namespace

TEST_CASE("large hashes: a hash of any size answers as a map does, and its memory comes back",
          "[engine][hashes]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  Hashes hashes = engine.hashes();
  const std::uint32_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937 random{seed};
  Content model;
  for (int step = 0; step < 4'000; ++step) {
    // It grows to some 1,500 fields, shrinks to some 100, and grows again.
    const bool grows = step / 1'000 % 2 == 0;
    const int batch = random() % 20 == 0 ? 40 : 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < batch; ++i) {
      const std::string name = field(static_cast<int>(random() % 2'000));
      if (random() % 4 != 0 == grows) {
        const std::string text(random() % 40, static_cast<char>('a' + random() % 26));
        CHECK(hashes.hset("h", name, text).value() == !model.contains(name));
        model[name] = text;
      } else {
        const Bytes one[] = {name};
        CHECK(hashes.hdel("h", one).value() == static_cast<std::int64_t>(model.erase(name)));
      }
    }
    const std::string asked = field(static_cast<int>(random() % 2'000));
    const auto found = hashes.hget("h", asked).value();
    REQUIRE(found.has_value() == model.contains(asked));
    if (found) REQUIRE(*found == model[asked]);
    if (step % 100 == 0) REQUIRE(content_of(engine, "h") == model);
  }
  REQUIRE(bench.store().del("h").value());
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large hashes: fields keep their order up to 512 of them and 32 KiB",
          "[engine][hashes]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  fill(engine, "h", 0, 512);
  std::vector<std::string> expected;
  for (int i = 0; i < 512; ++i) expected.push_back(field(i));
  CHECK(fields_in_order(engine, "h") == expected);
  fill(engine, "h", 512, 513);  // it is large now
  expected.push_back(field(512));
  CHECK(fields_in_order(engine, "h") != expected);
  CHECK(content_of(engine, "h") == numbers(0, 513));
  CHECK(remove(engine, "h", 0, 257) == 257);  // and packed again
  const auto order = fields_in_order(engine, "h");
  fill(engine, "h", 1'000, 1'001);
  auto after = order;
  after.push_back(field(1'000));
  CHECK(fields_in_order(engine, "h") == after);

  Hashes hashes = engine.hashes();
  const std::string long_value(20'000, 'v');
  CHECK(hashes.hset("v", "z", long_value).value());
  CHECK(hashes.hset("v", "a", long_value).value());
  CHECK(hashes.hget("v", "z").value() == long_value);
  CHECK(hashes.hget("v", "a").value() == long_value);
  CHECK_FALSE(hashes.hset("v", "a", "short").value());
  CHECK(hashes.hgetall("v").value().size() == 2);
}

TEST_CASE("large hashes: a scan meets each field that stays, whatever form the hash has",
          "[engine][hashes]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  fill(engine, "h", 0, many);
  std::set<std::string> met;
  std::uint64_t cursor = 0;
  int calls = 0;
  do {
    const auto page = engine.hashes().hscan("h", cursor, {}, 50);
    for (const FieldValue& each : page->items) met.emplace(each.field);
    cursor = page->cursor;
    // Fields come and go, and half of the fields go in the middle.
    fill(engine, "h", many + calls, many + calls + 1);
    if (calls == 20) CHECK(remove(engine, "h", 1'000, many) == many - 1'000);
    if (calls == 25) {  // as after a restart: packed
      const auto whole = engine::read_whole(engine, {0, "h"});
      REQUIRE(engine::replace_whole(engine, {0, "h"}, *whole.value()));
    }
    ++calls;
  } while (cursor != 0);
  CHECK(calls > 25);
  for (int i = 0; i < 1'000; ++i) CHECK(met.contains(field(i)));
  CHECK_FALSE(engine.hashes().hscan("h", 0, "field 12*", 100'000)->items.empty());
}

TEST_CASE("large hashes: journal, snapshot and whole records have their fields and ends",
          "[engine][hashes]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  fill(engine, "h", 0, many);
  fill(engine, "h", many, many + 1);
  const std::string first = field(0);
  const std::string second = field(1);
  const Bytes two[] = {first, second};
  REQUIRE(engine::expire_fields(engine, {0, "h"}, two, Expiry::in(10s), {}).ok());
  REQUIRE(bench.store().expire("h", Expiry::in(1h)).value());
  const auto check = [&](Engine& other) {
    CHECK(contents_of(other) == contents_of(engine));
    CHECK(content_of(other, "h") == content_of(engine, "h"));
    CHECK(engine::field_ends(other, {0, "h"}, two).value() ==
          engine::field_ends(engine, {0, "h"}, two).value());
    fill(other, "h", many + 1, many + 2);
    CHECK(content_of(other, "h").size() == static_cast<std::size_t>(many) + 2);
    REQUIRE(other.store().del("h").value());
    CHECK(held_bytes(other) == 0);
  };
  const auto again = open_engine({.clock = &bench.clock});
  bench.journal.replay(
      [&](Ticket, const Mutation& mutation) { CHECK(again->host().restore(mutation)); });
  check(*again);
  const auto third = open_engine({.clock = &bench.clock});
  REQUIRE(engine.host().snapshot([&](const Mutation& put) { CHECK(third->host().restore(put)); }));
  check(*third);
  // The bytes are those that a hash has had all along.
  const auto whole = engine::read_whole(engine, {0, "h"});
  REQUIRE((whole.ok() && whole.value()));
  CHECK(engine::is_sound((*whole)->value));
  CHECK(engine::HashView{(*whole)->value}.size() == static_cast<std::size_t>(many) + 1);
}

TEST_CASE("large hashes: bytes of the name of one are not restored", "[engine][hashes]") {
  EngineFixture bench;
  fill(*bench.engine, "h", 0, many);
  for (const std::size_t bytes : {16U, 24U, 48U}) {
    std::string forged(bytes, '\0');
    forged[0] = 0x20;
    Mutation put;
    put.kind = Kind::hash;
    put.version = 5'000;
    put.key = "k";
    put.value = forged;
    CHECK_FALSE(bench.engine->host().restore(put));
    CHECK_FALSE(
        engine::replace_whole(*bench.engine, {0, "k"}, {.kind = Kind::hash, .value = forged}));
  }
  CHECK_FALSE(bench.store().exists("k").value());
}

TEST_CASE("large hashes: a ttl, a copy and another name share the nodes", "[engine][hashes]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  fill(engine, "a", 0, many);
  const std::string first = field(0);
  const Bytes one_field[] = {first};
  REQUIRE(engine::expire_fields(engine, {0, "a"}, one_field, Expiry::in(10s), {}).ok());
  const std::uint64_t one = held_bytes(engine);
  REQUIRE(bench.store().expire("a", Expiry::in(1h)).value());
  REQUIRE(bench.store().copy("a", "b", std::nullopt, false).ok());
  REQUIRE(bench.store().rename("b", "c").ok());
  CHECK(held_bytes(engine) < one + 1'000);
  CHECK(bench.store().ttl("c")->due == bench.clock.now() + 1h);
  fill(engine, "a", many, many + 1);
  CHECK(held_bytes(engine) < one + 10'000);
  CHECK(remove(engine, "c", 1, 2) == 1);  // a chain of its own from here on
  CHECK(content_of(engine, "a") == numbers(0, many + 1));
  bench.pass(10s);
  Content left = numbers(2, many);
  CHECK(content_of(engine, "c") == left);
  CHECK(content_of(engine, "a") == numbers(1, many + 1));
  bench.pass(2h);
  CHECK_FALSE(bench.store().exists("a").value());
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large hashes: a field that is set to what it is counts as a change",
          "[engine][hashes]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  fill(engine, "h", 0, many);
  const auto version = [&] {
    Version found = 0;
    for (const auto& [key, held] : contents_of(engine)) found = held.version;
    return found;
  };
  const Version before = version();
  CHECK_FALSE(engine.hashes().hset("h", field(7), value_of(7)).value());
  CHECK(version() > before);
  CHECK(content_of(engine, "h") == numbers(0, many));
  const Version after = version();
  CHECK(remove(engine, "h", many, many + 5) == 0);
  CHECK(version() == after);
  REQUIRE(bench.store().del("h").value());
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large hashes: many fields end at once, some of them or all", "[engine][hashes]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  for (const int ended : {3, 60, 400, many - 5, many}) {
    INFO(ended << " fields end");
    fill(engine, "h", 0, many);
    std::vector<std::string> texts;
    for (int i = 0; i < ended; ++i) texts.push_back(field(i));
    const std::vector<Bytes> fields{texts.begin(), texts.end()};
    REQUIRE(engine::expire_fields(engine, {0, "h"}, fields, Expiry::in(10ms), {}).ok());
    CHECK(engine::has_field_ends(engine, {0, "h"}).value());
    bench.clock.advance(10ms);  // nobody looks
    CHECK(content_of(engine, "h") == numbers(ended, many));
    CHECK(bench.store().exists("h").value() == (ended != many));
    CHECK(engine.hashes().hrandfield("h").value().has_value() == (ended != many));
    const auto next = engine.hashes().hscan("h", 0, {}, 100'000);
    CHECK(next->items.size() == static_cast<std::size_t>(many - ended));
    bench.pass(1ms);
    CHECK(content_of(engine, "h") == numbers(ended, many));
    if (ended != many) {
      CHECK_FALSE(engine::has_field_ends(engine, {0, "h"}).value());
      REQUIRE(bench.store().del("h").value());
    }
    CHECK(held_bytes(engine) == 0);
  }
}

TEST_CASE("large hashes: random fields are of the hash, and different unless they may repeat",
          "[engine][hashes]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  fill(engine, "h", 0, many);
  for (const std::int64_t count : {1, 2, 100, many / 8, many / 8 + 1, many, many + 1}) {
    const auto picked = engine.hashes().hrandfield("h", count);
    std::set<std::string> names;
    for (const FieldValue& each : picked.value()) names.emplace(each.field);
    CHECK(picked->size() == static_cast<std::size_t>(std::min<std::int64_t>(count, many)));
    CHECK(names.size() == picked->size());
  }
  CHECK(engine.hashes().hrandfield("h", -5'000)->size() == 5'000);
  std::map<std::string, int> drawn;
  for (int i = 0; i < 40; ++i) {
    const auto picked = engine.hashes().hrandfield("h", -many);
    for (const FieldValue& each : picked.value()) ++drawn[std::string{each.field}];
  }
  CHECK(drawn.size() == static_cast<std::size_t>(many));  // each is as likely: 40 draws of it
  double deviation = 0;
  for (const auto& [name, times] : drawn) deviation += (times - 40.0) * (times - 40.0) / 40.0;
  CHECK(deviation < many + 6 * 78);  // chi-square of 2,999 degrees: six deviations
}

TEST_CASE("large hashes: their bytes have the limit of a record", "[engine][hashes]") {
  EngineFixture bench{{.value_bytes_max = 100'000}};
  Engine& engine = *bench.engine;
  fill(engine, "h", 0, 2'000);
  const auto whole = [&] { return engine::read_whole(engine, {0, "h"}).value()->value.size(); };
  std::size_t left = 100'000 - whole();
  // A new field of three bytes with a long value takes: a word of the index, its lengths, itself.
  const std::string value(left - 8 - 1 - 3 - 3, 'v');
  REQUIRE(value.size() >= 16'384);
  const auto refused = engine.hashes().hset("h", "new", value + "v");
  CHECK(code_of(refused) == ErrorCode::value_too_long);
  CHECK(content_of(engine, "h") == numbers(0, 2'000));
  CHECK(engine.hashes().hset("h", "new", value).value());
  CHECK(whole() == 100'000);
  CHECK(code_of(engine.hashes().hset("h", "f", "")) == ErrorCode::value_too_long);
  CHECK_FALSE(engine.hashes().hset("h", "new", "short").value());
  CHECK(engine.hashes().hset("h", "f", "").value());
}

TEST_CASE("large hashes: a full memory refuses what grows and takes what shrinks",
          "[engine][hashes]") {
  ManualClock clock;
  const auto opened = open_engine({.clock = &clock,
                                   .memory_bytes = std::size_t{16} << 20,
                                   .value_bytes_max = limits::value_bytes_max});
  Engine& engine = *opened;
  int count = 0;
  const std::string payload(30, 'p');
  ErrorCode error = ErrorCode::ok;
  for (; error == ErrorCode::ok; ++count) {
    error = code_of(engine.hashes().hset("h", field(count), payload));
  }
  CHECK(error == ErrorCode::memory_full);
  --count;
  CHECK(count > 70'000);  // more than the fields that a hash could have
  CHECK(engine.hashes().hlen("h").value() == count);
  CHECK(engine.hashes().hget("h", field(count - 1)).value() == payload);
  CHECK(remove(engine, "h", 0, 100) == 100);
  REQUIRE(engine.store().expire("h", Expiry::in(1h)).value());
  const std::string last = field(count - 1);
  const Bytes one[] = {last};
  static_cast<void>(engine::expire_fields(engine, {0, "h"}, one, Expiry::in(1s), {}).ok());
  REQUIRE(engine.store().del("h").value());
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large hashes: readers see one version each, and writers lose no change",
          "[engine][hashes][race]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  fill(engine, "h", 0, 1'000);
  std::atomic<bool> ends{false};
  std::atomic<int> wrong{0};
  const auto read = [&] {
    while (!ends.load(std::memory_order_relaxed)) {
      const auto all = engine.hashes().hgetall("h");
      // Each section changes two fields alike.
      Content seen;
      for (const FieldValue& each : all.value()) seen.emplace(each.field, each.value);
      if (seen["one"] != seen["two"]) wrong.fetch_add(1, std::memory_order_relaxed);
    }
  };
  const auto write = [&] {
    for (int i = 0; i < 300; ++i) {
      if (!engine.hashes().hincrby("h", "counter", 1).ok())
        wrong.fetch_add(1, std::memory_order_relaxed);
      const std::string text = std::to_string(i);
      const FieldValue pairs[] = {{"one", text}, {"two", text}};
      if (!engine.hashes().hset("h", pairs).ok()) wrong.fetch_add(1, std::memory_order_relaxed);
    }
  };
  std::thread reader{read};
  std::vector<std::thread> writers;
  for (int i = 0; i < 3; ++i) writers.emplace_back(write);
  for (std::thread& each : writers) each.join();
  ends.store(true, std::memory_order_relaxed);
  reader.join();
  CHECK(wrong.load(std::memory_order_relaxed) == 0);
  CHECK(engine.hashes().hget("h", "counter").value() == "900");
  REQUIRE(bench.store().del("h").value());
  CHECK(held_bytes(engine) == 0);
}

}  // namespace semel::tests::large_hashes
