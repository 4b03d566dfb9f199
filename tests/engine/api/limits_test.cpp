// Every bound of an engine, at n and at n + 1. Some stand beside what they bound: options in
// engine_test, sections in section_test, scans in scan_test, ttls in expiry_test, batches of claims
// in claims_batch_test, waiters in waiting_test.
#include "semel/limits.hpp"

#include <span>

#include "semel/engine_host.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

TEST_CASE("limits: keys of 1..key_bytes_max bytes are taken by every call", "[engine][limits]") {
  for (const std::size_t limit : {std::size_t{1}, std::size_t{300}, limits::key_bytes_max}) {
    EngineFixture f{{.key_bytes_max = limit}};
    const std::string longest(limit, 'k');
    const std::string too_long(limit + 1, 'k');
    CHECK(f.put(longest, "v"));
    CHECK(f.read(longest) == "v");
    CHECK(code_of(f.store().set(too_long, "v")) == ErrorCode::key_too_long);
    CHECK(code_of(f.store().get(too_long)) == ErrorCode::key_too_long);
    CHECK(code_of(f.store().del(too_long)) == ErrorCode::key_too_long);
    CHECK(code_of(f.store().get("")) == ErrorCode::key_empty);
    CHECK(code_of(f.store().set("", "v")) == ErrorCode::key_empty);
    auto section = f.engine->section({});
    StoreOutcome outcome;
    section->apply({.verb = Verb::set, .key = too_long}, outcome);
    CHECK(outcome.error == ErrorCode::key_too_long);
    section->apply({.verb = Verb::get, .key = longest}, outcome);
    CHECK(outcome.value == "v");
  }
}

TEST_CASE("limits: values of 0..value_bytes_max bytes are taken, however they come about",
          "[engine][limits]") {
  for (const std::size_t limit : {std::size_t{0}, std::size_t{300}, limits::value_bytes_default}) {
    EngineFixture f{{.value_bytes_max = limit}};
    const std::string longest(limit, 'v');
    CHECK(f.put("k", longest));
    CHECK(f.read("k") == longest);
    CHECK(code_of(f.store().set("k", longest + "v")) == ErrorCode::value_too_long);
    CHECK(code_of(f.store().append("k", "v")) == ErrorCode::value_too_long);
    CHECK(code_of(f.store().setrange("k", static_cast<std::int64_t>(limit), "v")) ==
          ErrorCode::value_too_long);
    CHECK(f.read("k") == longest);
    CHECK(f.put("k", ""));
    CHECK(f.read("k") == "");
  }
}

TEST_CASE("limits: the largest record of all is kept", "[engine][limits]") {
  EngineFixture f{
      {.memory_bytes = std::size_t{128} << 20, .value_bytes_max = limits::value_bytes_max}};
  const std::string key(limits::key_bytes_max, 'k');
  std::string value(limits::value_bytes_max, 'v');
  value.back() = 'e';
  REQUIRE(f.put(key, value));
  CHECK(f.read(key) == value);
  CHECK(code_of(f.store().append(key, "x")) == ErrorCode::value_too_long);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("limits: databases 0..db_count - 1 are taken", "[engine][limits]") {
  EngineFixture f;
  CHECK(f.put("k", "v", Expiry::clear(), limits::db_count - 1));
  CHECK(code_of(f.store(limits::db_count).set("k", "v")) == ErrorCode::db_out_of_range);
  CHECK(code_of(f.store(255).get("k")) == ErrorCode::db_out_of_range);
  std::vector<StoreOutcome> outcomes(2);
  const std::vector<StoreOp> ops{{.verb = Verb::get, .db = limits::db_count, .key = "k"},
                                 {.verb = Verb::get, .db = limits::db_count - 1, .key = "k"}};
  f.engine->host().apply(ops, outcomes);
  CHECK(outcomes[0].error == ErrorCode::db_out_of_range);
  CHECK(outcomes[1].value == "v");
}

TEST_CASE("limits: namespace names of 1..namespace_name_max bytes", "[engine][limits][claims]") {
  EngineFixture f;
  const std::string longest(limits::namespace_name_max, 'n');
  CHECK(f.engine->claims(longest, {}).has_value());
  CHECK(code_of(f.engine->claims(longest + "n", {})) == ErrorCode::bad_namespace);
  CHECK(code_of(f.engine->claims("", {})) == ErrorCode::bad_namespace);
}

TEST_CASE("limits: a batch of batch_max operations is taken", "[engine][limits]") {
  EngineFixture f;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < limits::batch_max; ++i) keys.push_back(std::to_string(i));
  std::vector<StoreOp> ops;
  for (const std::string& key : keys) ops.push_back({.verb = Verb::set, .key = key, .value = key});
  std::vector<StoreOutcome> outcomes(ops.size());
  f.engine->host().apply(ops, outcomes);
  CHECK(f.engine->size(0) == limits::batch_max);
  CHECK(f.read("65535") == "65535");
}

TEST_CASE("limits: the smallest memory works, and the largest can be asked for",
          "[engine][limits][memory]") {
  EngineFixture small{{.memory_bytes = limits::memory_bytes_min, .shard_count = 1}};
  CHECK(small.put("k", std::string(100'000, 'v')));
  CHECK(small.engine->stats().bytes_limit == limits::memory_bytes_min);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ManualClock clock;
  const auto large = Engine::open({.clock = &clock, .memory_bytes = limits::memory_bytes_max});
  // A machine may not have the address space; nothing else may go wrong.
  if (!large) CHECK(large.error().code == ErrorCode::out_of_address_space);
  if (large) CHECK((*large)->store().set("k", "v").has_value());
#endif
}

TEST_CASE("limits: a batch of one more than batch_max changes nothing", "[engine][limits]") {
  EngineFixture f;
  std::vector<StoreOp> ops(limits::batch_max + 1);
  for (StoreOp& op : ops) op = {.verb = Verb::set, .key = "k", .value = "v"};
  std::vector<StoreOutcome> outcomes(ops.size());
  f.engine->host().apply(ops, outcomes);
  CHECK(outcomes.front().error == ErrorCode::too_many_keys);
  CHECK(outcomes.back().error == ErrorCode::too_many_keys);
  CHECK(f.engine->size(0) == 0);
}

}  // namespace semel::tests
