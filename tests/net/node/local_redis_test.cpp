// The commands in process: LocalRedis.
#include <map>
#include <string>
#include <thread>
#include "tests/support/catch.hpp"

#include "net/resp/reply_reader.hpp"
#include "semel/local_redis.hpp"

namespace semel::tests {
namespace {

using namespace std::chrono_literals;

TEST_CASE("local redis: the pattern of the seed, without a socket and without sleeping",
          "[net][local]") {
  auto redis = LocalRedis::open().value();
  CHECK(redis->call({"SET", "order:1", "CONSUMING", "NX", "GET", "PX", "60000"}).is_null());
  CHECK(redis->call({"SET", "order:1", "CONSUMING", "NX", "GET", "PX", "60000"}).text ==
        "CONSUMING");
  redis->advance(59'999ms);
  CHECK(redis->call({"PTTL", "order:1"}).integer == 1);
  redis->advance(1ms);
  CHECK(redis->call({"GET", "order:1"}).is_null());
  CHECK(redis->call({"DBSIZE"}).integer == 0);
}

TEST_CASE("local redis: each client has a state of its own", "[net][local]") {
  auto redis = LocalRedis::open().value();
  auto other = redis->connect();
  CHECK(other.call({"SELECT", "5"}).is_ok());
  CHECK(other.call({"SET", "k", "five"}).is_ok());
  CHECK(redis->call({"GET", "k"}).is_null());
  CHECK(redis->call({"MULTI"}).is_ok());
  CHECK(other.call({"GET", "k"}).text == "five");
  CHECK(redis->call({"PING"}).text == "QUEUED");
  CHECK(to_text(redis->call({"EXEC"})) == "[PONG]");
}

TEST_CASE("local redis: a pipeline is answered in order", "[net][local]") {
  auto redis = LocalRedis::open().value();
  const std::vector<std::vector<std::string>> commands = {
      {"SET", "k", "1"}, {"INCR", "k"}, {"GET", "k"}, {"LPUSH"}};
  const auto replies = redis->first().pipeline(commands);
  REQUIRE(replies.size() == 4);
  CHECK(replies[0].is_ok());
  CHECK(replies[1].integer == 2);
  CHECK(replies[2].text == "2");
  CHECK(replies[3].is_error());
}

TEST_CASE("local redis: both dialects", "[net][local]") {
  auto two = LocalRedis::open().value();
  auto three = LocalRedis::open({.protocol = 3}).value();
  CHECK(two->call({"HELLO"}).type == Reply::Type::array);
  CHECK(three->call({"HELLO"}).type == Reply::Type::map);
  CHECK_FALSE(LocalRedis::open({.protocol = 4}));
}

TEST_CASE("local redis: OBJECT, MEMORY and SCAN know a record of each kind", "[net][local]") {
  auto redis = LocalRedis::open().value();
  REQUIRE(redis->call({"SET", "string", "v"}).is_ok());
  REQUIRE(redis->call({"HSET", "hash", "f", "v"}).integer == 1);
  REQUIRE(redis->call({"RPUSH", "list", "v"}).integer == 1);
  REQUIRE(redis->call({"SADD", "set", "v"}).integer == 1);
  REQUIRE(redis->call({"ZADD", "sorted set", "1", "v"}).integer == 1);
  REQUIRE_FALSE(redis->call({"XADD", "stream", "*", "f", "v"}).is_error());
  REQUIRE(redis->call({"SEMEL.NAMESPACE", "ns", "AS", "call"}).is_ok());
  REQUIRE_FALSE(redis->call({"SEMEL.CLAIM", "ns", "claim"}).is_error());
  const std::map<std::string, std::string> encodings{
      {"string", "embstr"}, {"claim", "claim"},   {"hash", "listpack"}, {"list", "quicklist"},
      {"set", "hashtable"}, {"zset", "listpack"}, {"stream", "stream"}};
  std::size_t kinds = 0;
  for (const Kind kind : record_kinds()) {
    const std::string name{name_of(kind)};
    INFO(name);
    const Reply found = redis->call({"SCAN", "0", "COUNT", "100", "TYPE", name});
    REQUIRE(found.items.size() == 2);
    REQUIRE(found.items[1].items.size() == 1);
    const std::string key = found.items[1].items[0].text;
    CHECK(redis->call({"TYPE", key}).text == name);
    const std::string encoding = redis->call({"OBJECT", "ENCODING", key}).text;
    REQUIRE(encodings.contains(name));
    CHECK(encoding == encodings.at(name));
    CHECK(redis->call({"MEMORY", "USAGE", key}).integer > 16);
    ++kinds;
  }
  CHECK(kinds == encodings.size());  // each has its words in net/handlers/command_object.cpp
}

TEST_CASE("replies: each form is read back", "[net][local]") {
  const auto read = [](std::string_view bytes) {
    auto reply = net::take_reply(bytes);
    return reply && bytes.empty() ? to_text(*reply) : "not a reply";
  };
  CHECK(read("+OK\r\n") == "OK");
  CHECK(read("-ERR no\r\n") == "(error) ERR no");
  CHECK(read(":-5\r\n") == "(integer) -5");
  CHECK(read("$3\r\na\r\n\r\n") == R"("a\r\n")");
  CHECK(read("$-1\r\n") == "(nil)");
  CHECK(read("*-1\r\n") == "(nil)");
  CHECK(read("_\r\n") == "(nil)");
  CHECK(read("*2\r\n:1\r\n*1\r\n+a\r\n") == "[(integer) 1, [a]]");
  CHECK(read("%1\r\n+k\r\n#t\r\n") == "{k, (true)}");
  CHECK(read("~1\r\n,1.5\r\n") == "{1.5}");
  CHECK(read(">1\r\n=5\r\ntxt:a\r\n") == R"(<"a">)");
  CHECK(read("(12345678901234567890\r\n") == R"("12345678901234567890")");
  CHECK(read(",-inf\r\n") == "-inf");
  for (const std::string_view part : {"", "+OK", "$3\r\nab", "*2\r\n:1\r\n", "$x\r\n", "!\r\n"}) {
    CHECK(read(part) == "not a reply");
  }
  CHECK(read("*1\r\n*1\r\n") == "not a reply");
  std::string deep;
  for (int i = 0; i < 1'000; ++i) deep += "*1\r\n";
  CHECK(read(deep + ":1\r\n") == "not a reply");
}

}  // namespace
}  // namespace semel::tests
