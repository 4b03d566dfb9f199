// SEMEL.LIMIT. Words: claims_fixture.hpp.
#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::Resp;

TEST_CASE("SEMEL.LIMIT: each kind allows what its terms say, on both sides of each end",
          "[net][claims][rate]") {
  for (const Resp dialect : {Resp::two, Resp::three}) {
    NodeFixture f;
    Client a{*f.node, dialect};
    Client b{*f.node};
    CHECK(a.say("SEMEL.LIMIT f fixed 2 1000") ==
          "outcome allowed, remaining 1, retry_after_ms 0, reset_after_ms 1000");
    CHECK(a.say("SEMEL.LIMIT s SLIDING 2 1000").starts_with("outcome allowed, remaining 1"));
    CHECK(a.say("SEMEL.LIMIT b Bucket 2 1000 refill 1 cost 2") ==
          "outcome allowed, remaining 0, retry_after_ms 0, reset_after_ms 2000");
    f.pass(999ms);
    CHECK(b.say("SEMEL.LIMIT f FIXED 2 1000 COST 2") ==
          "outcome limited, remaining 1, retry_after_ms 1, reset_after_ms 1");
    CHECK(b.say("SEMEL.LIMIT s SLIDING 2 1000").starts_with("outcome allowed, remaining 0"));
    CHECK(b.say("SEMEL.LIMIT b BUCKET 2 1000 COST 1 REFILL 1") ==
          "outcome limited, remaining 0, retry_after_ms 1, reset_after_ms 1001");
    f.pass(1ms);
    CHECK(a.say("SEMEL.LIMIT f FIXED 2 1000 COST 2").starts_with("outcome allowed, remaining 0"));
    CHECK(a.say("SEMEL.LIMIT s SLIDING 2 1000 COST 2") ==
          "outcome limited, remaining 1, retry_after_ms 999, reset_after_ms 999");
    CHECK(
        a.say("SEMEL.LIMIT b BUCKET 2 1000 REFILL 1").starts_with("outcome allowed, remaining 0"));
    CHECK(a.say("SEMEL.LIMIT b BUCKET 2 1000 REFILL 1 COST 0") ==
          "outcome allowed, remaining 0, retry_after_ms 0, reset_after_ms 2000");
  }
}

TEST_CASE("SEMEL.LIMIT: words that are wrong, and records that stand in the way",
          "[net][claims][rate]") {
  NodeFixture f;
  Client a{*f.node};
  CHECK(a.say("SEMEL.LIMIT k FIXED 1").starts_with("-ERR wrong number of arguments"));
  CHECK(a.say("SEMEL.LIMIT k HOURLY 1 1") ==
        "-ERR unknown word 'HOURLY', allowed are FIXED, SLIDING, BUCKET");
  CHECK(a.say("SEMEL.LIMIT k FIXED 0 1") == "-ERR the limit must be 1..100000000, not '0'");
  CHECK(a.say("SEMEL.LIMIT k FIXED 100000001 1").starts_with("-ERR the limit must be"));
  CHECK(a.say("SEMEL.LIMIT k FIXED x 1").starts_with("-ERR the limit must be"));
  CHECK(a.say("SEMEL.LIMIT k FIXED 99999999999999999999 1").starts_with("-ERR the limit must be"));
  CHECK(a.say("SEMEL.LIMIT k FIXED 1 0") == "-ERR the period must be 1..31622400000, not '0'");
  CHECK(a.say("SEMEL.LIMIT k FIXED 1 31622400001").starts_with("-ERR the period must be"));
  CHECK(a.say("SEMEL.LIMIT k FIXED 1 1 COST") == "-ERR COST needs a value behind it");
  CHECK(a.say("SEMEL.LIMIT k FIXED 1 1 COST -1").starts_with("-ERR COST must be 0..100000000"));
  CHECK(a.say("SEMEL.LIMIT k FIXED 5 1 COST 6") == "-ERR the cost must be 0..5, not 6");
  CHECK(a.say("SEMEL.LIMIT k FIXED 1 1 NOT 1").starts_with("-ERR unknown word 'NOT'"));
  CHECK(a.say("SEMEL.LIMIT k FIXED 1 1 REFILL 1") == "-ERR only a token bucket has a refill");
  CHECK(a.say("SEMEL.LIMIT k BUCKET 1 1 REFILL 0").starts_with("-ERR REFILL must be 1.."));
  CHECK(a.say("SEMEL.LIMIT k BUCKET 1000 31622400000 REFILL 1") ==
        "-ERR the bucket would not be full within 50 years");
  CHECK(a.raw({"SEMEL.LIMIT", "", "FIXED", "1", "1"}) == "-ERR key is empty\r\n");
  const std::string huge(100'000, 'k');
  CHECK(a.raw({"SEMEL.LIMIT", huge, "FIXED", "1", "1"}) == "-ERR key exceeds the limit\r\n");
  CHECK(a.say("DBSIZE") == "0");
  a.say("SET text 1");
  CHECK(a.say("SEMEL.LIMIT text FIXED 1 1").starts_with("-WRONGTYPE"));
  a.say("LPUSH list 1");
  CHECK(a.say("SEMEL.LIMIT list FIXED 1 1").starts_with("-WRONGTYPE"));
  a.say("SEMEL.CLAIM ns claim");
  CHECK(a.say("SEMEL.LIMIT ns:claim FIXED 1 1").starts_with("-WRONGTYPE"));
  CHECK(a.say("SEMEL.GETCLAIM ns claim").starts_with("state held"));
  a.say("SEMEL.LIMIT k FIXED 1 1000");
  CHECK(a.say("INCR k").starts_with("-ERR value is not an integer"));
  CHECK(a.say("SEMEL.CLAIM ns k").starts_with("outcome granted"));
}

TEST_CASE("SEMEL.LIMIT: in transactions, scripts and databases; rights, WATCH, COPY, DEL",
          "[net][claims][rate]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  a.say("MULTI");
  a.say("SEMEL.LIMIT k SLIDING 1 1000");
  a.say("SEMEL.LIMIT k SLIDING 1 1000");
  CHECK(a.say("EXEC") ==
        "[outcome allowed, remaining 0, retry_after_ms 0, reset_after_ms 1000 | "
        "outcome limited, remaining 0, retry_after_ms 1000, reset_after_ms 1000]");
  CHECK(a.raw({"EVAL", "return redis.call('SEMEL.LIMIT', KEYS[1], 'SLIDING', '1', '1000')[2]", "1",
               "k"}) == "$7\r\nlimited\r\n");
  CHECK(a.say("TYPE k") == "+string");
  CHECK(a.say("PTTL k") == "1000");
  a.say("COPY k other");
  f.pass(400ms);
  CHECK(a.say("SEMEL.LIMIT other SLIDING 1 1000") ==
        "outcome limited, remaining 0, retry_after_ms 600, reset_after_ms 600");
  a.say("DEL k");
  CHECK(a.say("SEMEL.LIMIT k SLIDING 1 1000").starts_with("outcome allowed"));
  a.say("SELECT 1");
  CHECK(a.say("SEMEL.LIMIT k SLIDING 1 1000").starts_with("outcome allowed"));
  a.say("SELECT 0");

  CHECK(a.say("COMMAND GETKEYS SEMEL.LIMIT k FIXED 1 1") == "[k]");
  a.say("WATCH w");
  b.say("SEMEL.LIMIT w FIXED 1 1000");
  a.say("MULTI");
  a.say("PING");
  CHECK(a.say("EXEC") == "nil");
  a.say("ACL SETUSER u on nopass +@all ~mine:*");
  b.say("AUTH u x");
  CHECK(b.say("SEMEL.LIMIT mine:k FIXED 1 1000").starts_with("outcome allowed"));
  CHECK(b.say("SEMEL.LIMIT other FIXED 1 1000").starts_with("-NOPERM"));
}

}  // namespace semel::tests
