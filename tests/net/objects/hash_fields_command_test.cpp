// HEXPIRE and its like over the protocol: replies, the order of errors, events, transactions,
// scripts, groups. What they do to fields is in tests/engine/api/hash_fields_test.cpp.
#include "tests/support/catch.hpp"

#include "engine/replica/decision_scope.hpp"
#include "net/node/group_runner.hpp"
#include "semel/engine_host.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests::field_commands {  // names that other tests have as well
namespace {

constexpr const char* wrong_type =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

/// "1 -2 0" of an array of integers; anything else as it is.
std::string numbers(const std::string& reply) {
  std::string_view rest{reply};
  const RespValue value = take_value(rest).value();
  if (value.items.empty()) return reply;
  std::string all;
  for (const RespValue& item : value.items) {
    all += (all.empty() ? "" : " ") + item.text;
  }
  return all;
}

void set_two(Conversation& node) {
  CHECK(node.call({"DEL", "h"}).front() == ':');
  CHECK(node.call({"HSET", "h", "a", "1", "b", "2"}) == ":2\r\n");
}

/// The events of the words of `command`, by a listener.
std::string events_of(Conversation& node, const Words& command) {
  static_cast<void>(node.call(command));
  std::string heard = node.collect(1);
  std::string all;
  std::string_view rest{heard};
  while (const auto value = take_value(rest)) {
    const std::string& channel = value->items.at(2).text;
    all += (all.empty() ? "" : " ") + channel.substr(channel.find("__:") + 3);
  }
  return all;
}

}  // namespace

TEST_CASE("field ttls: one answer for each field, in its order", "[net][objects][hash]") {
  Conversation node;
  set_two(node);
  CHECK(numbers(node.call({"HEXPIRE", "h", "10", "FIELDS", "3", "a", "x", "a"})) == "1 -2 1");
  CHECK(numbers(node.call({"HEXPIRE", "h", "20", "nx", "fields", "2", "a", "b"})) == "0 1");
  CHECK(numbers(node.call({"HPEXPIRE", "h", "15000", "GT", "FIELDS", "2", "a", "b"})) == "1 0");
  CHECK(numbers(node.call({"HPEXPIRE", "h", "14999", "LT", "FIELDS", "1", "a"})) == "1");
  CHECK(numbers(node.call({"HPTTL", "h", "FIELDS", "3", "a", "b", "x"})) == "14999 20000 -2");
  CHECK(numbers(node.call({"HTTL", "h", "FIELDS", "2", "a", "b"})) == "15 20");
  CHECK(numbers(node.call({"HPERSIST", "h", "FIELDS", "3", "a", "a", "x"})) == "1 -1 -2");
  CHECK(numbers(node.call({"HTTL", "h", "FIELDS", "1", "a"})) == "-1");
  CHECK(numbers(node.call({"HEXPIRE", "h", "9", "XX", "FIELDS", "2", "a", "b"})) == "0 1");
  CHECK(numbers(node.call({"HEXPIRE", "none", "9", "FIELDS", "2", "a", "b"})) == "-2 -2");
  CHECK(numbers(node.call({"HTTL", "none", "FIELDS", "2", "a", "b"})) == "-2 -2");
  CHECK(numbers(node.call({"HPERSIST", "none", "FIELDS", "1", "a"})) == "-2");
  CHECK(node.call({"EXISTS", "none"}) == ":0\r\n");
  // An end that has passed removes.
  CHECK(numbers(node.call({"HEXPIRE", "h", "0", "FIELDS", "2", "a", "a"})) == "2 -2");
  CHECK(numbers(node.call({"HPEXPIREAT", "h", "1", "FIELDS", "1", "b"})) == "2");
  CHECK(node.call({"EXISTS", "h"}) == ":0\r\n");
}

TEST_CASE("field ttls: an absolute end is what is told later", "[net][objects][hash]") {
  Conversation node;
  set_two(node);
  const std::int64_t at = node.engine->clock().unix_ms() / 1'000 + 100;
  CHECK(numbers(node.call({"HEXPIREAT", "h", std::to_string(at), "FIELDS", "1", "a"})) == "1");
  CHECK(numbers(node.call({"HEXPIRETIME", "h", "FIELDS", "2", "a", "b"})) ==
        std::to_string(at) + " -1");
  CHECK(numbers(node.call(
            {"HPEXPIREAT", "h", std::to_string(at * 1'000 + 7), "FIELDS", "1", "a"})) == "1");
  CHECK(numbers(node.call({"HPEXPIRETIME", "h", "FIELDS", "1", "a"})) ==
        std::to_string(at * 1'000 + 7));
}

TEST_CASE("field ttls: no command sees a field that has ended", "[net][objects][hash]") {
  Conversation node;
  set_two(node);
  CHECK(numbers(node.call({"HPEXPIRE", "h", "100", "FIELDS", "1", "a"})) == "1");
  CHECK(node.call({"OBJECT", "ENCODING", "h"}) == "$10\r\nlistpackex\r\n");
  node.clock.advance(Millis{100});  // nobody has taken it out
  CHECK(node.call({"HLEN", "h"}) == ":1\r\n");
  CHECK(node.call({"HGETALL", "h"}) == "*2\r\n$1\r\nb\r\n$1\r\n2\r\n");
  CHECK(node.call({"HMGET", "h", "a", "b"}) == "*2\r\n$-1\r\n$1\r\n2\r\n");
  CHECK(node.call({"HEXISTS", "h", "a"}) == ":0\r\n");
  CHECK(node.call({"HSTRLEN", "h", "a"}) == ":0\r\n");
  CHECK(node.call({"HSCAN", "h", "0"}) == "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$1\r\n2\r\n");
  CHECK(node.call({"HRANDFIELD", "h", "-1"}) == "*1\r\n$1\r\nb\r\n");
  CHECK(node.call({"HKEYS", "h"}) == "*1\r\n$1\r\nb\r\n");
  CHECK(node.call({"HDEL", "h", "a"}) == ":0\r\n");
  CHECK(node.call({"HSETNX", "h", "a", "3"}) == ":1\r\n");
  CHECK(node.call({"HTTL", "h", "FIELDS", "1", "a"}) == "*1\r\n:-1\r\n");
  CHECK(node.call({"OBJECT", "ENCODING", "h"}) == "$8\r\nlistpack\r\n");
  // The last field takes the key along, and leaves its ttl alone until then.
  CHECK(numbers(node.call({"HPEXPIRE", "h", "50", "FIELDS", "2", "a", "b"})) == "1 1");
  CHECK(node.call({"TTL", "h"}) == ":-1\r\n");
  CHECK(node.call({"PEXPIRE", "h", "90000"}) == ":1\r\n");
  CHECK(node.call({"PTTL", "h"}) == ":90000\r\n");
  CHECK(node.call({"RENAME", "h", "k"}) == "+OK\r\n");
  CHECK(node.call({"COPY", "k", "l"}) == ":1\r\n");
  CHECK(node.call({"PERSIST", "l"}) == ":1\r\n");
  CHECK(node.call({"PTTL", "l"}) == ":-1\r\n");
  CHECK(numbers(node.call({"HPTTL", "l", "FIELDS", "1", "a"})) == "50");
  node.clock.advance(Millis{50});
  CHECK(node.call({"EXISTS", "k", "l"}) == ":0\r\n");
  CHECK(node.call({"TYPE", "l"}) == "+none\r\n");
  CHECK(node.call({"KEYS", "*"}) == "*0\r\n");
  CHECK(node.call({"HINCRBY", "l", "a", "5"}) == ":5\r\n");
  CHECK(node.call({"TTL", "l"}) == ":-1\r\n");
}

TEST_CASE("field ttls: HGETDEL, HGETEX and HSETEX in both dialects", "[net][objects][hash]") {
  for (const bool is_three : {false, true}) {
    Conversation node;
    if (is_three) static_cast<void>(node.call({"HELLO", "3"}));
    const std::string none = is_three ? "_\r\n" : "$-1\r\n";
    CHECK(node.call({"HSETEX", "h", "EX", "10", "FIELDS", "2", "a", "1", "b", "2"}) == ":1\r\n");
    CHECK(numbers(node.call({"HTTL", "h", "FIELDS", "2", "a", "b"})) == "10 10");
    CHECK(node.call({"HSETEX", "h", "FNX", "FIELDS", "2", "a", "3", "c", "3"}) == ":0\r\n");
    CHECK(node.call({"HSETEX", "h", "FXX", "FIELDS", "2", "a", "3", "c", "3"}) == ":0\r\n");
    CHECK(node.call({"HSETEX", "h", "FXX", "KEEPTTL", "FIELDS", "1", "a", "3"}) == ":1\r\n");
    CHECK(node.call({"HSETEX", "h", "PX", "500", "FNX", "FIELDS", "1", "c", "4"}) == ":1\r\n");
    CHECK(node.call({"HSETEX", "h", "FIELDS", "1", "b", "5"}) == ":1\r\n");
    CHECK(numbers(node.call({"HPTTL", "h", "FIELDS", "3", "a", "b", "c"})) == "10000 -1 500");
    CHECK(node.call({"HGETEX", "h", "PERSIST", "FIELDS", "3", "a", "x", "a"}) ==
          "*3\r\n$1\r\n3\r\n" + none + "$1\r\n3\r\n");
    CHECK(node.call({"HGETEX", "h", "EX", "7", "FIELDS", "1", "b"}) == "*1\r\n$1\r\n5\r\n");
    CHECK(numbers(node.call({"HTTL", "h", "FIELDS", "2", "a", "b"})) == "-1 7");
    CHECK(node.call({"HGETEX", "h", "FIELDS", "1", "b"}) == "*1\r\n$1\r\n5\r\n");
    CHECK(node.call({"HGETEX", "h", "PXAT", "1", "FIELDS", "2", "b", "b"}) ==
          "*2\r\n$1\r\n5\r\n" + none);
    CHECK(node.call({"HGETDEL", "h", "FIELDS", "3", "a", "b", "a"}) ==
          "*3\r\n$1\r\n3\r\n" + none + none);
    CHECK(node.call({"HGETDEL", "h", "FIELDS", "1", "c"}) == "*1\r\n$1\r\n4\r\n");
    CHECK(node.call({"EXISTS", "h"}) == ":0\r\n");
    CHECK(node.call({"HSETEX", "h", "FXX", "FIELDS", "1", "a", "1"}) == ":0\r\n");
    CHECK(node.call({"HSETEX", "h", "EXAT", "1", "FIELDS", "1", "a", "1"}) == ":1\r\n");
    CHECK(node.call({"EXISTS", "h"}) == ":0\r\n");
    CHECK(node.call({"HGETEX", "h", "EX", "5", "FIELDS", "1", "a"}) == "*1\r\n" + none);
  }
}

TEST_CASE("field ttls: errors of words come behind WRONGTYPE and change nothing",
          "[net][objects][hash]") {
  Conversation node;
  set_two(node);
  static_cast<void>(node.call({"SET", "s", "v"}));
  struct Case {
    Words words;
    std::string error;
  };
  const std::string missing =
      "ERR Mandatory argument FIELDS is missing or not at the right position";
  const std::string must_match = "ERR The `numfields` parameter must match the number of arguments";
  const std::string positive = "ERR Number of fields must be a positive integer";
  const std::string only_one =
      "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
  const std::string number = "ERR value is not an integer or out of range";
  const std::vector<Case> cases{
      {{"HEXPIRE", "h", "x", "FIELDS", "1", "a"}, number},
      {{"HEXPIRE", "h", "-1", "FIELDS", "1", "a"}, "ERR invalid expire time, must be >= 0"},
      {{"HEXPIRE", "h", "9223372036854775807", "FIELDS", "1", "a"},
       "ERR invalid expire time in 'hexpire' command"},
      {{"HPEXPIRE", "h", "70368744177664", "FIELDS", "1", "a"},
       "ERR invalid expire time in 'hpexpire' command"},
      {{"HEXPIRE", "h", "1", "NX", "XX", "FIELDS", "1", "a"}, missing},
      {{"HEXPIRE", "h", "1", "1", "a", "FIELDS"}, missing},
      {{"HEXPIRE", "h", "1", "FIELDS", "0", "a"},
       "ERR Parameter `numFields` should be greater than 0"},
      {{"HEXPIRE", "h", "1", "FIELDS", "2", "a"}, must_match},
      {{"HEXPIRE", "h", "1", "FIELDS", "1", "a", "b"}, must_match},
      {{"HEXPIRE", "h", "1", "NX", "FIELDS", "1"},
       "ERR wrong number of arguments for 'hexpire' command"},
      {{"HTTL", "h", "FIELD", "1", "a"}, missing},
      {{"HTTL", "h", "FIELDS", "-1", "a"}, positive},
      {{"HPERSIST", "h", "FIELDS", "9223372036854775808", "a"}, positive},
      {{"HGETDEL", "h", "FIELDS", "2", "a"}, must_match},
      {{"HGETEX", "h", "XFIELDX", "1", "a"}, missing},
      {{"HGETEX", "h", "PXAT", "1", "1"}, missing},
      {{"HGETEX", "h", "PERSIST", "1", "FIELDS", "1", "a"}, missing},
      {{"HGETEX", "h", "EX", "1", "FIELDS"}, "ERR wrong number of arguments for 'hgetex' command"},
      {{"HGETEX", "h", "EX", "bla", "FIELDS", "1", "a"}, number},
      {{"HGETEX", "h", "PX", "-1", "FIELDS", "1", "a"}, "ERR invalid expire time, must be >= 0"},
      {{"HSETEX", "h", "FIELDS", "2", "a", "b"},
       "ERR wrong number of arguments for 'hsetex' command"},
      {{"HSETEX", "h", "FIELDS", "1", "a", "b", "c"},
       "ERR wrong number of arguments for 'hsetex' command"},
      {{"HSETEX", "h", "FIELDS", "x", "a", "b"}, "ERR invalid number of fields"},
      {{"HSETEX", "h", "NX", "FIELDS", "1", "a", "b"}, "ERR unknown argument: NX"},
      {{"HSETEX", "h", "FXX", "FNX", "FIELDS", "1", "a", "b"},
       "ERR Only one of FXX or FNX arguments can be specified"},
      {{"HSETEX", "h", "EX", "1", "KEEPTTL", "FIELDS", "1", "a", "b"}, only_one},
      {{"HSETEX", "h", "PX", "1", "PX", "1", "FIELDS", "1", "a", "b"}, only_one},
      {{"HSETEX", "h", "ex", "FIELDS", "1", "a", "b"}, number},
      {{"HSETEX", "h", "FNX", "KEEPTTL", "EXTRA", "a"}, "ERR unknown argument: EXTRA"}};
  for (const Case& each : cases) {
    CAPTURE(each.words);
    CHECK(node.call(each.words) == "-" + each.error + "\r\n");
    Words other = each.words;
    other[1] = "s";
    CHECK(node.call(other) == wrong_type);
  }
  CHECK(numbers(node.call({"HTTL", "h", "FIELDS", "2", "a", "b"})) == "-1 -1");
  for (const Words& words :
       {Words{"HEXPIRE", "s", "1", "FIELDS", "1", "a"}, Words{"HTTL", "s", "FIELDS", "1", "a"},
        Words{"HPERSIST", "s", "FIELDS", "1", "a"}, Words{"HGETDEL", "s", "FIELDS", "1", "a"},
        Words{"HGETEX", "s", "FIELDS", "1", "a"}, Words{"HSETEX", "s", "FIELDS", "1", "a", "b"}}) {
    CHECK(node.call(words) == wrong_type);
  }
}

TEST_CASE("field ttls: events of each command, and of ends", "[net][objects][hash][events]") {
  Conversation node{2};
  static_cast<void>(node.call({"CONFIG", "SET", "notify-keyspace-events", "AEn"}));
  static_cast<void>(node.call({"PSUBSCRIBE", "__keyevent@0__:*"}, 1));
  CHECK(events_of(node, {"HSETEX", "h", "PX", "50", "FIELDS", "2", "a", "1", "b", "2"}) ==
        "new hset hexpire");
  CHECK(events_of(node, {"HSETEX", "h", "KEEPTTL", "FIELDS", "1", "a", "1"}) == "hset");
  CHECK(events_of(node, {"HPERSIST", "h", "FIELDS", "1", "b"}) == "hpersist");
  CHECK(events_of(node, {"HPERSIST", "h", "FIELDS", "1", "b"}).empty());
  CHECK(events_of(node, {"HEXPIRE", "h", "10", "XX", "FIELDS", "1", "b"}).empty());
  CHECK(events_of(node, {"HGETEX", "h", "FIELDS", "1", "b"}).empty());
  node.pass(Millis{50});
  CHECK(events_of(node, {"PING"}) == "hexpired");
  CHECK(events_of(node, {"HPEXPIRE", "h", "20", "FIELDS", "1", "b"}) == "hexpire");
  CHECK(events_of(node, {"HGETEX", "h", "PX", "30", "FIELDS", "1", "b"}) == "hexpire");
  node.pass(Millis{30});
  CHECK(events_of(node, {"PING"}) == "hexpired del");
  static_cast<void>(node.call({"HSET", "h", "a", "1", "b", "2"}));
  static_cast<void>(node.collect(1));
  CHECK(events_of(node, {"HEXPIRE", "h", "0", "FIELDS", "1", "a"}) == "hdel");
  CHECK(events_of(node, {"HGETDEL", "h", "FIELDS", "1", "b"}) == "hdel del");
  // The key's own end.
  static_cast<void>(node.call({"HSETEX", "h", "PX", "50", "FIELDS", "1", "a", "1"}));
  static_cast<void>(node.call({"PEXPIRE", "h", "10"}));
  static_cast<void>(node.collect(1));
  node.pass(Millis{10});
  CHECK(events_of(node, {"PING"}) == "expired");
}

TEST_CASE("field ttls: EXEC fails if a watched hash has lost a field to time",
          "[net][objects][hash][transaction]") {
  for (const bool is_swept : {false, true}) {
    Conversation node;
    set_two(node);
    static_cast<void>(node.call({"HPEXPIRE", "h", "20", "FIELDS", "1", "a"}));
    CHECK(node.call({"WATCH", "h"}) == "+OK\r\n");
    node.clock.advance(Millis{19});
    static_cast<void>(node.call({"MULTI"}));
    static_cast<void>(node.call({"HGET", "h", "a"}));
    CHECK(node.call({"EXEC"}) == "*1\r\n$1\r\n1\r\n");
    CHECK(node.call({"WATCH", "h"}) == "+OK\r\n");
    is_swept ? node.pass(Millis{1}) : node.clock.advance(Millis{1});
    static_cast<void>(node.call({"MULTI"}));
    static_cast<void>(node.call({"HGET", "h", "a"}));
    CHECK(node.call({"EXEC"}) == "*-1\r\n");
    CHECK(node.call({"WATCH", "h"}) == "+OK\r\n");
    static_cast<void>(node.call({"MULTI"}));
    static_cast<void>(node.call({"HEXPIRE", "h", "5", "FIELDS", "1", "b"}));
    static_cast<void>(node.call({"HGETDEL", "h", "FIELDS", "1", "b"}));
    CHECK(node.call({"EXEC"}) == "*2\r\n*1\r\n:1\r\n*1\r\n$1\r\n2\r\n");
    CHECK(node.call({"EXISTS", "h"}) == ":0\r\n");
  }
}

TEST_CASE("field ttls: a client that tracks a hash learns that a field has ended",
          "[net][objects][hash][tracking]") {
  Conversation node;
  static_cast<void>(node.call({"HELLO", "3"}));
  set_two(node);
  static_cast<void>(node.call({"HPEXPIRE", "h", "20", "FIELDS", "1", "a"}));
  static_cast<void>(node.call({"CLIENT", "TRACKING", "ON"}));
  static_cast<void>(node.call({"HGETALL", "h"}));
  node.pass(Millis{20});
  CHECK(node.collect().find("invalidate") != std::string::npos);
  CHECK(node.call({"HGETALL", "h"}).find("a") == std::string::npos);
}

TEST_CASE("field ttls: scripts use them", "[net][objects][hash][scripts]") {
  Conversation node;
  set_two(node);
  CHECK(node.call({"EVAL",
                   "redis.call('HPEXPIRE', KEYS[1], 30, 'FIELDS', 1, 'a'); "
                   "return redis.call('HPTTL', KEYS[1], 'FIELDS', 2, 'a', 'b')",
                   "1", "h"}) == "*2\r\n:30\r\n:-1\r\n");
  node.clock.advance(Millis{30});
  CHECK(node.call({"EVAL_RO", "return redis.call('HLEN', KEYS[1])", "1", "h"}) == ":1\r\n");
}

TEST_CASE("field ttls: replicas answer alike, whenever each has taken out what ended",
          "[net][objects][hash][group]") {
  const auto replies = [](bool is_swept) {
    ManualClock clock;
    const auto engine = std::move(Engine::open({.clock = &clock, .replicated = true}).value());
    net::Node node{*engine};
    net::GroupRunner runner{node};
    Version next = 1'000;
    std::string all;
    const auto apply = [&](const std::vector<std::string_view>& words) {
      net::GroupRequest request;
      request.requests = {words};
      const engine::DecisionScope scope{*engine,
                                        {.now = clock.now(),
                                         .unix_ms = 1,
                                         .first = next,
                                         .end = next + 1'000,
                                         .secret = 77 * next}};
      next += 1'000;
      const auto result = runner.run(request);
      CHECK(result.failures.empty());
      all += result.replies;
    };
    std::vector<std::string> names;
    for (int i = 0; i < 40; ++i) names.push_back("f" + std::to_string(i));
    std::vector<std::string_view> set{"HSETEX", "h", "PX", "30", "FIELDS", "40"};
    for (const std::string& name : names) {
      set.push_back(name);
      set.push_back(name);
    }
    apply({"HSET", "h", "a", "1", "b", "2"});
    apply(set);
    clock.advance(Millis{30});
    while (is_swept && engine->advance() == 0) {
    }
    apply({"HSET", "h", "f7", "again", "c", "3"});
    apply({"HGETALL", "h"});
    apply({"HEXPIRE", "h", "5", "FIELDS", "2", "a", "f8"});
    apply({"HTTL", "h", "FIELDS", "1", "a"});
    std::string bytes;
    CHECK(engine->host().snapshot([&](const Mutation& put) { bytes.append(put.value); }).ok());
    return all + bytes;
  };
  CHECK(replies(false) == replies(true));
}

}  // namespace semel::tests::field_commands
