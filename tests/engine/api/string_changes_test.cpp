// Changes of strings by a function: kind, ttl, length, errors.
#include "engine/object_api/object_calls.hpp"

#include <string>
#include "tests/support/catch.hpp"

#include "engine/kinds/element_keys.hpp"
#include "semel/engine_host.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using engine::change_string;
using engine::ObjectChange;
using engine::read_string;
using engine::replace_string;
using engine::StringEdit;

namespace {

Result<ObjectChange> append(Engine& engine, Bytes key, Bytes tail) {
  return change_string(engine, {0, key}, [&](StringEdit& edit) {
    edit.value() += tail;
    return ErrorCode::ok;
  });
}

bool is_raw(Engine& engine, Bytes key) {
  StoreOutcome found;
  engine.host().apply({.verb = Verb::type, .key = key}, found);
  return found.raw;
}

}  // namespace

TEST_CASE("string changes: a missing string begins, and one that is there is changed",
          "[engine][objects][strings]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  CHECK(append(engine, "s", "a")->is_new());
  const ObjectChange second = append(engine, "s", "b").value();
  CHECK((second.was_there && second.is_there && second.is_changed));
  CHECK(bench.store().get("s").value() == "ab");
  CHECK(is_raw(engine, "s"));
  CHECK(append(engine, "empty", "")->is_new());
  CHECK(bench.store().get("empty").value() == "");
  CHECK(broken_rules(engine).empty());
}

TEST_CASE("string changes: what is not opened, or kept after all, is not stored",
          "[engine][objects][strings]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(bench.put("s", "v"));
  const auto version = [&] { return bench.store().get_versioned("s").value()->version; };
  const auto before = version();
  const auto untouched = change_string(engine, {0, "s"}, [](StringEdit&) { return ErrorCode::ok; });
  CHECK_FALSE(untouched->is_changed);
  const auto kept = change_string(engine, {0, "s"}, [](StringEdit& edit) {
    edit.value() = "other";
    edit.keep();
    return ErrorCode::ok;
  });
  CHECK_FALSE(kept->is_changed);
  const auto refused = change_string(engine, {0, "s"}, [](StringEdit& edit) {
    edit.value() = "other";
    return ErrorCode::not_an_integer;
  });
  CHECK(code_of(refused) == ErrorCode::not_an_integer);
  CHECK(bench.store().get("s").value() == "v");
  CHECK(version() == before);
  const auto absent = change_string(engine, {0, "none"}, [](StringEdit& edit) {
    CHECK_FALSE(edit.was_there());
    return ErrorCode::ok;
  });
  CHECK_FALSE((absent->was_there || absent->is_there));
  CHECK_FALSE(bench.store().exists("none").value());
}

TEST_CASE("string changes: the ttl stays, and ends with a replacement",
          "[engine][objects][strings]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(bench.put("s", "v"));
  REQUIRE(bench.store().expire("s", Expiry::in(1s)).value());
  REQUIRE(append(engine, "s", "w").ok());
  CHECK(bench.store().ttl("s")->has_ttl);
  REQUIRE(replace_string(engine, {0, "s"}, "new").ok());
  CHECK_FALSE(bench.store().ttl("s")->has_ttl);
  CHECK(bench.store().get("s").value() == "new");
  CHECK(is_raw(engine, "s"));
}

TEST_CASE("string changes: other kinds are refused, and replaced, but claims are not",
          "[engine][objects][strings]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(engine::change_object(engine, {0, "l"}, Kind::list, [](engine::ObjectEdit& list) {
            list.insert_at(0, "x");
            return ErrorCode::ok;
          }).ok());
  REQUIRE(bench.claims("jobs").claim({.key = "c"}).answer == ClaimAnswer::granted);
  for (const Bytes key : {"l", "jobs:c"}) {
    CHECK(code_of(append(engine, key, "x")) == ErrorCode::wrong_type);
    const Status read = read_string(engine, {0, key}, [](const Bytes*) { FAIL(); });
    CHECK(read.error().code == ErrorCode::wrong_type);
  }
  CHECK(replace_string(engine, {0, "l"}, "v")->is_changed);
  CHECK(bench.store().get("l").value() == "v");
  CHECK(code_of(replace_string(engine, {0, "jobs:c"}, "v")) == ErrorCode::wrong_type);
  CHECK(code_of(append(engine, "", "x")) == ErrorCode::key_empty);
}

TEST_CASE("string changes: one that would be too long names both lengths",
          "[engine][objects][strings]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  const std::size_t limit = engine::value_bytes_max(engine);
  REQUIRE(append(engine, "s", std::string(limit, 'x')).ok());
  const auto longer = append(engine, "s", "y");
  REQUIRE(code_of(longer) == ErrorCode::value_too_long);
  CHECK(longer.error().detail ==
        std::to_string(limit + 1) + " bytes, at most " + std::to_string(limit));
  CHECK(bench.store().strlen("s").value() == static_cast<std::int64_t>(limit));
}

}  // namespace semel::tests
