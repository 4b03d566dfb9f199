// Lists at their ends and by place, and between lists. What redis-server answers is the measure:
// differential/profile_lists.cpp compares them at random; here are the rules, one by one.
#include "tests/support/catch.hpp"

#include "engine/object_api/object_calls.hpp"
#include "semel/engine_host.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

std::string bulks(const std::vector<std::string>& elements) {
  std::string reply = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& each : elements) {
    reply += "$" + std::to_string(each.size()) + "\r\n" + each + "\r\n";
  }
  return reply;
}

struct Lists : Conversation {
  using Conversation::Conversation;
  /// The elements of the list at `key`, and none if there is no key.
  std::string all(const std::string& key) { return call({"LRANGE", key, "0", "-1"}); }
  void make(const std::string& key, const std::vector<std::string>& elements) {
    static_cast<void>(call({"DEL", key}));
    Words words{"RPUSH", key};
    words.insert(words.end(), elements.begin(), elements.end());
    REQUIRE(call(words) == ":" + std::to_string(elements.size()) + "\r\n");
  }
};

constexpr const char* wrong_type =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

}  // namespace

TEST_CASE("lists: a snapshot with an object that no engine restores says so, and has the others",
          "[net][objects][lists]") {
  Conversation node;
  const std::size_t bytes_max = engine::value_bytes_max(*node.engine);
  const std::string element(bytes_max / 16, 'e');
  REQUIRE(node.call({"SET", "k", "v"}) == "+OK\r\n");
  for (int i = 0; i < 15; ++i) static_cast<void>(node.call({"RPUSH", "list", element}));
  const auto shown = [&] {
    std::size_t count = 0;
    const Status status = node.engine->host().snapshot(
        [&](const Mutation& put) { count += put.type == Mutation::Type::put ? 1 : 0; });
    CHECK(count == 2);
    return status;
  };
  CHECK(shown());
  REQUIRE(node.call({"RPUSH", "list", element, element}) == ":17\r\n");
  const Status refused = shown();
  CHECK(refused.error().code == ErrorCode::value_too_long);
  CHECK(refused.error().detail.starts_with("an object of "));
  REQUIRE(node.call({"LPOP", "list", "10"}).size() > element.size());
  CHECK(shown());
}

TEST_CASE("lists: pushes come one by one, and X needs a list", "[net][objects][lists]") {
  Lists node;
  CHECK(node.call({"LPUSHX", "l", "a"}) == ":0\r\n");
  CHECK(node.call({"EXISTS", "l"}) == ":0\r\n");
  CHECK(node.call({"LPUSH", "l", "a", "b", "c"}) == ":3\r\n");
  CHECK(node.call({"RPUSH", "l", "d", ""}) == ":5\r\n");
  CHECK(node.call({"RPUSHX", "l", "e"}) == ":6\r\n");
  CHECK(node.all("l") == bulks({"c", "b", "a", "d", "", "e"}));
  CHECK(node.call({"TYPE", "l"}) == "+list\r\n");
  CHECK(node.call({"OBJECT", "ENCODING", "l"}) == "$9\r\nquicklist\r\n");
  CHECK(node.call({"LLEN", "l"}) == ":6\r\n");
}

TEST_CASE("lists: pops take from an end, and the last one takes the key", "[net][objects][lists]") {
  Lists node;
  node.make("l", {"a", "b", "c", "d"});
  CHECK(node.call({"LPOP", "l"}) == "$1\r\na\r\n");
  CHECK(node.call({"RPOP", "l", "2"}) == bulks({"d", "c"}));
  CHECK(node.call({"RPOP", "l", "0"}) == "*0\r\n");
  CHECK(node.call({"LPOP", "l", "9223372036854775807"}) == bulks({"b"}));
  CHECK(node.call({"EXISTS", "l"}) == ":0\r\n");
  CHECK(node.call({"LPOP", "l"}) == "$-1\r\n");
  CHECK(node.call({"LPOP", "l", "0"}) == "*-1\r\n");
  CHECK(node.call({"LPOP", "l", "1", "1"}) ==
        "-ERR wrong number of arguments for 'lpop' command\r\n");
  CHECK(node.call({"LPOP", "l", "-1"}) == "-ERR value is out of range, must be positive\r\n");
}

TEST_CASE("lists: places count from both ends, up to the edges of numbers",
          "[net][objects][lists]") {
  Lists node;
  node.make("l", {"a", "b", "c"});
  const std::string most = "9223372036854775807";
  const std::string least = "-9223372036854775808";
  CHECK(node.call({"LRANGE", "l", least, most}) == bulks({"a", "b", "c"}));
  CHECK(node.call({"LRANGE", "l", "-2", "-1"}) == bulks({"b", "c"}));
  CHECK(node.call({"LRANGE", "l", most, least}) == "*0\r\n");
  CHECK(node.call({"LRANGE", "l", "0", "-4"}) == "*0\r\n");
  CHECK(node.call({"LRANGE", "l", "3", "3"}) == "*0\r\n");
  CHECK(node.call({"LINDEX", "l", "-3"}) == "$1\r\na\r\n");
  CHECK(node.call({"LINDEX", "l", "-4"}) == "$-1\r\n");
  CHECK(node.call({"LINDEX", "l", least}) == "$-1\r\n");
  CHECK(node.call({"LINDEX", "l", most}) == "$-1\r\n");
  CHECK(node.call({"LSET", "l", "-1", "z"}) == "+OK\r\n");
  CHECK(node.call({"LSET", "l", "3", "z"}) == "-ERR index out of range\r\n");
  CHECK(node.call({"LTRIM", "l", "1", least}) == "+OK\r\n");
  CHECK(node.call({"EXISTS", "l"}) == ":0\r\n");
  CHECK(node.call({"LSET", "l", "x", "z"}) == "-ERR no such key\r\n");
}

TEST_CASE("lists: LREM and LINSERT go from the end that they are given", "[net][objects][lists]") {
  Lists node;
  node.make("l", {"x", "x", "a", "x", "b", "x"});
  CHECK(node.call({"LREM", "l", "-2", "x"}) == ":2\r\n");
  CHECK(node.all("l") == bulks({"x", "x", "a", "b"}));
  CHECK(node.call({"LREM", "l", "1", "x"}) == ":1\r\n");
  CHECK(node.call({"LINSERT", "l", "BEFORE", "a", "1"}) == ":4\r\n");
  CHECK(node.call({"LINSERT", "l", "after", "a", "2"}) == ":5\r\n");
  CHECK(node.call({"LINSERT", "l", "after", "none", "2"}) == ":-1\r\n");
  CHECK(node.all("l") == bulks({"x", "1", "a", "2", "b"}));
  CHECK(node.call({"LREM", "l", "-9223372036854775808", "a"}) == ":1\r\n");
  CHECK(node.call({"LREM", "l", "0", "none"}) == ":0\r\n");
}

TEST_CASE("lists: LPOS skips, counts and stops", "[net][objects][lists]") {
  Lists node;
  node.make("l", {"a", "b", "c", "1", "2", "3", "c", "c"});
  CHECK(node.call({"LPOS", "l", "c"}) == ":2\r\n");
  CHECK(node.call({"LPOS", "l", "c", "RANK", "2"}) == ":6\r\n");
  CHECK(node.call({"LPOS", "l", "c", "RANK", "-1", "COUNT", "0"}) == "*3\r\n:7\r\n:6\r\n:2\r\n");
  CHECK(node.call({"LPOS", "l", "c", "COUNT", "2", "MAXLEN", "7"}) == "*2\r\n:2\r\n:6\r\n");
  CHECK(node.call({"LPOS", "l", "c", "MAXLEN", "2"}) == "$-1\r\n");
  CHECK(node.call({"LPOS", "l", "c", "RANK", "9223372036854775807"}) == "$-1\r\n");
  CHECK(node.call({"LPOS", "l", "c", "RANK", "-9223372036854775808"}) == ":7\r\n");
  CHECK(node.call({"LPOS", "none", "c", "COUNT", "1"}) == "*0\r\n");
}

TEST_CASE("lists: a move is one step, within a list too", "[net][objects][lists]") {
  Lists node;
  node.make("l", {"a", "b"});
  CHECK(node.call({"LMOVE", "l", "l", "LEFT", "RIGHT"}) == "$1\r\na\r\n");
  CHECK(node.all("l") == bulks({"b", "a"}));
  CHECK(node.call({"RPOPLPUSH", "l", "m"}) == "$1\r\na\r\n");
  CHECK(node.call({"LMOVE", "l", "m", "RIGHT", "LEFT"}) == "$1\r\nb\r\n");
  CHECK(node.call({"EXISTS", "l"}) == ":0\r\n");
  CHECK(node.all("m") == bulks({"b", "a"}));
  CHECK(node.call({"LMOVE", "l", "m", "LEFT", "LEFT"}) == "$-1\r\n");
  static_cast<void>(node.call({"SET", "s", "v"}));
  CHECK(node.call({"LMOVE", "m", "s", "LEFT", "LEFT"}) == wrong_type);
  CHECK(node.call({"LMOVE", "s", "m", "LEFT", "LEFT"}) == wrong_type);
  CHECK(node.call({"LMOVE", "none", "s", "LEFT", "LEFT"}) == "$-1\r\n");
  CHECK(node.all("m") == bulks({"b", "a"}));
}

TEST_CASE("lists: LMPOP takes from the first list that has something", "[net][objects][lists]") {
  Lists node;
  node.make("b", {"1", "2", "3"});
  CHECK(node.call({"LMPOP", "2", "a", "b", "RIGHT", "COUNT", "2"}) ==
        "*2\r\n$1\r\nb\r\n" + bulks({"3", "2"}));
  static_cast<void>(node.call({"SET", "a", "v"}));
  CHECK(node.call({"LMPOP", "2", "a", "b", "LEFT"}) == wrong_type);
  CHECK(node.call({"LMPOP", "2", "b", "a", "LEFT"}) == "*2\r\n$1\r\nb\r\n" + bulks({"1"}));
  CHECK(node.call({"LMPOP", "1", "b", "LEFT"}) == "*-1\r\n");
  CHECK(node.call({"LMPOP", "9223372036854775807", "b", "LEFT"}) == "-ERR syntax error\r\n");
}

TEST_CASE("lists: another kind is refused, and stays", "[net][objects][lists]") {
  Lists node;
  static_cast<void>(node.call({"SET", "k", "v"}));
  const std::vector<Words> requests{{"LPUSH", "k", "a"},
                                    {"RPUSHX", "k", "a"},
                                    {"LPOP", "k"},
                                    {"RPOP", "k", "0"},
                                    {"LLEN", "k"},
                                    {"LRANGE", "k", "0", "1"},
                                    {"LINDEX", "k", "x"},
                                    {"LSET", "k", "x", "a"},
                                    {"LINSERT", "k", "before", "a", "b"},
                                    {"LREM", "k", "1", "a"},
                                    {"LTRIM", "k", "0", "1"},
                                    {"LPOS", "k", "a"},
                                    {"RPOPLPUSH", "k", "l"},
                                    {"BLPOP", "k", "0"},
                                    {"BRPOP", "none", "k", "0"},
                                    {"BLMPOP", "0", "1", "k", "LEFT"},
                                    {"BRPOPLPUSH", "k", "l", "0"},
                                    {"BZPOPMIN", "k", "0"}};
  for (const Words& words : requests) {
    INFO(words[0]);
    CHECK(node.call(words) == wrong_type);
  }
  CHECK(node.call({"GET", "k"}) == "$1\r\nv\r\n");
}

TEST_CASE("lists: a ttl ends a list, and changes keep it", "[net][objects][lists]") {
  Lists node;
  node.make("l", {"a"});
  static_cast<void>(node.call({"PEXPIRE", "l", "10"}));
  CHECK(node.call({"RPUSH", "l", "b"}) == ":2\r\n");
  node.pass(Millis{9});
  CHECK(node.call({"LLEN", "l"}) == ":2\r\n");
  node.pass(Millis{1});
  CHECK(node.call({"LPOP", "l"}) == "$-1\r\n");
  CHECK(node.call({"LPUSHX", "l", "c"}) == ":0\r\n");
}

TEST_CASE("lists: a transaction and a script see their own changes", "[net][objects][lists]") {
  Lists node;
  static_cast<void>(node.call({"MULTI"}));
  for (const Words& words : std::vector<Words>{{"RPUSH", "l", "a", "b"},
                                               {"LMOVE", "l", "m", "LEFT", "LEFT"},
                                               {"BLPOP", "none", "0"},
                                               {"BLMOVE", "none", "l", "LEFT", "LEFT", "0"},
                                               {"LMPOP", "2", "none", "l", "LEFT"},
                                               {"BLPOP", "none", "m", "0"}}) {
    REQUIRE(node.call(words) == "+QUEUED\r\n");
  }
  CHECK(node.call({"EXEC"}) == "*6\r\n:2\r\n$1\r\na\r\n*-1\r\n$-1\r\n*2\r\n$1\r\nl\r\n" +
                                   bulks({"b"}) + bulks({"m", "a"}));
  CHECK(node.call({"EVAL",
                   "redis.call('rpush', KEYS[1], 'x', 'y')"
                   "return redis.call('blmpop', 0, 2, 'none', KEYS[1], 'right')",
                   "1", "l"}) == "*2\r\n$1\r\nl\r\n" + bulks({"y"}));
  CHECK(node.call({"EVAL", "return redis.call('blpop', 'l', 0)", "0"})
            .starts_with("-ERR This Redis command is not allowed from script"));
}

TEST_CASE("lists: events have redis-server's names and order", "[net][objects][lists][events]") {
  Lists node{2};
  static_cast<void>(node.call({"CONFIG", "SET", "notify-keyspace-events", "EAn"}));
  static_cast<void>(node.call({"PSUBSCRIBE", "__keyevent@0__:*"}, 1));
  const auto heard = [&] {
    std::string names;
    std::string bytes = node.collect(1);
    for (std::size_t at = bytes.find("@0__:", bytes.find("pmessage")); at != std::string::npos;
         at = bytes.find("__keyevent@0__:", at + 1)) {
      const std::size_t from = bytes.find("@0__:", at) + 5;
      const std::string name = bytes.substr(from, bytes.find("\r\n", from) - from);
      if (name != "*") names += name + " ";
    }
    return names;
  };
  const auto after = [&](const Words& words) {
    static_cast<void>(node.call(words));
    return heard();
  };
  CHECK(after({"RPUSH", "l", "a", "b"}) == "new rpush ");
  CHECK(after({"LMOVE", "l", "m", "LEFT", "RIGHT"}) == "new rpush lpop ");
  CHECK(after({"LMOVE", "l", "m", "LEFT", "LEFT"}) == "lpush lpop del ");
  CHECK(after({"LTRIM", "m", "0", "-1"}) == "ltrim ");
  CHECK(after({"LINSERT", "m", "before", "a", "x"}) == "linsert ");
  CHECK(after({"LSET", "m", "0", "x"}) == "lset ");
  CHECK(after({"LREM", "m", "0", "x"}) == "lrem ");
  CHECK(after({"LREM", "m", "0", "none"}).empty());
  CHECK(after({"LMPOP", "1", "m", "RIGHT", "COUNT", "9"}) == "rpop del ");
  CHECK(after({"LPUSHX", "m", "x"}).empty());
}

}  // namespace semel::tests
