// Records as a whole: read in one engine, put into another.
#include "engine/object_api/whole_record.hpp"

#include <array>
#include <string>
#include "tests/support/catch.hpp"

#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/object_calls.hpp"
#include "semel/hashes.hpp"
#include "tests/engine/engine_fixture.hpp"
#include "tests/support/stream_elements.hpp"

namespace semel::tests::whole_record {  // names that other tests have as well

using namespace std::chrono_literals;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::read_whole;
using engine::replace_whole;
using engine::WholeRecord;

namespace {

constexpr std::array object_kinds{Kind::list, Kind::set, Kind::sorted_set, Kind::stream};

void make(Engine& engine, Bytes key, Kind kind, int elements) {
  REQUIRE(engine::replace_object(engine, {0, key}, kind, [&](ObjectEdit& object) {
            for (int i = 0; i < elements; ++i) {
              const std::string number = std::to_string(i);
              if (kind == Kind::list) object.insert_at(object.size(), number);
              if (kind == Kind::set) object.put(engine::member_key(number));
              if (kind == Kind::sorted_set) object.put("8 bytes." + number);
              if (kind == Kind::stream) put_stream_element(object, i);
            }
            return ErrorCode::ok;
          }).ok());
}

std::size_t size_of(Engine& engine, Bytes key, Kind kind) {
  std::size_t size = 0;
  REQUIRE(engine::read_object(engine, {0, key}, kind,
                              [&](const ObjectReader& object) { size = object.size(); }));
  return size;
}

ErrorCode code_of(const Status& status) {
  return status ? ErrorCode::ok : status.error().code;
}

}  // namespace

TEST_CASE("whole record: one of every kind but claims goes from engine to engine",
          "[engine][objects]") {
  EngineFixture from;
  EngineFixture to;
  for (const Kind kind : object_kinds) make(*from.engine, name_of(kind), kind, 200);
  REQUIRE(from.engine->store().set("string", "v").ok());
  REQUIRE(from.engine->hashes().hset("hash", "f", "v").ok());
  for (const Kind kind : record_kinds()) {
    INFO(name_of(kind));
    if (kind == Kind::claim) continue;
    const Bytes key = name_of(kind);
    const auto read = read_whole(*from.engine, {0, key});
    REQUIRE(read.ok());
    REQUIRE(*read);
    CHECK((*read)->kind == kind);
    CHECK((*read)->due == no_end);
    CHECK((*read)->version != 0);
    REQUIRE(replace_whole(*to.engine, {0, key}, **read));
    CHECK(to.engine->store().type(key).value() == kind);
    CHECK(read_whole(*to.engine, {0, key}).value()->value == (*read)->value);
  }
  CHECK(size_of(*to.engine, "zset", Kind::sorted_set) == 200);
  CHECK(to.engine->hashes().hget("hash", "f").value() == "v");
}

TEST_CASE("whole record: an end goes with it, and one that has passed removes what was there",
          "[engine][objects]") {
  EngineFixture bench;
  make(*bench.engine, "from", Kind::set, 3);
  REQUIRE(bench.engine->store().expire("from", Expiry::in(10ms)).value());
  WholeRecord record = *read_whole(*bench.engine, {0, "from"}).value();
  REQUIRE(bench.engine->store().set("to", "a string").ok());
  REQUIRE(replace_whole(*bench.engine, {0, "to"}, record));
  CHECK(bench.engine->store().ttl("to").value().remaining == 10ms);
  CHECK(size_of(*bench.engine, "to", Kind::set) == 3);
  bench.clock.advance(9ms);
  CHECK(bench.engine->store().exists("to").value());
  bench.clock.advance(1ms);
  CHECK_FALSE(bench.engine->store().exists("to").value());
  CHECK_FALSE(read_whole(*bench.engine, {0, "from"}).value());

  REQUIRE(bench.engine->store().set("to", "again").ok());
  REQUIRE(replace_whole(*bench.engine, {0, "to"}, record));  // its end has come
  CHECK_FALSE(bench.engine->store().exists("to").value());
  record.due = bench.engine->now() + Millis{1};
  REQUIRE(replace_whole(*bench.engine, {0, "to"}, record));
  CHECK(bench.engine->store().exists("to").value());
}

TEST_CASE("whole record: bytes of another form, claims and what is too long are refused",
          "[engine][objects]") {
  EngineFixture bench{{.value_bytes_max = 1000}};
  Engine& engine = *bench.engine;
  REQUIRE(engine.store().set("k", "v").ok());
  for (const Kind kind : object_kinds) {
    for (const Bytes wrong : {Bytes{}, Bytes{"\x11\1\1a", 4}, Bytes{"text"}}) {
      CHECK(code_of(replace_whole(engine, {0, "k"}, {.kind = kind, .value = std::string{wrong}})) ==
            ErrorCode::bad_option);
    }
  }
  auto claims = engine.claims("jobs", Policy{});
  REQUIRE(claims.ok());
  REQUIRE(claims->claim({.key = "work"}).answer == ClaimAnswer::granted);
  std::string claim_key;
  static_cast<void>(
      engine.scan(0, {.kind = Kind::claim}, [&](const ScanItem& item) { claim_key = item.key; }));
  REQUIRE_FALSE(claim_key.empty());
  CHECK(read_whole(engine, {0, claim_key}).error().code == ErrorCode::wrong_type);
  CHECK(code_of(replace_whole(engine, {0, claim_key}, {.value = "v"})) == ErrorCode::wrong_type);
  CHECK(code_of(replace_whole(engine, {0, "k"}, {.kind = Kind::claim})) == ErrorCode::wrong_type);
  CHECK(code_of(replace_whole(engine, {0, "k"}, {.kind = Kind::name_space})) ==
        ErrorCode::wrong_type);
  CHECK(code_of(replace_whole(engine, {0, "k"}, {.value = std::string(1001, 'v')})) ==
        ErrorCode::value_too_long);
  CHECK(code_of(replace_whole(engine, {0, ""}, {.value = "v"})) == ErrorCode::key_empty);
  CHECK(code_of(replace_whole(engine, {16, "k"}, {.value = "v"})) == ErrorCode::db_out_of_range);
  CHECK(engine.store().get("k").value() == "v");
  CHECK(code_of(replace_whole(engine, {0, "k"}, {.value = std::string(1000, 'v')})) ==
        ErrorCode::ok);
}

TEST_CASE("whole record: within a section it is a part of it", "[engine][objects]") {
  EngineFixture bench;
  make(*bench.engine, "from", Kind::list, 3);
  const std::array keys{KeyRef{0, "from"}, KeyRef{0, "to"}};
  auto section = bench.engine->section(keys);
  REQUIRE(section.ok());
  const auto read = read_whole(*bench.engine, keys[0]);
  REQUIRE(read.ok());
  REQUIRE(replace_whole(*bench.engine, keys[1], **read));
  CHECK(read_whole(*bench.engine, keys[1]).value()->value == (*read)->value);
  REQUIRE(section->commit());
  CHECK(size_of(*bench.engine, "to", Kind::list) == 3);
}

}  // namespace semel::tests::whole_record
