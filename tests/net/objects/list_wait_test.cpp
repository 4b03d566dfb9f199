// Clients that wait for an element: who is served, by what, and when not.
#include "tests/support/catch.hpp"

#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/object_calls.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

std::string pair(const std::string& one, const std::string& other) {
  const auto bulk = [](const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  };
  return "*2\r\n" + bulk(one) + bulk(other);
}
constexpr const char* nothing = "*-1\r\n";

}  // namespace

TEST_CASE("waits: clients are served in the order in which they blocked",
          "[net][objects][lists][waits]") {
  Conversation node{5};
  for (std::size_t client = 1; client < 5; ++client) {
    CHECK(node.call({"BLPOP", "l", "0"}, client).empty());
  }
  CHECK(node.call({"INFO", "clients"}).find("blocked_clients:4\r\n") != std::string::npos);
  CHECK(node.call({"RPUSH", "l", "a", "b"}) == ":2\r\n");
  CHECK(node.collect(1) == pair("l", "a"));
  CHECK(node.collect(2) == pair("l", "b"));
  CHECK(node.collect(3).empty());
  CHECK(node.call({"LPUSH", "l", "c", "d", "e"}) == ":3\r\n");
  CHECK(node.collect(3) == pair("l", "e"));
  CHECK(node.collect(4) == pair("l", "d"));
  CHECK(node.call({"LRANGE", "l", "0", "-1"}) == "*1\r\n$1\r\nc\r\n");
  CHECK(node.call({"INFO", "clients"}).find("blocked_clients:0\r\n") != std::string::npos);
}

TEST_CASE("waits: of several keys the one that became ready first serves",
          "[net][objects][lists][waits]") {
  Conversation node{2};
  CHECK(node.call({"BRPOP", "a", "b", "a", "0"}, 1).empty());
  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"RPUSH", "b", "1"}));
  static_cast<void>(node.call({"RPUSH", "a", "2"}));
  CHECK(node.call({"EXEC"}) == "*2\r\n:1\r\n:1\r\n");
  CHECK(node.collect(1) == pair("b", "1"));
  CHECK(node.call({"BRPOP", "b", "a", "0"}, 1) == pair("a", "2"));
}

TEST_CASE("waits: a transaction and a script are finished before they serve",
          "[net][objects][lists][waits]") {
  Conversation node{2};
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"RPUSH", "l", "1"}));
  static_cast<void>(node.call({"LPOP", "l"}));
  static_cast<void>(node.call({"RPUSH", "l", "2", "3"}));
  static_cast<void>(node.call({"EXEC"}));
  CHECK(node.collect(1) == pair("l", "2"));
  static_cast<void>(node.call({"DEL", "l"}));
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  CHECK(node.call({"EVAL", "redis.call('rpush', 'l', '1') redis.call('del', 'l')", "1", "l"}) ==
        "$-1\r\n");
  CHECK(node.collect(1).empty());
  CHECK(node.call({"EVAL", "redis.call('rpush', 'l', '4') redis.call('lpush', 'l', '5')", "1",
                   "l"}) == "$-1\r\n");
  CHECK(node.collect(1) == pair("l", "5"));
}

TEST_CASE("waits: a served move serves those that wait for its target, however many",
          "[net][objects][lists][waits]") {
  constexpr std::size_t chain = 2'000;
  Conversation node{chain + 2};
  for (std::size_t i = 1; i <= chain; ++i) {
    const std::string from = "k" + std::to_string(i);
    const std::string to = "k" + std::to_string(i + 1);
    REQUIRE(node.call({"BLMOVE", from, to, "LEFT", "RIGHT", "0"}, i).empty());
  }
  REQUIRE(node.call({"BLPOP", "k" + std::to_string(chain + 1), "0"}, chain + 1).empty());
  CHECK(node.call({"RPUSH", "k1", "x"}) == ":1\r\n");
  for (std::size_t i = 1; i <= chain; ++i) REQUIRE(node.collect(i) == "$1\r\nx\r\n");
  CHECK(node.collect(chain + 1) == pair("k" + std::to_string(chain + 1), "x"));
  CHECK(node.call({"DBSIZE"}) == ":0\r\n");
}

TEST_CASE("waits: another kind neither serves nor ends a wait, and holds back no other kind",
          "[net][objects][lists][waits]") {
  Conversation node{3};
  CHECK(node.call({"BLPOP", "k", "0"}, 1).empty());
  CHECK(node.call({"BZPOPMIN", "k", "0"}, 2).empty());
  CHECK(node.call({"SET", "k", "v"}) == "+OK\r\n");
  CHECK(node.collect(1).empty());
  CHECK(node.call({"DEL", "k"}) == ":1\r\n");
  const auto added =
      engine::change_object(*node.engine, {0, "k"}, Kind::sorted_set, [&](engine::ObjectEdit& set) {
        for (const double score : {1.5, 0.1}) {
          const auto bytes = engine::encode_score(score);
          set.put(std::string{bytes.data(), bytes.size()} + "m" + std::to_string(int(score)));
        }
        return ErrorCode::ok;
      });
  REQUIRE(added.ok());
  CHECK(node.collect(2) == "*3\r\n$1\r\nk\r\n$2\r\nm0\r\n$19\r\n0.10000000000000001\r\n");
  CHECK(node.collect(1).empty());
  // Behind the wait of another kind, which does not hold it back.
  CHECK(node.call({"BZPOPMAX", "k", "0"}, 2).empty());
  CHECK(node.collect(2) == "*3\r\n$1\r\nk\r\n$2\r\nm1\r\n$3\r\n1.5\r\n");
  CHECK(node.call({"RPUSH", "k", "x"}) == ":1\r\n");
  CHECK(node.collect(1) == pair("k", "x"));
}

TEST_CASE("waits: a move to another kind gets the error, and leaves the element",
          "[net][objects][lists][waits]") {
  Conversation node{3};
  CHECK(node.call({"BLMOVE", "l", "s", "LEFT", "LEFT", "0"}, 1).empty());
  CHECK(node.call({"BLPOP", "l", "0"}, 2).empty());
  static_cast<void>(node.call({"SET", "s", "v"}));
  CHECK(node.call({"RPUSH", "l", "x"}) == ":1\r\n");
  CHECK(node.collect(1).starts_with("-WRONGTYPE "));
  CHECK(node.collect(2) == pair("l", "x"));
}

TEST_CASE("waits: the timeout is in seconds, and ends no earlier", "[net][objects][lists][waits]") {
  Conversation node{4};
  CHECK(node.call({"BLPOP", "l", "0.0101"}, 1).empty());  // 11 ms
  CHECK(node.call({"BLMOVE", "l", "m", "LEFT", "LEFT", "0.02"}, 2).empty());
  CHECK(node.call({"BLPOP", "l", "-0.0001"}, 3).empty());  // as redis-server: none
  node.pass(Millis{10});
  CHECK(node.collect(1).empty());
  node.pass(Millis{1});
  CHECK(node.collect(1) == nothing);
  CHECK(node.collect(2).empty());
  node.pass(Millis{9});
  CHECK(node.collect(2) == nothing);
  node.pass(Millis{std::int64_t{1} << 40});
  CHECK(node.collect(3).empty());
  for (const char* bad : {"-1", "inf", "-inf", "9223372036854775.9", "1e400"}) {
    CHECK(node.call({"BLPOP", "l", bad}) == "-ERR timeout is negative\r\n");
  }
  for (const char* bad : {"x", "", "nan", " 1", "1 "}) {
    CHECK(node.call({"BLPOP", "l", bad}) == "-ERR timeout is not a float or out of range\r\n");
  }
  CHECK(node.call({"RPUSH", "l", "x"}) == ":1\r\n");
  CHECK(node.collect(3) == pair("l", "x"));
}

TEST_CASE("waits: CLIENT UNBLOCK ends them as a timeout or with an error",
          "[net][objects][lists][waits]") {
  Conversation node{3};
  const std::string one = node.call({"CLIENT", "ID"}, 1);
  const std::string id = one.substr(1, one.size() - 3);
  CHECK(node.call({"BLMPOP", "0", "1", "l", "LEFT"}, 1).empty());
  CHECK(node.call({"CLIENT", "UNBLOCK", id}) == ":1\r\n");
  CHECK(node.collect(1) == nothing);
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  CHECK(node.call({"CLIENT", "UNBLOCK", id, "ERROR"}) == ":1\r\n");
  CHECK(node.collect(1) == "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
  CHECK(node.call({"CLIENT", "UNBLOCK", id}) == ":0\r\n");
  CHECK(node.call({"RPUSH", "l", "x"}) == ":1\r\n");
  CHECK(node.call({"LLEN", "l"}) == ":1\r\n");
}

TEST_CASE("waits: what a client that has gone was served is there for the next",
          "[net][objects][lists][waits]") {
  Conversation node{4};
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  CHECK(node.call({"BLPOP", "l", "0"}, 2).empty());
  SECTION("it left while it waited") {
    node.connections[1].reset();
  }
  SECTION("it left before it read") {
    static_cast<void>(node.call({"RPUSH", "l", "x"}, 3));
    node.connections[1].reset();
    CHECK(node.collect(2) == pair("l", "x"));
    return;
  }
  static_cast<void>(node.call({"RPUSH", "l", "x"}, 3));
  CHECK(node.collect(2) == pair("l", "x"));
}

TEST_CASE("waits: elements that come back lie as they lay", "[net][objects][lists][waits]") {
  Conversation node{2};
  CHECK(node.call({"BLMPOP", "0", "1", "l", "RIGHT", "COUNT", "2"}, 1).empty());
  static_cast<void>(node.call({"RPUSH", "l", "a", "b", "c"}));
  CHECK(node.call({"LLEN", "l"}) == ":1\r\n");
  node.connections[1].reset();
  CHECK(node.call({"LRANGE", "l", "0", "-1"}) == "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
}

TEST_CASE("waits: what a wait takes wakes WATCH and has events, behind those of the push",
          "[net][objects][lists][waits][events]") {
  Conversation node{4};
  static_cast<void>(node.call({"CONFIG", "SET", "notify-keyspace-events", "EAn"}));
  static_cast<void>(node.call({"PSUBSCRIBE", "__keyevent@0__:*"}, 3));
  CHECK(node.call({"BLMOVE", "l", "m", "LEFT", "LEFT", "0"}, 1).empty());
  static_cast<void>(node.call({"WATCH", "m"}, 2));
  static_cast<void>(node.call({"MULTI"}, 2));
  static_cast<void>(node.call({"PING"}, 2));
  CHECK(node.call({"RPUSH", "l", "x"}) == ":1\r\n");
  CHECK(node.collect(1) == "$1\r\nx\r\n");
  CHECK(node.call({"EXEC"}, 2) == "*-1\r\n");
  const std::string heard = node.collect(3);
  std::size_t at = 0;
  for (const char* event :
       {":new\r\n", ":rpush\r\n", ":new\r\n", ":lpush\r\n", ":lpop\r\n", ":del\r\n"}) {
    INFO(event);
    at = heard.find(event, at);
    REQUIRE(at != std::string::npos);
    ++at;
  }
  // A key that a push has made, and a wait has taken, has changed as well.
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  static_cast<void>(node.call({"WATCH", "l"}, 2));
  static_cast<void>(node.call({"MULTI"}, 2));
  static_cast<void>(node.call({"PING"}, 2));
  CHECK(node.call({"RPUSH", "l", "x"}) == ":1\r\n");
  CHECK(node.call({"EXISTS", "l"}) == ":0\r\n");
  CHECK(node.call({"EXEC"}, 2) == "*-1\r\n");
}

TEST_CASE("waits: RENAME, COPY and SWAPDB bring elements as well", "[net][objects][lists][waits]") {
  Conversation node{4};
  static_cast<void>(node.call({"RPUSH", "a", "1"}));
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  CHECK(node.call({"RENAME", "a", "l"}) == "+OK\r\n");
  CHECK(node.collect(1) == pair("l", "1"));
  static_cast<void>(node.call({"RPUSH", "a", "2"}));
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  CHECK(node.call({"COPY", "a", "l"}) == ":1\r\n");
  CHECK(node.collect(1) == pair("l", "2"));
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  static_cast<void>(node.call({"SELECT", "1"}));
  static_cast<void>(node.call({"RPUSH", "l", "3"}));
  CHECK(node.collect(1).empty());
  CHECK(node.call({"SWAPDB", "0", "1"}) == "+OK\r\n");
  CHECK(node.collect(1) == pair("l", "3"));
}

TEST_CASE("waits: one that comes is served behind those that wait",
          "[net][objects][lists][waits]") {
  Conversation node{4};
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  CHECK(node.call({"BLPOP", "l", "m", "0"}, 2).empty());
  static_cast<void>(node.call({"RPUSH", "m", "1"}));
  CHECK(node.collect(2) == pair("m", "1"));
  CHECK(node.collect(1).empty());
  static_cast<void>(node.call({"SET", "s", "v"}));
  CHECK(node.call({"BLPOP", "s", "l", "0"}, 3).starts_with("-WRONGTYPE "));
}

TEST_CASE("waits: a client without the right to the key any more gets no element",
          "[net][objects][lists][waits]") {
  Conversation node{2};
  static_cast<void>(node.call({"ACL", "SETUSER", "bob", "on", "nopass", "~*", "+@all"}));
  static_cast<void>(node.call({"AUTH", "bob", "x"}, 1));
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  static_cast<void>(node.call({"ACL", "SETUSER", "bob", "resetkeys"}));
  CHECK(node.collect(1).starts_with("-NOPERM "));
  CHECK(node.call({"RPUSH", "l", "x"}) == ":1\r\n");
  CHECK(node.call({"LLEN", "l"}) == ":1\r\n");
}

}  // namespace semel::tests
