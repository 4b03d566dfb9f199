// Sorted sets in conversations: what a redis-server beside cannot show, or only by chance. The rest
// is in differential/profile_zsets.cpp.
#include <map>
#include <set>
#include <string>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

RespValue ask_zset(Conversation& node, const Words& words) {
  const std::string bytes = node.call(words);
  std::string_view rest = bytes;
  return take_value(rest).value_or(RespValue{});
}

std::string zset_line(const RespValue& list) {
  std::string line;
  for (const RespValue& item : list.items) {
    line += line.empty() ? "" : " ";
    line += item.items.empty() ? item.text : "(" + zset_line(item) + ")";
  }
  return line;
}

void fill_zset(Conversation& node, const std::string& key, int count) {
  for (int i = 0; i < count; ++i) {
    REQUIRE(node.call({"ZADD", key, std::to_string(i % 7), "m" + std::to_string(i)}) == ":1\r\n");
  }
}

}  // namespace

TEST_CASE("zsets: begin with their first member and end with their last", "[net][objects][zset]") {
  Conversation node;
  CHECK(node.call({"ZADD", "z", "2", "b", "1", "a", "2", ""}) == ":3\r\n");
  CHECK(node.call({"TYPE", "z"}) == "+zset\r\n");
  CHECK(zset_line(ask_zset(node, {"ZRANGE", "z", "0", "-1", "WITHSCORES"})) == "a 1  2 b 2");
  CHECK(node.call({"ZREM", "z", "a", "b", "c"}) == ":2\r\n");
  CHECK(node.call({"ZPOPMAX", "z", "5"}) == "*2\r\n$0\r\n\r\n$1\r\n2\r\n");
  CHECK(node.call({"EXISTS", "z"}) == ":0\r\n");
}

TEST_CASE("zsets: another kind is refused, and stays", "[net][objects][zset]") {
  Conversation node;
  static_cast<void>(node.call({"SET", "k", "v"}));
  static_cast<void>(node.call({"ZADD", "z", "1", "a"}));
  for (const Words& words : std::vector<Words>{{"ZADD", "k", "1", "a"},
                                               {"ZINCRBY", "k", "1", "a"},
                                               {"ZREM", "k", "a"},
                                               {"ZCARD", "k"},
                                               {"ZRANGE", "k", "0", "-1"},
                                               {"ZRANGESTORE", "z", "k", "0", "-1"},
                                               {"ZPOPMIN", "k"},
                                               {"ZMPOP", "2", "none", "k", "MIN"},
                                               {"ZRANDMEMBER", "k"},
                                               {"ZUNION", "2", "z", "k"},
                                               {"ZUNIONSTORE", "z", "2", "z", "k"},
                                               {"ZINTERCARD", "2", "none", "k"},
                                               {"ZSCAN", "k", "0"}}) {
    INFO(words[0]);
    CHECK(node.call(words).starts_with("-WRONGTYPE "));
  }
  CHECK(node.call({"GET", "k"}) == "$1\r\nv\r\n");
  CHECK(node.call({"ZCARD", "z"}) == ":1\r\n");
}

TEST_CASE("zsets: a claim is not replaced by a result", "[net][objects][zset]") {
  Conversation node;
  REQUIRE(node.call({"SEMEL.CLAIM", "ns", "job"}).find("granted") != std::string::npos);
  static_cast<void>(node.call({"ZADD", "z", "1", "a"}));
  CHECK(node.call({"ZUNIONSTORE", "ns:job", "1", "z"}).starts_with("-WRONGTYPE "));
  CHECK(node.call({"ZRANGESTORE", "ns:job", "z", "0", "-1"}).starts_with("-WRONGTYPE "));
  CHECK(node.call({"ZUNIONSTORE", "ns:job", "1", "none"}).starts_with("-WRONGTYPE "));
}

TEST_CASE("zsets: a set that has ended is none, and a new one has no end", "[net][objects][zset]") {
  Conversation node;
  static_cast<void>(node.call({"ZADD", "z", "1", "a"}));
  REQUIRE(node.call({"PEXPIRE", "z", "50"}) == ":1\r\n");
  CHECK(node.call({"ZADD", "z", "2", "b"}) == ":1\r\n");
  CHECK(node.call({"PTTL", "z"}) == ":50\r\n");
  node.pass(Millis{50});
  CHECK(node.call({"ZCARD", "z"}) == ":0\r\n");
  CHECK(node.call({"ZPOPMIN", "z"}) == "*0\r\n");
  CHECK(node.call({"ZADD", "z", "XX", "2", "b"}) == ":0\r\n");
  CHECK(node.call({"ZADD", "z", "3", "c"}) == ":1\r\n");
  CHECK(node.call({"PTTL", "z"}) == ":-1\r\n");
  // A result replaces a record with an end by one without.
  REQUIRE(node.call({"PEXPIRE", "z", "50"}) == ":1\r\n");
  CHECK(node.call({"ZUNIONSTORE", "z", "1", "z"}) == ":1\r\n");
  CHECK(node.call({"PTTL", "z"}) == ":-1\r\n");
}

TEST_CASE("zsets: a change within WATCH makes the transaction fail", "[net][objects][zset]") {
  Conversation node{2};
  static_cast<void>(node.call({"ZADD", "z", "1", "a"}));
  static_cast<void>(node.call({"WATCH", "z"}));
  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"ZCARD", "z"}));
  CHECK(node.call({"ZADD", "z", "2", "b"}, 1) == ":1\r\n");
  CHECK(node.call({"EXEC"}) == "*-1\r\n");
}

TEST_CASE("zsets: a large set is scanned whole, whatever happens meanwhile",
          "[net][objects][zset]") {
  Conversation node;
  constexpr int count = 600;
  fill_zset(node, "z", count);
  std::map<std::string, int> seen;
  std::string cursor = "0";
  int calls = 0;
  do {
    const RespValue reply = ask_zset(node, {"ZSCAN", "z", cursor, "COUNT", "10"});
    REQUIRE(reply.items.size() == 2);
    cursor = reply.items[0].text;
    for (std::size_t i = 0; i < reply.items[1].items.size(); i += 2) {
      ++seen[reply.items[1].items[i].text];
    }
    // Scores change, others come and go.
    const std::string moved = "m" + std::to_string(calls * 37 % count);
    static_cast<void>(node.call({"ZADD", "z", std::to_string(-calls), moved}));
    static_cast<void>(node.call({"ZADD", "z", "5", "new" + std::to_string(calls)}));
    static_cast<void>(node.call({"ZREM", "z", "new" + std::to_string(calls / 2)}));
    REQUIRE(++calls < 100);
  } while (cursor != "0");
  CHECK(calls > 20);
  for (int i = 0; i < count; ++i) CHECK(seen["m" + std::to_string(i)] == 1);
  // Any cursor is answered, and a pattern is looked at.
  CHECK(ask_zset(node, {"ZSCAN", "z", "18446744073709551615"}).items[0].text == "0");
  const RespValue some = ask_zset(node, {"ZSCAN", "z", "0", "MATCH", "m1?", "COUNT", "100000"});
  CHECK(some.items[0].text == "0");
  CHECK(some.items[1].items.size() == 20);
}

TEST_CASE("zsets: random members are any of them, each as likely", "[net][objects][zset]") {
  Conversation node;
  fill_zset(node, "z", 10);
  std::map<std::string, int> chosen;
  constexpr int rounds = 4'000;
  for (int i = 0; i < rounds; ++i) ++chosen[ask_zset(node, {"ZRANDMEMBER", "z"}).text];
  CHECK(chosen.size() == 10);
  // Six standard deviations of a binomial distribution, sqrt(4000 * 0.1 * 0.9) = 19.
  for (const auto& [member, times] : chosen) CHECK(std::abs(times - rounds / 10) < 114);

  std::map<std::string, int> drawn;
  for (int i = 0; i < rounds; ++i) {
    const RespValue some = ask_zset(node, {"ZRANDMEMBER", "z", "3"});
    std::set<std::string> apart;
    for (const RespValue& each : some.items) {
      apart.insert(each.text);
      ++drawn[each.text];
    }
    REQUIRE(apart.size() == 3);
  }
  // sqrt(4000 * 0.3 * 0.7) = 29.
  for (const auto& [member, times] : drawn) CHECK(std::abs(times - 3 * rounds / 10) < 174);

  CHECK(ask_zset(node, {"ZRANDMEMBER", "z", "-25"}).items.size() == 25);
  CHECK(ask_zset(node, {"ZRANDMEMBER", "z", "25", "WITHSCORES"}).items.size() == 20);
}

TEST_CASE("zsets: what a reply cannot hold is refused before it is computed",
          "[net][objects][zset]") {
  Conversation node;
  static_cast<void>(node.call({"ZADD", "z", "1", "a"}));
  for (const char* count : {"-9223372036854775807", "-1000000000000"}) {
    CHECK(node.call({"ZRANDMEMBER", "z", count}).starts_with("-ERR the reply is larger than "));
  }
  CHECK(node.call({"ZRANDMEMBER", "z", "-4611686018427387903", "WITHSCORES"}).starts_with("-ERR "));
  CHECK(ask_zset(node, {"ZRANDMEMBER", "z", "9223372036854775807"}).items.size() == 1);
}

TEST_CASE("zsets: OBJECT ENCODING and MEMORY USAGE", "[net][objects][zset]") {
  Conversation node;
  const auto encoding = [&](const char* key) {
    return ask_zset(node, {"OBJECT", "ENCODING", key}).text;
  };
  fill_zset(node, "z", 128);
  CHECK(encoding("z") == "listpack");
  static_cast<void>(node.call({"ZADD", "z", "0", "one more"}));
  CHECK(encoding("z") == "skiplist");
  static_cast<void>(node.call({"ZADD", "long", "0", std::string(64, 'm')}));
  CHECK(encoding("long") == "listpack");
  static_cast<void>(node.call({"ZADD", "longer", "0", std::string(65, 'm')}));
  CHECK(encoding("longer") == "skiplist");
  REQUIRE(node.call({"CONFIG", "SET", "zset-max-ziplist-value", "65"}) == "+OK\r\n");
  CHECK(encoding("longer") == "listpack");
  REQUIRE(node.call({"CONFIG", "SET", "zset-max-listpack-entries", "0"}) == "+OK\r\n");
  CHECK(encoding("longer") == "skiplist");
  CHECK(node.call({"MEMORY", "USAGE", "longer"}).starts_with(":"));
  CHECK(node.call({"MEMORY", "USAGE", "longer"}) != node.call({"MEMORY", "USAGE", "z"}));
}

TEST_CASE("zsets: zero has no sign once it is stored", "[net][objects][zset]") {
  Conversation node;
  CHECK(node.call({"ZADD", "z", "-0", "b", "0", "a"}) == ":2\r\n");
  CHECK(zset_line(ask_zset(node, {"ZRANGE", "z", "0", "-1", "WITHSCORES"})) == "a 0 b 0");
  CHECK(node.call({"ZCOUNT", "z", "0", "0"}) == ":2\r\n");
  CHECK(node.call({"ZCOUNT", "z", "-0", "-0"}) == ":2\r\n");
  CHECK(node.call({"ZCOUNT", "z", "(-0", "0"}) == ":0\r\n");
  CHECK(zset_line(ask_zset(node, {"ZUNION", "1", "z", "WEIGHTS", "-1", "WITHSCORES"})) ==
        "a -0 b -0");
}

TEST_CASE("zsets: a result may replace one of its inputs, of another kind too",
          "[net][objects][zset]") {
  Conversation node;
  static_cast<void>(node.call({"SADD", "s", "a", "7", "c"}));
  static_cast<void>(node.call({"ZADD", "z", "5", "7", "6", "x"}));
  CHECK(node.call({"ZUNIONSTORE", "s", "2", "s", "z", "WEIGHTS", "2", "3"}) == ":4\r\n");
  CHECK(node.call({"TYPE", "s"}) == "+zset\r\n");
  CHECK(zset_line(ask_zset(node, {"ZRANGE", "s", "0", "-1", "WITHSCORES"})) == "a 2 c 2 7 17 x 18");
  CHECK(node.call({"ZINTERSTORE", "s", "2", "s", "none"}) == ":0\r\n");
  CHECK(node.call({"EXISTS", "s"}) == ":0\r\n");
}

TEST_CASE("zsets: steps of a transaction and of a script see each other", "[net][objects][zset]") {
  Conversation node;
  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"ZADD", "z", "1", "a", "2", "b"}));
  static_cast<void>(node.call({"ZUNIONSTORE", "y", "2", "z", "z"}));
  static_cast<void>(node.call({"ZMPOP", "2", "none", "y", "MAX"}));
  static_cast<void>(node.call({"ZRANGESTORE", "x", "y", "0", "-1"}));
  CHECK(zset_line(ask_zset(node, {"EXEC"})) == "2 2 (y ((b 4))) 1");
  const char* const script =
      "redis.call('ZADD', KEYS[1], 3, 'c') redis.call('ZINTERSTORE', KEYS[2], 2, KEYS[1], KEYS[1]) "
      "return redis.call('ZSCORE', KEYS[2], 'c')";
  CHECK(node.call({"EVAL", script, "2", "z", "w"}) == "$1\r\n6\r\n");
  CHECK(node.call({"ZCARD", "w"}) == ":3\r\n");
}

}  // namespace semel::tests
