// Commands on strings that came after Redis 7, by what their makers say of them.
#include <string>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"

namespace semel::tests {

TEST_CASE("newer strings: DELEX removes under a condition on the value", "[net]") {
  Conversation node;
  static_cast<void>(node.call({"SET", "k", "v"}));
  CHECK(node.call({"DELEX", "k", "IFEQ", "x"}) == ":0\r\n");
  CHECK(node.call({"DELEX", "k", "ifne", "v"}) == ":0\r\n");
  CHECK(node.call({"DELEX", "k", "IFEQ", "v"}) == ":1\r\n");
  CHECK(node.call({"DELEX", "k"}) == ":0\r\n");
  static_cast<void>(node.call({"SET", "k", "Hello world"}));
  CHECK(node.call({"DIGEST", "k"}) == "$16\r\nb6acb9d84a38ff74\r\n");
  CHECK(node.call({"DELEX", "k", "IFDNE", "B6ACB9D84A38FF74"}) == ":0\r\n");
  CHECK(node.call({"DELEX", "k", "IFDEQ", "b6acb9d84a38ff7"}) ==
        "-ERR must be exactly 16 hexadecimal characters\r\n");
  CHECK(node.call({"DELEX", "k", "IFDEQ", "b6acb9d84a38ff74"}) == ":1\r\n");
  CHECK(node.call({"DIGEST", "k"}) == "$-1\r\n");
  CHECK(node.call({"DELEX", "k", "IFEQ"}) ==
        "-ERR wrong number of arguments for 'delex' command\r\n");
  CHECK(node.call({"DELEX", "k", "IFXX", "v"}) == "-ERR syntax error\r\n");
}

TEST_CASE("newer strings: DELIFEQ removes a string that has the value", "[net]") {
  Conversation node;
  static_cast<void>(node.call({"SET", "k", "v"}));
  CHECK(node.call({"DELIFEQ", "k", "x"}) == ":0\r\n");
  CHECK(node.call({"DELIFEQ", "k", "v"}) == ":1\r\n");
  CHECK(node.call({"DELIFEQ", "k", "v"}) == ":0\r\n");
}

TEST_CASE("newer strings: MSETEX sets all or nothing, with one end", "[net]") {
  Conversation node;
  CHECK(node.call({"MSETEX", "2", "a", "1", "b", "2", "EX", "10"}) == ":1\r\n");
  CHECK(node.call({"PTTL", "b"}) == ":10000\r\n");
  CHECK(node.call({"MSETEX", "2", "b", "3", "c", "4", "NX"}) == ":0\r\n");
  CHECK(node.call({"MSETEX", "2", "b", "3", "c", "4", "XX"}) == ":0\r\n");
  CHECK(node.call({"MSETEX", "2", "a", "3", "b", "4", "XX", "KEEPTTL"}) == ":1\r\n");
  CHECK(node.call({"PTTL", "b"}) == ":10000\r\n");
  CHECK(node.call({"MSETEX", "1", "a", "5"}) == ":1\r\n");
  CHECK(node.call({"PTTL", "a"}) == ":-1\r\n");
  CHECK(node.call({"EXISTS", "c"}) == ":0\r\n");
  CHECK(node.call({"MSETEX", "0", "a", "5"}) == "-ERR invalid numkeys value\r\n");
  CHECK(node.call({"MSETEX", "2", "a", "5"}) == "-ERR wrong number of key-value pairs\r\n");
  CHECK(node.call({"MSETEX", "1", "a", "5", "NX", "XX"}) == "-ERR syntax error\r\n");
  CHECK(node.call({"MSETEX", "1", "a", "5", "EX", "1", "KEEPTTL"}) == "-ERR syntax error\r\n");
  CHECK(node.call({"MSETEX", "1", "a", "5", "EX", "0"}) ==
        "-ERR invalid expire time in 'msetex' command\r\n");
  CHECK(node.call({"COMMAND", "GETKEYS", "MSETEX", "2", "a", "1", "b", "2", "NX"}) ==
        "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
}

TEST_CASE("newer strings: MSETEX lets a transaction fail that watches one of its keys", "[net]") {
  Conversation node{2};
  static_cast<void>(node.call({"WATCH", "b"}));
  static_cast<void>(node.call({"MSETEX", "2", "a", "1", "b", "2"}, 1));
  static_cast<void>(node.call({"MULTI"}));
  CHECK(node.call({"EXEC"}) == "*-1\r\n");
}

TEST_CASE("newer strings: INCREX counts within bounds and sets when it ends", "[net]") {
  Conversation node;
  CHECK(node.call({"INCREX", "k", "UBOUND", "2", "EX", "10", "ENX"}) == "*2\r\n:1\r\n:1\r\n");
  node.clock.advance(Millis{1'000});
  CHECK(node.call({"INCREX", "k", "UBOUND", "2", "EX", "10", "ENX"}) == "*2\r\n:2\r\n:1\r\n");
  CHECK(node.call({"PTTL", "k"}) == ":9000\r\n");
  CHECK(node.call({"INCREX", "k", "UBOUND", "2", "EX", "10"}) == "*2\r\n:2\r\n:0\r\n");
  CHECK(node.call({"PTTL", "k"}) == ":9000\r\n");
  CHECK(node.call({"INCREX", "k", "BYINT", "-10", "LBOUND", "-1", "SATURATE", "PERSIST"}) ==
        "*2\r\n:-1\r\n:-3\r\n");
  CHECK(node.call({"PTTL", "k"}) == ":-1\r\n");
  CHECK(node.call({"INCREX", "f", "BYFLOAT", "0.5"}) == "*2\r\n$3\r\n0.5\r\n$3\r\n0.5\r\n");
  CHECK(node.call({"INCREX", "k", "BYINT", "x"}) ==
        "-ERR value is not an integer or out of range\r\n");
  CHECK(node.call({"INCREX", "k", "BYFLOAT", "x"}) == "-ERR value is not a valid float\r\n");
  CHECK(node.call({"INCREX", "k", "ENX"}) == "-ERR syntax error\r\n");
  CHECK(node.call({"INCREX", "k", "BYINT", "1", "BYFLOAT", "1"}) == "-ERR syntax error\r\n");
}

TEST_CASE("newer strings: SCAN meets every key, whatever the step", "[net]") {
  Conversation node;
  for (int i = 0; i < 300; ++i) static_cast<void>(node.call({"SET", std::to_string(i), "v"}));
  std::string cursor = "0";
  std::size_t found = 0;
  int rounds = 0;
  do {
    const std::string reply = node.call({"SCAN", cursor, "COUNT", "7"});
    const std::size_t begin = reply.find("\r\n", 4) + 2;
    const std::size_t end = reply.find("\r\n", begin);
    cursor = reply.substr(begin, end - begin);
    found += std::stoul(reply.substr(end + 3));
    REQUIRE(++rounds < 1'000);
  } while (cursor != "0");
  CHECK(found >= 300);
}

}  // namespace semel::tests
