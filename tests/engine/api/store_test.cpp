// The typed face of the store, through a real engine with a clock that stands still.
//
// Words: *store* is database 0 unless said otherwise; *ends at n ms* means that the clock was
// moved to one before and to n; *nothing changed* is checked by reading everything back.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/rules/numbers.hpp"
#include "semel/claims.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/store.hpp"

namespace semel::tests {
namespace {

using namespace std::chrono_literals;

struct Fixture {
  explicit Fixture(Options options = {}) {
    options.clock = &clock;
    auto opened = Engine::open(options);
    REQUIRE(opened.has_value());
    engine = *std::move(opened);
  }
  [[nodiscard]] Store database(std::uint8_t db = 0) { return engine->store(db); }
  /// Value of `key`, or "<none>".
  [[nodiscard]] std::string read(Bytes key, std::uint8_t db = 0) {
    return database(db).get(key).value().value_or("<none>");
  }

  ManualClock clock;
  std::unique_ptr<Engine> engine;
};

template <class T>
ErrorCode code_of(const Result<T>& result) {
  return result.ok() ? ErrorCode::ok : result.error().code;
}

}  // namespace

TEST_CASE("store: set returns what was there and whether it was stored", "[engine][store]") {
  Fixture f;
  Store store = f.database();
  const SetOptions claim{
      .condition = Condition::if_absent, .expiry = Expiry::in(10ms), .get = true};
  SetResult first = *store.set("k", "one", claim);
  CHECK(first.stored);
  CHECK_FALSE(first.previous);
  CHECK(first.version > 0);

  f.clock.advance(9ms);
  SetResult second = *store.set("k", "two", claim);
  CHECK_FALSE(second.stored);
  CHECK(second.previous == "one");
  CHECK(second.version == first.version);
  f.clock.advance(1ms);
  CHECK(f.read("k") == "<none>");
  SetResult third = *store.set("k", "three", claim);
  CHECK(third.stored);
  CHECK_FALSE(third.previous);
  CHECK(third.version > first.version);
}

TEST_CASE("store: one-key calls on strings", "[engine][store]") {
  Fixture f;
  Store store = f.database();
  CHECK(*store.setnx("k", "hello"));
  CHECK_FALSE(*store.setnx("k", "other"));
  CHECK(*store.getset("k", "Hello") == "hello");
  CHECK(*store.append("k", " world") == 11);
  CHECK(*store.strlen("k") == 11);
  CHECK(*store.getrange("k", -5, -1) == "world");
  CHECK(*store.getrange("absent", 0, -1) == "");
  CHECK(*store.setrange("k", 6, "W") == 11);
  CHECK(f.read("k") == "Hello World");
  CHECK(*store.digest("absent") == std::nullopt);
  const std::string digest = store.digest("k")->value();
  CHECK_FALSE(*store.delex("k", Condition::if_digest_not_equal, digest));
  CHECK(*store.delex("k", Condition::if_digest_equal, digest));
  CHECK_FALSE(*store.exists("k"));
  CHECK(*store.type("k") == std::nullopt);
  CHECK(store.set("k", "v").ok());
  CHECK(*store.type("k") == Kind::string);
  CHECK(*store.getdel("k") == "v");
  CHECK(*store.getdel("k") == std::nullopt);
  CHECK_FALSE(*store.del("k"));
}

TEST_CASE("store: counters", "[engine][store][counter]") {
  Fixture f;
  Store store = f.database();
  CHECK(*store.incr_by("n", 5) == 5);
  CHECK(*store.decr_by("n", 7) == -2);
  CHECK(*store.incr_by_float("n", 0.5L) == "-1.5");
  CHECK(code_of(store.incr_by("n", 1)) == ErrorCode::not_an_integer);

  const IncrexOptions limiter{
      .upper = 2, .expiry = Expiry::in(100ms), .expiry_only_without_ttl = true};
  CHECK(store.increx("hits", limiter)->value == 1);
  f.clock.advance(60ms);
  CHECK(store.increx("hits", limiter)->value == 2);
  const auto refused = *store.increx("hits", limiter);
  CHECK((refused.value == 2 && refused.applied == 0));
  CHECK(store.ttl("hits")->remaining == 40ms);  // the window was not extended
  f.clock.advance(40ms);
  CHECK(store.increx("hits", limiter)->value == 1);

  const IncrexFloatOptions half{.by = -0.5L, .lower = 0.0L, .saturate = true};
  CHECK(store.set("f", "0.75").ok());
  const auto down = *store.increx("f", half);
  CHECK((down.value == 0.25L && down.applied == -0.5L));
  const auto floor = *store.increx("f", half);
  CHECK((floor.value == 0 && floor.applied == -0.25L));
}

TEST_CASE("store: ttl calls, both sides of the end", "[engine][store][ttl]") {
  Fixture f;
  Store store = f.database();
  CHECK_FALSE(store.ttl("k")->found);
  CHECK(store.set("k", "v").ok());
  CHECK((store.ttl("k")->found && !store.ttl("k")->has_ttl));
  CHECK(*store.expire("k", Expiry::in(20ms)));
  CHECK(store.ttl("k")->remaining == 20ms);
  CHECK(store.ttl("k")->due == f.clock.now() + 20ms);
  CHECK_FALSE(*store.expire("k", Expiry::in(30ms), {.only_earlier = true}));
  CHECK(*store.persist("k"));
  CHECK_FALSE(*store.persist("k"));
  CHECK(*store.getex("k", Expiry::in(5ms)) == "v");
  f.clock.advance(4ms);
  CHECK(*store.exists("k"));
  f.clock.advance(1ms);
  CHECK_FALSE(*store.exists("k"));
  CHECK(store.set("k", "v").ok());
  CHECK(*store.expire("k", Expiry::at(f.clock.now())));
  CHECK_FALSE(*store.exists("k"));
}

TEST_CASE("store: a wall time is mapped once, later steps of the wall change nothing",
          "[engine][store][ttl]") {
  Fixture f;
  Store store = f.database();
  const std::int64_t unix_now = f.clock.unix_ms();
  CHECK(store.from_unix_ms(unix_now) == f.clock.now());
  CHECK(store.from_unix_ms(unix_now - 1) == f.clock.now() - 1ms);
  CHECK(store.set("k", "v", {.expiry = Expiry::at(store.from_unix_ms(unix_now + 50))}).ok());
  f.clock.step_wall(-1h);
  f.clock.advance(49ms);
  CHECK(*store.exists("k"));
  f.clock.step_wall(2h);
  CHECK(*store.exists("k"));
  f.clock.advance(1ms);
  CHECK_FALSE(*store.exists("k"));

  using Limits = std::numeric_limits<std::int64_t>;
  CHECK(store.from_unix_ms(Limits::max()) < no_end);  // far, but an end
  CHECK(store.from_unix_ms(Limits::min()) < f.clock.now());
}

TEST_CASE("store: errors name the value and the limit", "[engine][store][limits]") {
  Options options;
  options.key_bytes_max = 8;
  options.value_bytes_max = 16;
  Fixture f{options};
  Store store = f.database();
  const std::string nine(9, 'k');
  const std::string seventeen(17, 'v');

  const auto check = [](const auto& result, ErrorCode code, const std::string& detail) {
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == code);
    CHECK(result.error().detail.find(detail) != std::string::npos);
  };
  check(store.set(nine, "v"), ErrorCode::key_too_long, "9, limit 8");
  CHECK(store.set(nine.substr(1), "v").has_value());
  check(store.set("", "v"), ErrorCode::key_empty, "");
  check(store.set("k", seventeen), ErrorCode::value_too_long, "17, limit 16");
  CHECK(store.set("k", seventeen.substr(1)).has_value());
  check(store.append("k", "x"), ErrorCode::value_too_long, "limit 16");
  check(store.set("k", "v", {.expiry = Expiry::in(0ms)}), ErrorCode::invalid_expire, "0 ms");
  check(store.setrange("k", -3, "x"), ErrorCode::offset_out_of_range, "-3");
  check(f.database(16).get("k"), ErrorCode::db_out_of_range, "16, limit 15");
  check(f.database(16).keys("*"), ErrorCode::db_out_of_range, "16");
  check(f.database(16).randomkey(), ErrorCode::db_out_of_range, "16");
  check(store.delex("k", Condition::if_digest_equal, "123"), ErrorCode::bad_digest, "3");
  CHECK(f.read("k") == seventeen.substr(1));
}

TEST_CASE("store: a claim is another kind", "[engine][store][kind]") {
  Fixture f;
  Store store = f.database();
  Claims claims = f.engine->claims("jobs", Policy{}).value();
  REQUIRE(claims.claim({.key = "a"}).answer == ClaimAnswer::granted);
  CHECK(code_of(store.get("jobs:a")) == ErrorCode::wrong_type);
  CHECK(code_of(store.set("jobs:a", "v", {.get = true})) == ErrorCode::wrong_type);
  CHECK_FALSE(*store.setnx("jobs:a", "v"));
  CHECK(*store.type("jobs:a") == Kind::claim);
  const std::array<Bytes, 2> keys{"jobs:a", "absent"};
  const auto values = *store.mget(keys);
  CHECK((!values[0] && !values[1]));
  CHECK(code_of(store.set("jobs:a", "v")) == ErrorCode::wrong_type);
  CHECK(*store.type("jobs:a") == Kind::claim);
}

TEST_CASE("store: del, exists and touch of several keys count", "[engine][store][multi]") {
  Fixture f;
  Store store = f.database();
  for (const Bytes key : {"a", "b", "c"}) CHECK(store.set(key, "v").ok());
  const std::array<Bytes, 4> keys{"a", "b", "a", "x"};
  CHECK(*store.exists(keys) == 3);
  CHECK(*store.touch(keys) == 3);
  CHECK(*store.del(keys) == 2);
  CHECK(*store.exists("c"));
  const std::array<Bytes, 1> one{"c"};
  CHECK(*store.exists(one) == 1);
  CHECK(*store.del(one) == 1);
  CHECK(*store.del(one) == 0);
  CHECK(*store.del(std::span<const Bytes>{}) == 0);
  const std::array<Bytes, 2> bad{"c", ""};
  CHECK(code_of(store.del(bad)) == ErrorCode::key_empty);
}

TEST_CASE("store: mset and mget, the last of a repeated key wins", "[engine][store][multi]") {
  Fixture f;
  Store store = f.database();
  CHECK(store.set("a", "old", {.expiry = Expiry::in(1h)}).ok());
  const std::array<KeyValue, 3> pairs{{{"a", "1"}, {"b", "2"}, {"a", "3"}}};
  CHECK(store.mset(pairs));
  CHECK_FALSE(store.ttl("a")->has_ttl);
  const std::array<Bytes, 4> keys{"a", "x", "b", "a"};
  const auto values = *store.mget(keys);
  REQUIRE(values.size() == 4);
  CHECK(values[0] == "3");
  CHECK_FALSE(values[1]);
  CHECK(values[2] == "2");
  CHECK(values[3] == "3");
  CHECK(store.mget({})->empty());
  CHECK(store.mset({}));
  const std::array<KeyValue, 1> one{{{"z", "9"}}};
  CHECK(store.mset(one));
  const std::array<Bytes, 1> z{"z"};
  CHECK(store.mget(z)->at(0) == "9");
}

TEST_CASE("store: msetnx and msetex store all or nothing", "[engine][store][multi]") {
  Fixture f;
  Store store = f.database();
  CHECK(store.set("b", "old").ok());
  const std::array<KeyValue, 2> pairs{{{"a", "1"}, {"b", "2"}}};
  CHECK_FALSE(*store.msetnx(pairs));
  CHECK(f.read("a") == "<none>");
  CHECK_FALSE(*store.msetex(pairs, Condition::if_present, Expiry::in(1s)));
  CHECK(f.read("b") == "old");
  CHECK(*store.del("b"));
  CHECK(*store.msetnx(pairs));
  CHECK(*store.msetex(pairs, Condition::if_present, Expiry::in(1s)));
  CHECK(store.ttl("a")->remaining == 1s);
  CHECK(*store.msetex(pairs, Condition::always, Expiry::keep()));
  CHECK(store.ttl("b")->remaining == 1s);
  CHECK(code_of(store.msetex(pairs, Condition::if_equal, Expiry::keep())) == ErrorCode::syntax);
  CHECK(code_of(store.msetex(pairs, Condition::always, Expiry::in(0ms))) ==
        ErrorCode::invalid_expire);
  CHECK(*store.msetex(pairs, Condition::always, Expiry::at(f.clock.now())));
  CHECK(f.read("a") == "<none>");
}

TEST_CASE("store: an error in the last pair changes nothing", "[engine][store][multi][limits]") {
  Options options;
  options.value_bytes_max = 4;
  Fixture f{options};
  Store store = f.database();
  CHECK(store.set("a", "old").ok());
  const std::array<KeyValue, 3> long_value{{{"a", "1"}, {"b", "2"}, {"c", "12345"}}};
  CHECK(code_of(store.mset(long_value)) == ErrorCode::value_too_long);
  const std::array<KeyValue, 3> no_key{{{"a", "1"}, {"b", "2"}, {"", "3"}}};
  CHECK(code_of(store.mset(no_key)) == ErrorCode::key_empty);
  CHECK(f.read("a") == "old");
  CHECK(f.read("b") == "<none>");

  const std::vector<Bytes> many(limits::section_keys_max + 1, "a");
  CHECK(code_of(store.exists(many)) == ErrorCode::too_many_keys);
  CHECK(*store.exists(std::span{many}.subspan(1)) ==
        static_cast<std::int64_t>(limits::section_keys_max));
}

TEST_CASE("store: an mset that does not fit into memory changes nothing",
          "[engine][store][multi][memory]") {
  Options options;
  options.memory_bytes = limits::memory_bytes_min;
  options.shard_count = 1;
  Fixture f{options};
  Store store = f.database();
  CHECK(store.set("a", "old").ok());
  const std::string big(512 * 1024, 'x');
  std::vector<std::string> names{"a"};
  for (int i = 0; i < 15; ++i) names.push_back("big" + std::to_string(i));
  std::vector<KeyValue> pairs;
  for (const std::string& name : names) pairs.push_back({name, big});
  CHECK(code_of(store.mset(pairs)) == ErrorCode::memory_full);
  CHECK(f.read("a") == "old");
  CHECK(f.engine->size(0) == 1);
  CHECK(store.mset(std::span{pairs}.first(2)).has_value());
}

TEST_CASE("store: rename carries value and ttl", "[engine][store][multi]") {
  Fixture f;
  Store store = f.database();
  CHECK(code_of(store.rename("a", "b")) == ErrorCode::no_such_key);
  CHECK(code_of(store.rename("a", "a")) == ErrorCode::no_such_key);
  CHECK(code_of(store.renamenx("a", "b")) == ErrorCode::no_such_key);
  CHECK(store.set("a", "v", {.expiry = Expiry::in(30ms)}).ok());
  CHECK(store.set("b", "old").ok());
  CHECK_FALSE(*store.renamenx("a", "b"));
  CHECK_FALSE(*store.renamenx("a", "a"));
  CHECK(store.rename("a", "a"));
  CHECK(store.rename("a", "b"));
  CHECK(f.read("a") == "<none>");
  CHECK(f.read("b") == "v");
  CHECK(store.ttl("b")->remaining == 30ms);
  CHECK(*store.renamenx("b", "c"));
  f.clock.advance(29ms);
  CHECK(f.read("c") == "v");
  f.clock.advance(1ms);
  CHECK(f.read("c") == "<none>");
  CHECK(code_of(store.rename("a", "")) == ErrorCode::key_empty);
}

TEST_CASE("store: copy and move, between databases too", "[engine][store][multi]") {
  Fixture f;
  Store store = f.database();
  CHECK(store.set("a", "v", {.expiry = Expiry::in(1s)}).ok());
  CHECK(code_of(store.copy("a", "a", std::nullopt, true)) == ErrorCode::same_key);
  CHECK(code_of(store.move("a", 0)) == ErrorCode::same_key);
  CHECK(code_of(store.copy("a", "b", 16, true)) == ErrorCode::db_out_of_range);
  CHECK(code_of(store.move("a", 16)) == ErrorCode::db_out_of_range);
  CHECK_FALSE(*store.copy("x", "b", std::nullopt, false));
  CHECK_FALSE(*store.move("x", 1));

  CHECK(*store.copy("a", "b", std::nullopt, false));
  CHECK(store.ttl("b")->remaining == 1s);
  CHECK(store.set("b", "other").ok());
  CHECK_FALSE(*store.copy("a", "b", std::nullopt, false));
  CHECK(*store.copy("a", "b", std::nullopt, true));
  CHECK(f.read("b") == "v");
  CHECK(*store.copy("a", "a", 3, false));
  CHECK(f.read("a", 3) == "v");

  CHECK_FALSE(*store.move("a", 3));
  CHECK(*store.move("a", 4));
  CHECK(f.read("a") == "<none>");
  CHECK(f.read("a", 4) == "v");
  CHECK(f.database(4).ttl("a")->remaining == 1s);
}

TEST_CASE("store: rename carries no claim", "[engine][store][multi][kind]") {
  Fixture f;
  Store store = f.database();
  Claims claims = f.engine->claims("jobs", Policy{}).value();
  const ClaimOutcome granted = claims.claim({.key = "a"});
  REQUIRE(claims.complete({.key = "a", .epoch = granted.epoch, .payload = "answer"}).answer ==
          OwnerAnswer::ok);
  const auto ends = store.ttl("jobs:a")->due;
  CHECK(code_of(store.rename("jobs:a", "jobs:b")) == ErrorCode::wrong_type);
  CHECK(claims.get("b")->state == ClaimState::absent);
  CHECK(claims.get("a")->state == ClaimState::done);
  CHECK(claims.get("a")->result == "answer");
  CHECK(store.ttl("jobs:a")->due == ends);
}

TEST_CASE("store: keys and randomkey see the live keys of one database", "[engine][store][scan]") {
  Fixture f;
  Store store = f.database();
  CHECK(*store.randomkey() == std::nullopt);
  CHECK(store.keys("*")->empty());
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back("user:" + std::to_string(i));
  for (const std::string& name : names) CHECK(store.set(name, "v").ok());
  CHECK(store.set("short", "v", {.expiry = Expiry::in(1ms)}).ok());
  CHECK(f.database(1).set("elsewhere", "v").ok());
  f.clock.advance(1ms);

  std::sort(names.begin(), names.end());
  CHECK(*store.keys("*") == names);
  CHECK(*store.keys("user:[12]?") == [] {
    std::vector<std::string> expected;
    for (int i = 10; i < 30; ++i) expected.push_back("user:" + std::to_string(i));
    return expected;
  }());
  CHECK(store.keys("elsewhere")->empty());
  CHECK(*store.keys("user\\:7") == std::vector<std::string>{"user:7"});
  const auto random = *store.randomkey();
  REQUIRE(random);
  CHECK(std::binary_search(names.begin(), names.end(), *random));
}

TEST_CASE("glob_match: the forms of Redis", "[engine][store][glob]") {
  struct Row {
    Bytes pattern, text;
    bool matches;
  };
  const Row rows[] = {
      {"", "", true},           {"", "a", false},
      {"a", "", false},         {"*", "abc", true},
      {"*", "", false},         {"a*", "a", true},
      {"a**", "a", true},       {"*c", "abc", true},
      {"*b", "abc", false},     {"a*c*e", "abcde", true},
      {"a*c*e", "abcd", false}, {"*ab*ab", "abcabxab", true},
      {"?", "", false},         {"?", "a", true},
      {"a?c", "abc", true},     {"[abc]", "b", true},
      {"[abc]", "d", false},    {"[a-c]", "b", true},
      {"[c-a]", "b", true},     {"[^a]", "b", true},
      {"[^a]", "a", false},     {"[^]", "x", true},
      {"[]", "x", false},       {"[", "x", false},
      {"[ab", "b", true},       {"[ab", "ab", false},
      {"[\\]]", "]", true},     {"[a\\-c]", "-", true},
      {"[a\\-c]", "b", false},  {"\\*", "*", true},
      {"\\*", "a", false},      {"\\", "\\", true},
      {"a\\", "a\\", true},     {"[\xe0-\xff]", "\xf0", true},
  };
  for (const Row& row : rows) {
    INFO(row.pattern << " on " << row.text);
    CHECK(glob_match(row.pattern, row.text) == row.matches);
  }
  CHECK(glob_match(Bytes{"a?\0*", 4}, Bytes{"a\0\0x", 4}));
}

TEST_CASE("glob_match: many stars cost pattern times text, not more", "[engine][store][glob]") {
  std::string pattern;
  for (int i = 0; i < 64; ++i) pattern += "*a";
  const std::string text(100'000, 'a');
  CHECK_FALSE(glob_match(pattern + "b", text));  // an exponential matcher would never end
  CHECK(glob_match(pattern, text));
}

TEST_CASE("numbers: integers as Redis reads them", "[engine][store][numbers]") {
  const std::pair<Bytes, std::int64_t> good[] = {
      {"0", 0},
      {"7", 7},
      {"-1", -1},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()}};
  for (const auto& [text, expected] : good) {
    std::int64_t value = 99;
    CHECK(engine::parse_integer(text, value));
    CHECK(value == expected);
    std::string printed;
    engine::format_integer(value, printed);
    CHECK(printed == text);
  }
  for (const Bytes text :
       {"", "-", "-0", "00", "01", "+1", " 1", "1 ", "1a", "0x1", "9223372036854775808",
        "-9223372036854775809", "100000000000000000000000"}) {
    std::int64_t value = 99;
    INFO(text);
    CHECK_FALSE(engine::parse_integer(text, value));
    CHECK(value == 99);
  }
}

TEST_CASE("numbers: floats as Redis reads and prints them", "[engine][store][numbers]") {
  const auto again = [](Bytes text) {
    long double value = 0;
    if (!engine::parse_float(text, value)) return std::string{"<no>"};
    std::string printed;
    engine::append_float(value, printed);
    return printed;
  };
  CHECK(again("3.0") == "3");
  CHECK(again("-0.5") == "-0.5");
  CHECK(again("-0.0") == "0");
  CHECK(again("1e3") == "1000");
  CHECK(again("0x10") == "16");
  CHECK(again("0.1") == "0.1");
  CHECK(again("1e-18") == "0");
  CHECK(again("inf") == "inf");
  CHECK(again("-INFINITY") == "-inf");
  CHECK(again("1e4932").size() == 4933);
  for (const Bytes text : {"", " 1", "1 ", "\n1", "nan", "1e", "1,5", "abc", "1e5000", "1e-5000"}) {
    INFO(text);
    CHECK(again(text) == "<no>");
  }
  CHECK(again(Bytes{"1\0", 2}) == "<no>");
  const std::string longest = "0." + std::string(engine::float_text_bytes_max - 3, '0');
  CHECK(again(longest) == "0");
  CHECK(again(longest + "0") == "<no>");
}

}  // namespace semel::tests
