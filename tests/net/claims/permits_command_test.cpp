// SEMEL.PERMIT and SEMEL.PERMITS. Words: claims_fixture.hpp.
#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::Resp;

TEST_CASE("SEMEL.PERMIT: as many holders as permits, renewed and released as claims",
          "[net][claims][semaphore]") {
  for (const Resp dialect : {Resp::two, Resp::three}) {
    NodeFixture f;
    Client a{*f.node, dialect};
    Client b{*f.node, dialect};
    CHECK(a.say("SEMEL.PERMIT pools k 2 LEASE 5000 OWNER a") ==
          "outcome granted, epoch E, attempt 1, takeover no, slot 0, key {k}#0");
    CHECK(b.say("SEMEL.PERMIT pools k 2 LEASE 6000 OWNER b") ==
          "outcome granted, epoch E, attempt 1, takeover no, slot 1, key {k}#1");
    CHECK(b.say("SEMEL.PERMIT pools k 2") ==
          "outcome in_flight, remaining_ms 5000, retry_after_ms 1000, attempt 1, owner a, slot 0, "
          "key {k}#0");
    f.pass(4'999ms);
    CHECK(a.say("SEMEL.RENEW pools {k}#0 % LEASE 9000") == "outcome ok, late no");
    CHECK(b.say("SEMEL.PERMITS pools k") ==
          "[key {k}#0, slot 0, state held, epoch E, attempts 1, lease_remaining_ms 9000, owner a | "
          "key {k}#1, slot 1, state held, epoch E, attempts 1, lease_remaining_ms 1001, owner b]");
    f.pass(1'001ms);  // b went silent
    CHECK(a.say("SEMEL.RELEASE pools {k}#0 %") == "outcome ok, late no");
    CHECK(a.say("SEMEL.RELEASE pools {k}#0 %") == "outcome unknown");
    CHECK(b.say("SEMEL.PERMITS pools k") == "[]");
    CHECK(b.say("SEMEL.PERMITS never k") == "[]");
  }
}

TEST_CASE("SEMEL.PERMIT: fewer permits count those who are beyond them, more are there at once",
          "[net][claims][semaphore]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  a.say("SEMEL.PERMIT pools k 3");
  b.say("SEMEL.PERMIT pools k 3 OWNER b");
  a.say("SEMEL.RELEASE pools {k}#0 %");
  CHECK(a.say("SEMEL.PERMIT pools k 1") ==
        "outcome in_flight, remaining_ms 60000, retry_after_ms 1000, attempt 1, owner b, slot 1, "
        "key {k}#1");
  CHECK(a.say("SEMEL.PERMITS pools k").starts_with("[key {k}#1"));
  CHECK(a.say("SEMEL.PERMIT pools k 2").starts_with("outcome granted"));
  CHECK(a.say("SEMEL.PERMIT pools k 2").starts_with("outcome in_flight"));
  CHECK(a.say("SEMEL.PERMIT pools k 3").starts_with("outcome granted"));
}

TEST_CASE(
    "SEMEL.PERMIT: asked again with its CLAIM-ID it is regranted, BIND ends with a connection",
    "[net][claims][semaphore]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  const std::string id(32, 'a');
  a.say("SEMEL.PERMIT pools k 2");
  CHECK(b.say("SEMEL.PERMIT pools k 2 CLAIM-ID " + id).ends_with("slot 1, key {k}#1"));
  a.say("SEMEL.RELEASE pools {k}#0 %");
  CHECK(b.say("SEMEL.PERMIT pools k 2 CLAIM-ID " + id) ==
        "outcome regranted, epoch E, attempt 1, remaining_ms 60000, slot 1, key {k}#1");
  CHECK(a.say("SEMEL.PERMIT pools k 2 BIND").ends_with("slot 0, key {k}#0"));
  a.disconnect();
  CHECK(b.say("SEMEL.PERMIT pools k 2") ==
        "outcome granted, epoch E, attempt 2, takeover yes, slot 0, key {k}#0");
}

TEST_CASE("SEMEL.PERMIT: words that are wrong, and records that stand in the way",
          "[net][claims][semaphore]") {
  NodeFixture f;
  Client a{*f.node};
  CHECK(a.say("SEMEL.PERMIT pools k 0") == "-ERR the number of permits must be 1..1024, not '0'");
  CHECK(a.say("SEMEL.PERMIT pools k 1025").starts_with("-ERR the number of permits must be"));
  CHECK(a.say("SEMEL.PERMIT pools k x").starts_with("-ERR the number of permits must be"));
  CHECK(a.say("SEMEL.PERMIT pools k").starts_with("-ERR wrong number of arguments"));
  CHECK(a.say("SEMEL.PERMIT pools k 1 LEASE 0").starts_with("-ERR LEASE must be"));
  CHECK(a.say("SEMEL.PERMIT pools k 1 NOT").starts_with("-ERR unknown word"));
  CHECK(a.raw({"SEMEL.PERMIT", "pools", "", "1"}).starts_with("-ERR key is empty"));
  CHECK(a.raw({"SEMEL.PERMITS", "pools", ""}).starts_with("-ERR key is empty"));
  const std::string huge(100'000, 'k');
  CHECK(a.raw({"SEMEL.PERMIT", "pools", huge, "1"}).starts_with("-ERR key exceeds the limit"));
  CHECK(a.say("SEMEL.PERMITS pools k") == "[]");  // nothing of all that was kept
  a.say("SET pools:{w}#0 mine");
  CHECK(a.say("SEMEL.PERMIT pools w 1").starts_with("-WRONGTYPE"));
  a.say("LPUSH pools:{l}# mine");
  CHECK(a.say("SEMEL.PERMIT pools l 1").starts_with("-WRONGTYPE"));
  a.say("SELECT 1");
  CHECK(a.say("SEMEL.PERMIT pools k 1").starts_with("-ERR namespace 'pools'"));
}

TEST_CASE("SEMEL.PERMIT: in transactions and scripts, and its keys for rights and WATCH",
          "[net][claims][semaphore]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  a.say("MULTI");
  a.say("SEMEL.PERMIT pools k 1");
  a.say("SEMEL.PERMIT pools k 1");
  a.say("SEMEL.PERMITS pools k");
  const std::string done = a.say("EXEC");
  INFO(done);
  CHECK(
      done.starts_with("[outcome granted, epoch E, attempt 1, takeover no, slot 0, key {k}#0 | "
                       "outcome in_flight"));
  CHECK(a.raw({"EVAL", "return redis.call('SEMEL.PERMIT', KEYS[1], 'k', '2')[10]", "1", "pools"})
            .find("1") != std::string::npos);
  CHECK(a.say("COMMAND GETKEYS SEMEL.PERMIT pools k 2") ==
        "[pools:{k}#0 | pools:{k}#1 | pools:{k}#]");
  a.say("WATCH pools:{w}#0");
  b.say("SEMEL.PERMIT pools w 1");
  a.say("MULTI");
  a.say("PING");
  CHECK(a.say("EXEC") == "nil");
  a.say("ACL SETUSER u on nopass +@all ~pools:{mine}#*");
  b.say("AUTH u x");
  CHECK(b.say("SEMEL.PERMIT pools mine 3").starts_with("outcome granted"));
  CHECK(b.say("SEMEL.PERMIT pools other 3").starts_with("-NOPERM"));
  CHECK(b.say("SEMEL.PERMITS pools mine").starts_with("[key {mine}#0"));
  CHECK(b.say("SEMEL.PERMITS pools other").starts_with("-NOPERM"));
}

}  // namespace semel::tests
