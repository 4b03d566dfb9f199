// SEMEL.DEBOUNCE, SEMEL.DEBOUNCERUN, SEMEL.DEBOUNCEEND and SEMEL.DEBOUNCES. Words:
// claims_fixture.hpp.
#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::Resp;

TEST_CASE("SEMEL.DEBOUNCE: one run with the last payload, when the quiet time is over",
          "[net][claims][debounce]") {
  for (const Resp dialect : {Resp::two, Resp::three}) {
    NodeFixture f;
    Client a{*f.node, dialect};
    Client b{*f.node, dialect};
    CHECK(a.say("SEMEL.DEBOUNCERUN edits doc") == "outcome idle");
    CHECK(
        a.say("SEMEL.DEBOUNCE edits doc one QUIET 100").starts_with("outcome stored, due_ms 100"));
    f.pass(60ms);
    CHECK(b.say("SEMEL.DEBOUNCE edits doc two QUIET 100 MAX-WAIT 130 KEEP 5000")
              .starts_with("outcome stored, due_ms 70"));
    CHECK(a.say("SEMEL.DEBOUNCES edits") == "[key doc, state quiet, due_ms 70]");
    CHECK(a.say("SEMEL.DEBOUNCERUN edits doc") == "outcome quiet, due_ms 70");
    f.pass(70ms);
    CHECK(a.say("SEMEL.DEBOUNCES edits") == "[key doc, state due, due_ms 0]");
    CHECK(a.say("SEMEL.DEBOUNCERUN edits doc LEASE 5000 OWNER a") ==
          "outcome granted, epoch E, attempt 1, takeover no, key {doc}#run, payload two");
    CHECK(b.say("SEMEL.DEBOUNCERUN edits doc") ==
          "outcome in_flight, remaining_ms 5000, retry_after_ms 1000, attempt 1, owner a, key "
          "{doc}#run");
    CHECK(b.say("SEMEL.DEBOUNCES edits COUNT 1") == "[key doc, state running, due_ms 0]");
    CHECK(a.say("SEMEL.RENEW edits {doc}#run %") == "outcome ok, late no");
    CHECK(a.say("SEMEL.DEBOUNCEEND edits doc %") == "outcome ok, late no");
    CHECK(a.say("SEMEL.DEBOUNCEEND edits doc %") == "outcome unknown");
    CHECK(a.say("SEMEL.DEBOUNCERUN edits doc") == "outcome idle");
    CHECK(a.say("SEMEL.DEBOUNCES edits") == "[]");
  }
}

TEST_CASE("SEMEL.DEBOUNCE: a failed run, a silent one, and a connection that ends come again",
          "[net][claims][debounce]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  a.say("SEMEL.DEBOUNCE edits doc one QUIET 100");
  f.pass(100ms);
  CHECK(a.say("SEMEL.DEBOUNCERUN edits doc LEASE 1000").ends_with("payload one"));
  CHECK(a.say("SEMEL.DEBOUNCEEND edits doc % AGAIN") == "outcome ok, late no");
  CHECK(a.say("SEMEL.DEBOUNCERUN edits doc") == "outcome quiet, due_ms 100");
  f.pass(100ms);
  CHECK(a.say("SEMEL.DEBOUNCERUN edits doc LEASE 1000").ends_with("payload one"));
  f.pass(1s);
  CHECK(b.say("SEMEL.DEBOUNCERUN edits doc BIND").ends_with("payload one"));
  CHECK(a.say("SEMEL.DEBOUNCEEND edits doc %") == "outcome not_owner");
  b.disconnect();
  CHECK(a.say("SEMEL.DEBOUNCERUN edits doc").ends_with("payload one"));
  CHECK(a.say("SEMEL.DEBOUNCEEND edits doc %") == "outcome ok, late no");
}

TEST_CASE("SEMEL.DEBOUNCE: words that are wrong, and records that stand in the way",
          "[net][claims][debounce]") {
  NodeFixture f;
  Client a{*f.node};
  CHECK(a.say("SEMEL.DEBOUNCE edits doc p").starts_with("-ERR wrong number of arguments"));
  CHECK(a.say("SEMEL.DEBOUNCE edits doc p KEEP 5") == "-ERR QUIET ms is missing");
  CHECK(a.say("SEMEL.DEBOUNCE edits doc p QUIET 0").starts_with("-ERR QUIET must be 1.."));
  CHECK(a.say("SEMEL.DEBOUNCE edits doc p QUIET 5 KEEP") == "-ERR KEEP needs a value behind it");
  CHECK(a.say("SEMEL.DEBOUNCE edits doc p QUIET 5 MAX-WAIT 4") ==
        "-ERR MAX-WAIT must not be less than QUIET");
  CHECK(a.say("SEMEL.DEBOUNCE edits doc p QUIET 5 NOT 5").starts_with("-ERR unknown word 'NOT'"));
  CHECK(a.raw({"SEMEL.DEBOUNCE", "edits", "", "p", "QUIET", "5"}).starts_with("-ERR key is empty"));
  CHECK(a.raw({"SEMEL.DEBOUNCE", "edits", std::string(100'000, 'k'), "p", "QUIET", "5"})
            .starts_with("-ERR key exceeds the limit"));
  CHECK(a.say("SEMEL.DEBOUNCERUN edits doc NOT").starts_with("-ERR unknown word"));
  CHECK(a.raw({"SEMEL.DEBOUNCERUN", "edits", ""}).starts_with("-ERR key is empty"));
  CHECK(a.say("SEMEL.DEBOUNCEEND edits doc 0").starts_with("-ERR"));
  CHECK(a.say("SEMEL.DEBOUNCEEND edits doc 5 NOT").starts_with("-ERR unknown word"));
  CHECK(a.say("SEMEL.DEBOUNCEEND never doc 5") == "outcome unknown");
  CHECK(a.say("SEMEL.DEBOUNCES never") == "[]");
  CHECK(a.say("SEMEL.DEBOUNCES edits COUNT 0").starts_with("-ERR COUNT must be 1.."));
  CHECK(a.say("SEMEL.DEBOUNCES edits NOT 1").starts_with("-ERR unknown word"));
  a.say("SET edits:{doc}#last mine");
  CHECK(a.say("SEMEL.DEBOUNCE edits doc p QUIET 5").starts_with("-WRONGTYPE"));
  CHECK(a.say("SEMEL.DEBOUNCERUN edits doc").starts_with("-WRONGTYPE"));
  a.say("DEL edits:{doc}#last");
  a.say("SET edits:{doc}#run mine");
  CHECK(a.say("SEMEL.DEBOUNCE edits doc p QUIET 5").starts_with("outcome stored"));
  f.pass(5ms);
  CHECK(a.say("SEMEL.DEBOUNCERUN edits doc").starts_with("-WRONGTYPE"));
}

TEST_CASE("SEMEL.DEBOUNCE: in transactions and scripts, and its keys for rights",
          "[net][claims][debounce]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  a.say("MULTI");
  a.say("SEMEL.DEBOUNCE edits doc one QUIET 5");
  a.say("SEMEL.DEBOUNCE edits doc two QUIET 5");
  CHECK(a.say("EXEC").starts_with("[outcome stored, due_ms 5"));
  f.pass(5ms);
  CHECK(a.raw({"EVAL", "return redis.call('SEMEL.DEBOUNCERUN', KEYS[1], 'doc')[12]", "1", "edits"})
            .find("two") != std::string::npos);
  CHECK(a.say("COMMAND GETKEYS SEMEL.DEBOUNCE edits doc p QUIET 5") ==
        "[edits:{doc}#last | edits:{doc}#run]");
  a.say("ACL SETUSER u on nopass +@all ~edits:{mine}#*");
  b.say("AUTH u x");
  CHECK(b.say("SEMEL.DEBOUNCE edits mine p QUIET 5").starts_with("outcome stored"));
  CHECK(b.say("SEMEL.DEBOUNCE edits other p QUIET 5").starts_with("-NOPERM"));
  CHECK(b.say("SEMEL.DEBOUNCERUN edits other").starts_with("-NOPERM"));
  CHECK(b.say("SEMEL.DEBOUNCES edits").starts_with("-NOPERM"));
}

}  // namespace semel::tests
