// Bits of strings by commands: what a random dialogue with a redis-server does not meet.
#include <string>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"

namespace semel::tests {

TEST_CASE("SETBIT: the longest string is named with its length and the limit",
          "[net][objects][bits]") {
  Conversation node;
  const std::string limit = "1048576";
  CHECK(node.call({"SETBIT", "k", "8388607", "1"}) == ":0\r\n");
  CHECK(node.call({"STRLEN", "k"}) == ":" + limit + "\r\n");
  const std::string redis = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
  CHECK(node.call({"SETBIT", "k", "8388608", "1"}) ==
        redis + ": 1048577 bytes, at most " + limit + "\r\n");
  CHECK(node.call({"SETBIT", "new", "4294967295", "1"}) ==
        redis + ": 536870912 bytes, at most " + limit + "\r\n");
  CHECK(node.call({"BITFIELD", "new", "SET", "u63", "8388600", "1"}) ==
        redis + ": 1048583 bytes, at most " + limit + "\r\n");
  CHECK(node.call({"EXISTS", "new"}) == ":0\r\n");
  const std::string no_offset = "-ERR bit offset is not an integer or out of range\r\n";
  CHECK(node.call({"SETBIT", "k", "4294967296", "1"}) == no_offset);
  CHECK(node.call({"GETBIT", "k", "4294967296"}) == no_offset);
  CHECK(node.call({"GETBIT", "k", "4294967295"}) == ":0\r\n");
  CHECK(node.call({"BITFIELD", "k", "GET", "u63", "4294967295"}) == "*1\r\n:0\r\n");
}

TEST_CASE("SETBIT: a change keeps the ttl and makes the string raw", "[net][objects][bits]") {
  Conversation node;
  static_cast<void>(node.call({"SET", "k", "12", "PX", "1000"}));
  CHECK(node.call({"OBJECT", "ENCODING", "k"}) == "$3\r\nint\r\n");
  CHECK(node.call({"SETBIT", "k", "7", "0"}) == ":1\r\n");
  CHECK(node.call({"GET", "k"}) == "$2\r\n02\r\n");
  CHECK(node.call({"OBJECT", "ENCODING", "k"}) == "$3\r\nraw\r\n");
  CHECK(node.call({"PTTL", "k"}) == ":1000\r\n");
  node.pass(Millis{1'000});
  CHECK(node.call({"SETBIT", "k", "7", "1"}) == ":0\r\n");
  CHECK(node.call({"GET", "k"}) == "$1\r\n\x01\r\n");
  CHECK(node.call({"PTTL", "k"}) == ":-1\r\n");
}

TEST_CASE("BITOP: the target loses its ttl and kind, and goes with an empty result",
          "[net][objects][bits]") {
  Conversation node;
  static_cast<void>(node.call({"SADD", "t", "m"}));
  static_cast<void>(node.call({"SET", "a", "abc"}));
  CHECK(node.call({"BITOP", "NOT", "t", "a"}) == ":3\r\n");
  CHECK(node.call({"TYPE", "t"}) == "+string\r\n");
  static_cast<void>(node.call({"PEXPIRE", "t", "1000"}));
  CHECK(node.call({"BITOP", "AND", "t", "t", "t"}) == ":3\r\n");
  CHECK(node.call({"PTTL", "t"}) == ":-1\r\n");
  CHECK(node.call({"BITOP", "OR", "t", "none", "none"}) == ":0\r\n");
  CHECK(node.call({"EXISTS", "t"}) == ":0\r\n");
}

TEST_CASE("DEBUG OBJECT: encoding and length of a string", "[net][objects]") {
  Conversation node;
  REQUIRE(node.node.settings.assign(net::Setting::enable_debug_command, "yes", {}).ok());
  const auto shown = [&](const std::string& value) {
    static_cast<void>(node.call({"SET", "k", value}));
    const std::string line = node.call({"DEBUG", "OBJECT", "k"});
    const std::size_t from = line.find("encoding:");
    return line.substr(from, line.find(" lru:") - from);
  };
  CHECK(shown("12") == "encoding:int serializedlength:2");
  CHECK(shown("128") == "encoding:int serializedlength:3");
  CHECK(shown("-32769") == "encoding:int serializedlength:5");
  CHECK(shown("2147483648") == "encoding:int serializedlength:11");
  CHECK(shown("abcdefghijklmnop") == "encoding:embstr serializedlength:17");
  CHECK(shown(std::string(64, 'x')) == "encoding:raw serializedlength:66");
  CHECK(node.call({"DEBUG", "OBJECT", "none"}) == "-ERR no such key\r\n");
  static_cast<void>(node.call({"SADD", "s", "m"}));
  CHECK(node.call({"DEBUG", "OBJECT", "s"}).starts_with("+Value at:0x"));
}

}  // namespace semel::tests
