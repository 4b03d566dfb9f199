// What the commands of all kinds of objects have in common.
#include <string>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"

namespace semel::tests {

TEST_CASE("objects: a set begins with its first member and ends with its last", "[net][objects]") {
  Conversation node;
  CHECK(node.call({"SADD", "s", "a", "10", "9", "a", ""}) == ":4\r\n");
  CHECK(node.call({"TYPE", "s"}) == "+set\r\n");
  CHECK(node.call({"SCARD", "s"}) == ":4\r\n");
  CHECK(node.call({"SREM", "s", "a", "b", "10", ""}) == ":3\r\n");
  CHECK(node.call({"SREM", "s", "9"}) == ":1\r\n");
  CHECK(node.call({"EXISTS", "s"}) == ":0\r\n");
  CHECK(node.call({"SCARD", "s"}) == ":0\r\n");
}

TEST_CASE("objects: another kind is refused, and stays", "[net][objects]") {
  Conversation node;
  static_cast<void>(node.call({"SET", "k", "v"}));
  for (const auto* command : {"SADD", "SREM"}) {
    CHECK(node.call({command, "k", "v"}).starts_with("-WRONGTYPE "));
  }
  CHECK(node.call({"SCARD", "k"}).starts_with("-WRONGTYPE "));
  CHECK(node.call({"GET", "k"}) == "$1\r\nv\r\n");
  static_cast<void>(node.call({"SADD", "s", "v"}));
  CHECK(node.call({"GET", "s"}).starts_with("-WRONGTYPE "));
  CHECK(node.call({"HGET", "s", "v"}).starts_with("-WRONGTYPE "));
}

TEST_CASE("objects: a change keeps the ttl, and RENAME and COPY take an object along",
          "[net][objects]") {
  Conversation node;
  static_cast<void>(node.call({"SADD", "s", "a"}));
  CHECK(node.call({"PEXPIRE", "s", "60000"}) == ":1\r\n");
  CHECK(node.call({"SADD", "s", "b"}) == ":1\r\n");
  CHECK(node.call({"PTTL", "s"}) == ":60000\r\n");
  CHECK(node.call({"COPY", "s", "t"}) == ":1\r\n");
  CHECK(node.call({"RENAME", "t", "u"}) == "+OK\r\n");
  CHECK(node.call({"SCARD", "u"}) == ":2\r\n");
  CHECK(node.call({"PTTL", "u"}) == ":60000\r\n");
}

TEST_CASE("KEYS: a pattern of 1000 stars matches, one of 1001 does not, as in redis-server",
          "[net][objects][glob]") {
  Conversation one;
  const std::string key(3'000, 'a');
  REQUIRE(one.call({"SET", key, "1"}) == "+OK\r\n");
  const auto matches = [&](const std::string& part, int count) {
    std::string pattern;
    for (int i = 0; i < count; ++i) pattern += part;
    const bool found = one.call({"KEYS", pattern}).starts_with("*1\r\n");
    CHECK(one.call({"KEYS", pattern + "*"}).starts_with("*1\r\n") == found);
    return found;
  };
  for (const char* part : {"*?", "**a", "*[a*]", "*\\a"}) {
    INFO(part);
    CHECK(matches(part, 1'000));
    CHECK_FALSE(matches(part, 1'001));
  }
  CHECK(one.call({"KEYS", std::string(5'000, '*')}).starts_with("*1\r\n"));
}

}  // namespace semel::tests
