// SEMEL.RWLOCK and SEMEL.RWLOCKS. Words: claims_fixture.hpp.
#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::Resp;

TEST_CASE("SEMEL.RWLOCK: many readers or one writer, renewed and released as claims",
          "[net][claims][rwlock]") {
  for (const Resp dialect : {Resp::two, Resp::three}) {
    NodeFixture f;
    Client a{*f.node, dialect};
    Client b{*f.node, dialect};
    const std::string first = a.say("SEMEL.RWLOCK rw k READ LEASE 5000 OWNER a");
    CHECK(first.starts_with("outcome granted, epoch E, attempt 1, takeover no, token "));
    CHECK(first.ends_with(", key {k}#read0"));
    CHECK(b.say("SEMEL.RWLOCK rw k read LEASE 6000 OWNER b").ends_with(", key {k}#read1"));
    CHECK(b.say("SEMEL.RWLOCK rw k WRITE") ==
          "outcome in_flight, remaining_ms 5000, retry_after_ms 1000, attempt 1, owner a, token 0, "
          "key {k}#read0");
    f.pass(4'999ms);
    CHECK(a.say("SEMEL.RENEW rw {k}#read0 % LEASE 9000") == "outcome ok, late no");
    CHECK(b.say("SEMEL.RWLOCKS rw k") ==
          "[key {k}#read0, access read, state held, epoch E, attempts 1, lease_remaining_ms 9000, "
          "owner a | key {k}#read1, access read, state held, epoch E, attempts 1, "
          "lease_remaining_ms 1001, owner b]");
    f.pass(1'001ms);  // b went silent
    CHECK(a.say("SEMEL.RELEASE rw {k}#read0 %") == "outcome ok, late no");
    CHECK(a.say("SEMEL.RWLOCK rw k WRITE OWNER a").ends_with(", key {k}#write"));
    CHECK(b.say("SEMEL.RWLOCK rw k READ").ends_with("owner a, token 0, key {k}#write"));
    CHECK(b.say("SEMEL.RWLOCKS rw k").starts_with("[key {k}#write, access write, state held"));
    CHECK(a.say("SEMEL.RELEASE rw {k}#write %") == "outcome ok, late no");
    CHECK(b.say("SEMEL.RWLOCKS rw k") == "[]");
    CHECK(b.say("SEMEL.RWLOCKS never k") == "[]");
  }
}

TEST_CASE("SEMEL.RWLOCK: who says NEXT is not overtaken; BIND ends with a connection",
          "[net][claims][rwlock]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  Client c{*f.node};
  const std::string id = " CLAIM-ID " + std::string(32, 'b');
  a.say("SEMEL.RWLOCK rw k READ OWNER a");
  CHECK(b.say("SEMEL.RWLOCK rw k WRITE NEXT 500 OWNER b BIND" + id).ends_with("key {k}#read0"));
  CHECK(c.say("SEMEL.RWLOCK rw k READ") ==
        "outcome in_flight, remaining_ms 500, retry_after_ms 500, attempt 1, owner b, token 0, "
        "key {k}#next");
  CHECK(c.say("SEMEL.RWLOCKS rw k").find("key {k}#next, access next, state held") !=
        std::string::npos);
  a.say("SEMEL.RELEASE rw {k}#read0 %");
  CHECK(c.say("SEMEL.RWLOCK rw k READ").starts_with("outcome in_flight"));
  b.disconnect();
  CHECK(c.say("SEMEL.RWLOCK rw k READ OWNER c").starts_with("outcome granted"));
  CHECK(a.say("SEMEL.RWLOCK rw k WRITE next 500" + id).starts_with("outcome in_flight"));
  f.pass(500ms);
  CHECK(a.say("SEMEL.RWLOCK rw k READ BIND").starts_with("outcome granted"));
  a.disconnect();
  c.say("SEMEL.RELEASE rw {k}#read0 %");
  CHECK(c.say("SEMEL.RWLOCK rw k WRITE" + id).starts_with("outcome granted"));
  CHECK(c.say("SEMEL.RWLOCK rw k WRITE" + id).starts_with("outcome regranted"));
}

TEST_CASE("SEMEL.RWLOCK: words that are wrong, and records that stand in the way",
          "[net][claims][rwlock]") {
  NodeFixture f;
  Client a{*f.node};
  const std::string id = " CLAIM-ID " + std::string(32, 'a');
  CHECK(a.say("SEMEL.RWLOCK rw k BOTH") == "-ERR unknown word 'BOTH', allowed are READ, WRITE");
  CHECK(a.say("SEMEL.RWLOCK rw k").starts_with("-ERR wrong number of arguments"));
  CHECK(a.say("SEMEL.RWLOCK rw k READ NEXT 5") == "-ERR NEXT needs a CLAIM-ID");
  CHECK(a.say("SEMEL.RWLOCK rw k READ NEXT 0" + id) == "-ERR NEXT must be 1..60000, not '0'");
  CHECK(a.say("SEMEL.RWLOCK rw k READ NEXT 60001" + id).starts_with("-ERR NEXT must be"));
  CHECK(a.say("SEMEL.RWLOCK rw k READ NEXT").starts_with("-ERR unknown word 'NEXT'"));
  CHECK(a.say("SEMEL.RWLOCK rw k READ LEASE 0").starts_with("-ERR LEASE must be"));
  CHECK(a.raw({"SEMEL.RWLOCK", "rw", "", "READ"}).starts_with("-ERR key is empty"));
  CHECK(a.raw({"SEMEL.RWLOCKS", "rw", ""}).starts_with("-ERR key is empty"));
  const std::string huge(100'000, 'k');
  CHECK(a.raw({"SEMEL.RWLOCK", "rw", huge, "WRITE"}).starts_with("-ERR key exceeds the limit"));
  CHECK(a.say("SEMEL.RWLOCKS rw k") == "[]");  // nothing of all that was kept
  a.say("SET rw:{w}#read9 mine");
  CHECK(a.say("SEMEL.RWLOCK rw w WRITE").starts_with("-WRONGTYPE"));
  a.say("LPUSH rw:{l}#token mine");
  CHECK(a.say("SEMEL.RWLOCK rw l READ").starts_with("-WRONGTYPE"));
  CHECK(a.say("SEMEL.RWLOCK rw l WRITE").starts_with("-WRONGTYPE"));
  CHECK(a.say("SEMEL.RWLOCKS rw l") == "[]");
  a.say("SELECT 1");
  CHECK(a.say("SEMEL.RWLOCK rw k READ").starts_with("-ERR namespace 'rw'"));
}

TEST_CASE("SEMEL.RWLOCK: in transactions and scripts, and its keys for rights and WATCH",
          "[net][claims][rwlock]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  a.say("MULTI");
  a.say("SEMEL.RWLOCK rw k READ");
  a.say("SEMEL.RWLOCK rw k WRITE");
  a.say("SEMEL.RWLOCKS rw k");
  const std::string done = a.say("EXEC");
  INFO(done);
  CHECK(done.starts_with("[outcome granted, epoch E, attempt 1, takeover no, token "));
  CHECK(done.find("outcome in_flight") != std::string::npos);
  const std::string again =
      a.raw({"EVAL", "return redis.call('SEMEL.RWLOCK', KEYS[1], 'k', 'READ')[12]", "1", "rw"});
  CHECK(again.find("{k}#read1") != std::string::npos);
  const std::string keys = a.say("COMMAND GETKEYS SEMEL.RWLOCK rw k READ");
  CHECK(keys.starts_with("[rw:{k}#write | rw:{k}#read0 | "));
  CHECK(keys.ends_with("rw:{k}#read127 | rw:{k}#next | rw:{k}#token]"));
  a.say("WATCH rw:{w}#write");
  b.say("SEMEL.RWLOCK rw w WRITE");
  a.say("MULTI");
  a.say("PING");
  CHECK(a.say("EXEC") == "nil");
  a.say("ACL SETUSER u on nopass +@all ~rw:{mine}#*");
  b.say("AUTH u x");
  CHECK(b.say("SEMEL.RWLOCK rw mine READ").starts_with("outcome granted"));
  CHECK(b.say("SEMEL.RWLOCK rw other READ").starts_with("-NOPERM"));
  CHECK(b.say("SEMEL.RWLOCKS rw mine").starts_with("[key {mine}#read0"));
  CHECK(b.say("SEMEL.RWLOCKS rw other").starts_with("-NOPERM"));
}

}  // namespace semel::tests
