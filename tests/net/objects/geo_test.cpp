// Places on the map in conversations. The rest is in differential/profile_geo.cpp.
#include <string>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

RespValue ask_geo(Conversation& node, const Words& words) {
  const std::string bytes = node.call(words);
  std::string_view rest = bytes;
  return take_value(rest).value_or(RespValue{});
}

void add_sicily(Conversation& node) {
  REQUIRE(node.call({"GEOADD", "g", "13.361389", "38.115556", "Palermo", "15.087269", "37.502669",
                     "Catania"}) == ":2\r\n");
}

}  // namespace

TEST_CASE("geo: places are members of a sorted set", "[net][objects][geo]") {
  Conversation node;
  add_sicily(node);
  CHECK(node.call({"TYPE", "g"}) == "+zset\r\n");
  CHECK(node.call({"ZSCORE", "g", "Palermo"}) == "$16\r\n3479099956230698\r\n");
  CHECK(node.call({"GEODIST", "g", "Palermo", "Catania", "km"}) == "$8\r\n166.2742\r\n");
  const RespValue where = ask_geo(node, {"GEOPOS", "g", "Palermo", "none"});
  REQUIRE(where.items.size() == 2);
  CHECK(where.items[0].items[0].text == "13.36138933897018433");
  CHECK(node.call({"ZREM", "g", "Palermo", "Catania"}) == ":2\r\n");
  CHECK(node.call({"EXISTS", "g"}) == ":0\r\n");
}

TEST_CASE("geo: a result is stored in place of any kind but a claim", "[net][objects][geo]") {
  Conversation node;
  add_sicily(node);
  REQUIRE(node.call({"SEMEL.CLAIM", "ns", "job"}).find("granted") != std::string::npos);
  CHECK(node.call({"GEORADIUS", "g", "15", "37", "200", "km", "STORE", "ns:job"})
            .starts_with("-WRONGTYPE "));
  static_cast<void>(node.call({"SADD", "s", "x"}));
  CHECK(node.call({"GEORADIUS", "g", "15", "37", "200", "km", "STORE", "s"}) == ":2\r\n");
  CHECK(node.call({"TYPE", "s"}) == "+zset\r\n");
  CHECK(node.call({"GEOSEARCHSTORE", "g", "g", "FROMLONLAT", "0", "0", "BYRADIUS", "1", "m"}) ==
        ":0\r\n");
  CHECK(node.call({"EXISTS", "g"}) == ":0\r\n");
}

TEST_CASE("geo: the keys of a request are those that it stores to as well", "[net][objects][geo]") {
  Conversation node;
  const RespValue keys = ask_geo(node, {"COMMAND", "GETKEYS", "GEORADIUS", "g", "1", "2", "3", "m",
                                        "COUNT", "1", "STOREDIST", "d"});
  REQUIRE(keys.items.size() == 2);
  CHECK(keys.items[1].text == "d");
  // So a user without rights to the target is refused, and a watched target is noticed.
  REQUIRE(node.call({"ACL", "SETUSER", "ann", "on", "nopass", "+@all", "~g"}) == "+OK\r\n");
  add_sicily(node);
  REQUIRE(node.call({"AUTH", "ann", "x"}) == "+OK\r\n");
  CHECK(node.call({"GEORADIUS", "g", "15", "37", "200", "km"}).starts_with("*2\r\n"));
  CHECK(node.call({"GEORADIUS", "g", "15", "37", "200", "km", "ASC", "STORE", "d"})
            .starts_with("-NOPERM "));
}

}  // namespace semel::tests
