// SEMEL.EXPLAIN in both dialects. Words: claims_fixture.hpp; a *decision* is a map of the reply.
#include <string>
#include <vector>

#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::Resp;

namespace {

constexpr Resp dialects[] = {Resp::two, Resp::three};

/// The value of a decision's field, which must be there.
std::string field(const RespValue& decision, std::string_view name) {
  for (std::size_t i = 0; i + 1 < decision.items.size(); i += 2) {
    if (decision.items[i].text == name) return decision.items[i + 1].text;
  }
  FAIL("no field " << name);
  return {};
}

std::vector<RespValue> explained(Client& client, const std::string& space, const std::string& key) {
  const std::string reply = client.raw({"SEMEL.EXPLAIN", space, key});
  std::string_view rest{reply};
  const RespValue value = read_reply(rest);
  REQUIRE(value.type == RespValue::Type::array);
  return value.items;
}

std::string outcomes_of(const std::vector<RespValue>& decisions) {
  std::string all;
  for (const RespValue& each : decisions) {
    all += (all.empty() ? "" : " ") + field(each, "call") + ":" + field(each, "outcome");
  }
  return all;
}

}  // namespace

TEST_CASE("SEMEL.EXPLAIN: what was decided, from old to new, in both dialects",
          "[net][claims][explain]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    a.say("SEMEL.CLAIM jobs k LEASE 5000 OWNER worker-1");
    const std::string epoch = a.epoch;
    f.pass(1'000ms);
    a.say("SEMEL.CLAIM jobs k OWNER worker-2");
    a.say("SEMEL.CLAIM jobs k OWNER worker-2");
    static_cast<void>(a.raw({"SEMEL.COMPLETE", "jobs", "k", epoch, "paid"}));
    a.say("SEMEL.CLAIM jobs k");
    const auto told = explained(a, "jobs", "k");
    CHECK(outcomes_of(told) == "claim:granted claim:in_flight complete:ok claim:replay");
    CHECK(told[0].type == (dialect == Resp::two ? RespValue::Type::array : RespValue::Type::map));
    CHECK(told[0].items.size() == 26);
    CHECK(field(told[0], "owner") == "worker-1");
    CHECK(field(told[0], "epoch") == epoch);
    CHECK(field(told[1], "times") == "2");
    CHECK(field(told[1], "seen") == "held");
    CHECK(field(told[1], "seen_owner") == "worker-1");
    CHECK(field(told[1], "seen_epoch") == epoch);
    CHECK(std::stoll(field(told[1], "first_unix_ms")) ==
          std::stoll(field(told[0], "first_unix_ms")) + 1'000);
    CHECK(field(told[1], "why") ==
          "another owner holds the key, and 4000 ms of its lease were left");
    const std::string newest = a.raw({"SEMEL.EXPLAIN", "jobs", "k", "COUNT", "1"});
    std::string_view rest{newest};
    CHECK(outcomes_of(read_reply(rest).items) == "claim:replay");
  }
}

TEST_CASE("SEMEL.EXPLAIN: what it refuses, and what it has nothing about",
          "[net][claims][explain]") {
  NodeFixture f;
  Client a{*f.node};
  CHECK(a.say("SEMEL.EXPLAIN jobs k") == "[]");  // declares nothing
  CHECK(a.say("SEMEL.NAMESPACE jobs") == "nil");
  a.say("SEMEL.CLAIM jobs k");
  CHECK(a.say("SEMEL.EXPLAIN jobs other") == "[]");
  CHECK(a.say("SEMEL.EXPLAIN jobs ''") == "-ERR key is empty");
  CHECK(a.say("SEMEL.EXPLAIN jobs " + std::string(limits::key_bytes_max, 'k'))
            .starts_with("-ERR key exceeds the limit"));
  CHECK(a.say("SEMEL.EXPLAIN jobs") ==
        "-ERR wrong number of arguments for 'semel.explain' command");
  CHECK(a.say("SEMEL.EXPLAIN jobs k COUNT") ==
        "-ERR wrong number of arguments for 'semel.explain' command");
  CHECK(a.say("SEMEL.EXPLAIN jobs k LIMIT 1") == "-ERR unknown word 'LIMIT', allowed are COUNT");
  CHECK(a.say("SEMEL.EXPLAIN jobs k COUNT 0").starts_with("-ERR COUNT must be 1..8"));
  CHECK(a.say("SEMEL.EXPLAIN jobs k COUNT 8").starts_with("["));
  CHECK(a.say("SEMEL.EXPLAIN jobs k COUNT 9").starts_with("-ERR COUNT must be 1..8"));
  a.say("SELECT 1");
  CHECK(a.say("SEMEL.EXPLAIN jobs k") == "-ERR namespace 'jobs': lives in database 0, not 1");
}

TEST_CASE("SEMEL.EXPLAIN: owner labels of any bytes are bulk strings, too long ones no decision",
          "[net][claims][explain]") {
  NodeFixture f;
  Client a{*f.node};
  std::string hostile = "\r\n+OK\r\n$-1\r\n";
  hostile.append(limits::owner_label_max - hostile.size(), '\0');
  static_cast<void>(a.raw({"SEMEL.CLAIM", "jobs", "k", "OWNER", hostile}));
  CHECK(a.raw({"SEMEL.CLAIM", "jobs", "k", "OWNER", std::string(65'536, 'x')}).starts_with("-ERR"));
  static_cast<void>(a.raw({"SEMEL.CLAIM", "jobs", "k", "OWNER", "\x1b[2J"}));
  const auto told = explained(a, "jobs", "k");
  REQUIRE(told.size() == 2);
  CHECK(field(told[0], "owner") == hostile);
  CHECK(field(told[1], "owner") == "\x1b[2J");
  CHECK(field(told[1], "seen_owner") == hostile);
  CHECK(field(told[1], "why").find('\x1b') == std::string::npos);
  // The connection is in order.
  CHECK(a.say("PING") == "+PONG");
}

TEST_CASE("SEMEL.EXPLAIN: the right is that of SEMEL.GETCLAIM", "[net][claims][explain][acl]") {
  NodeFixture f;
  Client admin{*f.node};
  admin.say("SEMEL.CLAIM jobs k");
  CHECK(admin.say("ACL SETUSER reads on nopass %R~jobs:* +semel.explain +semel.getclaim") == "+OK");
  CHECK(admin.say("ACL SETUSER blind on nopass %W~jobs:* +@all") == "+OK");
  CHECK(admin.say("ACL SETUSER other on nopass ~else:* +@all") == "+OK");
  for (const char* command : {"SEMEL.EXPLAIN jobs k", "SEMEL.GETCLAIM jobs k"}) {
    Client client{*f.node};
    CHECK(client.say("AUTH reads x") == "+OK");
    CHECK_FALSE(client.say(command).starts_with("-"));
    for (const char* user : {"blind", "other"}) {
      CHECK(client.say(std::string{"AUTH "} + user + " x") == "+OK");
      CHECK(client.say(command).starts_with("-NOPERM"));
    }
  }
}

TEST_CASE("SEMEL.EXPLAIN: without a decision log it says so", "[net][claims][explain]") {
  ManualClock clock;
  auto engine = *Engine::open({.clock = &clock});
  net::Node node{*engine};
  Client a{node};
  a.say("SEMEL.CLAIM jobs k");
  CHECK(a.say("SEMEL.EXPLAIN jobs k") == "-ERR no decisions are kept: decision-log-size is 0");
}

TEST_CASE("SEMEL.EXPLAIN: in a transaction it shows what was decided before it",
          "[net][claims][explain]") {
  NodeFixture f;
  Client a{*f.node};
  a.say("MULTI");
  a.say("SEMEL.CLAIM jobs k");
  a.say("SEMEL.EXPLAIN jobs k COUNT 1");
  const std::string reply = a.say("EXEC");
  CHECK(reply.find("outcome granted, call claim") != std::string::npos);
}

}  // namespace semel::tests
