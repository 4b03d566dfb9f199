// Objects of many elements as records among others: kind, ttl, sections, journal, snapshot, memory.
#include "engine/object_api/object_calls.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/kinds/element_keys.hpp"
#include "engine/types/stream.hpp"
#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "semel/limits.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using engine::change_object;
using engine::member_key;
using engine::ObjectChange;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::read_object;
using engine::replace_object;

namespace {

Result<ObjectChange> push(Engine& engine, Bytes key, Bytes value) {
  return change_object(engine, {0, key}, Kind::list, [&](ObjectEdit& list) {
    list.insert_at(list.size(), value);
    return ErrorCode::ok;
  });
}

Result<ObjectChange> clear(Engine& engine, Bytes key) {
  return change_object(engine, {0, key}, Kind::list, [&](ObjectEdit& list) {
    list.clear();
    return ErrorCode::ok;
  });
}

std::vector<std::string> values_of(Engine& engine, Bytes key) {
  std::vector<std::string> values;
  REQUIRE(read_object(engine, {0, key}, Kind::list, [&](const ObjectReader& list) {
    list.each(0, list.size(), [&](const engine::Element& element) {
      values.emplace_back(element.value);
      return true;
    });
  }));
  return values;
}

/// The head of the stream is an element, too.
void add_to_stream(ObjectEdit& stream, Bytes value) {
  if (stream.empty()) return engine::begin_stream(stream);
  engine::StreamId id;
  const auto done = engine::add_entry(stream, {}, 1, std::vector<Bytes>{"f", value}, id);
  REQUIRE(done == engine::AddError::none);
}

using Values = std::vector<std::string>;

}  // namespace

TEST_CASE("objects: one begins with its first element and ends with its last",
          "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  CHECK(values_of(engine, "l").empty());
  const auto first = push(engine, "l", "a").value();
  CHECK(first.is_new());
  const auto second = push(engine, "l", "b").value();
  CHECK((second.was_there && second.is_there && second.is_changed));
  CHECK(values_of(engine, "l") == Values{"a", "b"});
  CHECK(bench.store().type("l").value() == Kind::list);
  CHECK(clear(engine, "l").value().is_gone());
  CHECK_FALSE(bench.store().exists("l").value());
  const auto nothing = clear(engine, "l").value();
  CHECK_FALSE((nothing.was_there || nothing.is_there || nothing.is_changed));
  CHECK(broken_rules(engine).empty());
}

TEST_CASE("objects: an error of the change leaves the object as it was", "[engine][objects]") {
  EngineFixture bench;
  REQUIRE(push(*bench.engine, "l", "a").ok());
  const auto failed = change_object(*bench.engine, {0, "l"}, Kind::list, [&](ObjectEdit& list) {
    list.insert_at(0, "b");
    return ErrorCode::not_an_integer;
  });
  CHECK(code_of(failed) == ErrorCode::not_an_integer);
  CHECK(values_of(*bench.engine, "l") == Values{"a"});
}

TEST_CASE("objects: each kind keeps to itself", "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(bench.put("s", "v"));
  REQUIRE(engine.hashes().hset("h", "f", "v").ok());
  REQUIRE(bench.claims("jobs").claim({.key = "c"}).answer == ClaimAnswer::granted);
  for (const Bytes key : {"s", "h", "jobs:c"}) {
    CHECK(code_of(push(engine, key, "x")) == ErrorCode::wrong_type);
    CHECK(read_object(engine, {0, key}, Kind::list, [](const ObjectReader&) {}).error().code ==
          ErrorCode::wrong_type);
  }
  REQUIRE(push(engine, "l", "a").ok());
  CHECK(code_of(engine.hashes().hlen("l")) == ErrorCode::wrong_type);
  CHECK(code_of(bench.store().get("l")) == ErrorCode::wrong_type);
  REQUIRE(push(engine, "jobs:l", "a").ok());
  CHECK(bench.claims("jobs").claim({.key = "l"}).error == ErrorCode::wrong_kind);
}

TEST_CASE("objects: a change keeps the ttl, a replacement does not", "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(push(engine, "l", "a").ok());
  REQUIRE(bench.store().expire("l", Expiry::in(1s)).value());
  REQUIRE(push(engine, "l", "b").ok());
  CHECK(bench.store().ttl("l")->has_ttl);
  const auto fill = [](ObjectEdit& set) {
    set.put(member_key("1"));
    return ErrorCode::ok;
  };
  const auto replaced = replace_object(engine, {0, "l"}, Kind::set, fill).value();
  CHECK((replaced.was_there && replaced.is_there));
  CHECK(bench.store().type("l").value() == Kind::set);
  CHECK_FALSE(bench.store().ttl("l")->has_ttl);
  const auto none = [](ObjectEdit&) { return ErrorCode::ok; };
  CHECK(replace_object(engine, {0, "l"}, Kind::set, none).value().is_gone());
  CHECK_FALSE(bench.store().exists("l").value());
  CHECK_FALSE(replace_object(engine, {0, "l"}, Kind::set, none).value().was_there);
  REQUIRE(bench.claims("jobs").claim({.key = "c"}).answer == ClaimAnswer::granted);
  CHECK(code_of(replace_object(engine, {0, "jobs:c"}, Kind::set, fill)) == ErrorCode::wrong_type);
}

TEST_CASE("objects: an error names the value and the limit", "[engine][objects]") {
  EngineFixture bench{{.value_bytes_max = 100}};
  Engine& engine = *bench.engine;
  CHECK(code_of(push(engine, "", "a")) == ErrorCode::key_empty);
  CHECK(code_of(change_object(engine, {16, "l"}, Kind::list, [](ObjectEdit&) {
          return ErrorCode::ok;
        })) == ErrorCode::db_out_of_range);
  REQUIRE(push(engine, "l", std::string(97, 'v')).ok());
  const auto too_long = push(engine, "l", "");
  REQUIRE_FALSE(too_long.ok());
  CHECK(too_long.error().message() ==
        "value exceeds the limit: bytes of the object = 101, limit 100");
  CHECK(values_of(engine, "l").size() == 1);
}

TEST_CASE("objects: a section takes changes of several as one", "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(push(engine, "from", "a").ok());
  const std::size_t before = bench.journal.size();
  {
    auto section = engine.section({});
    REQUIRE(section);
    REQUIRE(clear(engine, "from").ok());
    REQUIRE(push(engine, "to", "a").ok());
    CHECK(values_of(engine, "to") == Values{"a"});
    CHECK(bench.journal.size() == before);
    REQUIRE(section->commit());
  }
  CHECK(values_of(engine, "from").empty());
  CHECK(values_of(engine, "to") == Values{"a"});
}

TEST_CASE("objects: journal and snapshot bring back all kinds", "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  const std::vector<Kind> kinds{Kind::list, Kind::set, Kind::sorted_set, Kind::stream};
  for (const Kind kind : kinds) {
    for (int i = 0; i < 300; ++i) {
      const std::string key{name_of(kind)};
      const std::string element = "element " + std::to_string(i);
      REQUIRE(change_object(engine, {0, key}, kind, [&](ObjectEdit& object) {
                if (kind == Kind::list) object.insert_at(0, element);
                if (kind == Kind::set) object.put(member_key(element));
                if (kind == Kind::sorted_set) object.put(element);
                if (kind == Kind::stream) add_to_stream(object, element);
                return ErrorCode::ok;
              }).ok());
    }
  }
  const auto again = open_engine({.clock = &bench.clock});
  bench.journal.replay(
      [&](Ticket, const Mutation& mutation) { CHECK(again->host().restore(mutation)); });
  CHECK(contents_of(*again) == contents_of(engine));
  const auto third = open_engine({.clock = &bench.clock});
  REQUIRE(engine.host().snapshot([&](const Mutation& put) { CHECK(third->host().restore(put)); }));
  CHECK(contents_of(*third) == contents_of(engine));
  for (const Kind kind : kinds) {
    CHECK(read_object(*third, {0, name_of(kind)}, kind,
                      [](const ObjectReader& object) { CHECK(object.size() == 300); }));
  }
}

TEST_CASE("objects: bytes of another form are not restored", "[engine][objects]") {
  EngineFixture bench;
  for (const Kind kind : {Kind::list, Kind::set, Kind::sorted_set, Kind::stream}) {
    Mutation put;
    put.kind = kind;
    put.version = 5;
    put.key = "k";
    for (const Bytes wrong : {Bytes{}, Bytes{"\x11\1\1a", 4}, Bytes{"text"}}) {
      put.value = wrong;
      CHECK(bench.engine->host().restore(put).error().code == ErrorCode::storage_damaged);
    }
  }
}

TEST_CASE("objects: a full machine refuses and keeps what was there", "[engine][objects]") {
  EngineFixture bench{{.memory_bytes = limits::memory_bytes_min}};
  Engine& engine = *bench.engine;
  const std::string large(10'000, 'v');
  std::size_t made = 0;
  for (;; ++made) {
    REQUIRE(made < 1'000);
    const auto added = push(engine, "l" + std::to_string(made), large);
    if (added.ok()) continue;
    CHECK(added.error().code == ErrorCode::memory_full);
    break;
  }
  CHECK(values_of(engine, "l0") == Values{large});
  for (std::size_t i = 0; i < made; ++i) REQUIRE(clear(engine, "l" + std::to_string(i)).ok());
  for (int i = 0; i < 4; ++i) engine.advance();
  CHECK(push(engine, "l", large).ok());
}

TEST_CASE("objects: threads that push to one list lose nothing", "[engine][objects]") {
  EngineFixture bench;
  constexpr int each = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        if (!push(*bench.engine, "l", std::to_string(i)).ok()) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(values_of(*bench.engine, "l").size() == 4 * each);
}

}  // namespace semel::tests
