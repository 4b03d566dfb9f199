// SEMEL.PERMIT .. WAIT: who gets a permit that becomes free, and what ends a wait. Words:
// claims_fixture.hpp.
#include <memory>
#include <vector>

#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::Resp;

namespace {

std::string granted_slot(unsigned slot) {
  const std::string number = std::to_string(slot);
  return "outcome granted, epoch E, attempt 1, takeover no, slot " + number + ", key {k}#" + number;
}

/// Two clients that hold the permits of k, for a minute and a minute and a second.
struct Full : NodeFixture {
  explicit Full(Resp dialect = Resp::three) : a{*node, dialect}, b{*node, dialect} {
    CHECK(a.say("SEMEL.PERMIT pools k 2 WAIT 5000 LEASE 60000 OWNER a") == granted_slot(0));
    CHECK(b.say("SEMEL.PERMIT pools k 2 WAIT 5000 LEASE 61000 OWNER b") == granted_slot(1));
  }
  Client a;
  Client b;
};

}  // namespace

TEST_CASE("SEMEL.PERMIT WAIT: whichever slot is freed, the first that came gets it",
          "[net][claims][semaphore][wait]") {
  for (const Resp dialect : {Resp::two, Resp::three}) {
    Full f{dialect};
    Client c{*f.node, dialect};
    Client d{*f.node, dialect};
    CHECK(c.say("SEMEL.PERMIT pools k 2 WAIT 0 OWNER c") == "(waits)");
    CHECK(d.say("SEMEL.PERMIT pools k 2 WAIT 0 OWNER d") == "(waits)");
    CHECK(f.b.say("SEMEL.RELEASE pools {k}#1 %") == "outcome ok, late no");
    CHECK(c.hear() == granted_slot(1));
    CHECK(d.hear() == "(waits)");
    CHECK(f.a.say("SEMEL.RELEASE pools {k}#0 %") == "outcome ok, late no");
    CHECK(d.hear() == granted_slot(0));
    CHECK(f.engine->stats().waiters == 0);
  }
}

TEST_CASE(
    "SEMEL.PERMIT WAIT: a lease, a connection and an operator free a permit as a release does",
    "[net][claims][semaphore][wait]") {
  Full f;
  Client c{*f.node};
  Client d{*f.node};
  Client e{*f.node};
  Client bound{*f.node};
  CHECK(bound.say("SEMEL.PERMIT pools k 3 BIND") == granted_slot(2));
  CHECK(c.say("SEMEL.PERMIT pools k 3 WAIT 0 LEASE 90000 OWNER c") == "(waits)");
  CHECK(d.say("SEMEL.PERMIT pools k 3 WAIT 0 OWNER d") == "(waits)");
  CHECK(e.say("SEMEL.PERMIT pools k 3 WAIT 0 OWNER e") == "(waits)");
  bound.disconnect();
  CHECK(c.hear() == "outcome granted, epoch E, attempt 2, takeover yes, slot 2, key {k}#2");
  f.pass(59'999ms);
  CHECK(d.hear() == "(waits)");
  f.pass(1ms);
  CHECK(d.hear() == "outcome granted, epoch E, attempt 2, takeover yes, slot 0, key {k}#0");
  CHECK(f.b.say("SEMEL.FORGET pools {k}#1") == "1");
  CHECK(e.hear() == granted_slot(1));
}

TEST_CASE("SEMEL.PERMIT WAIT: at the deadline all are held still, by those who hold them then",
          "[net][claims][semaphore][wait]") {
  Full f;
  Client c{*f.node};
  Client d{*f.node};
  CHECK(c.say("SEMEL.PERMIT pools k 2 WAIT 500 OWNER c") == "(waits)");
  f.a.say("SEMEL.RENEW pools {k}#0 % LEASE 90000");
  f.pass(499ms);
  CHECK(c.hear() == "(waits)");
  f.pass(1ms);
  CHECK(c.hear() ==
        "outcome in_flight, remaining_ms 60500, retry_after_ms 1000, attempt 1, owner b, slot 1, "
        "key {k}#1");
  CHECK(c.say("PING") == "+PONG");
  CHECK(d.say("SEMEL.PERMIT pools k 2").starts_with("outcome in_flight"));  // without WAIT: at once
}

TEST_CASE("SEMEL.PERMIT WAIT: words that are wrong, and calls that do not wait",
          "[net][claims][semaphore][wait]") {
  Full f;
  Client c{*f.node};
  CHECK(c.say("SEMEL.PERMIT pools k 2 WAIT") == "-ERR WAIT needs a value behind it");
  CHECK(c.say("SEMEL.PERMIT pools k 2 WAIT -1").starts_with("-ERR WAIT must be 0.."));
  CHECK(c.say("SEMEL.PERMIT pools k 2 WAIT x").starts_with("-ERR WAIT must be 0.."));
  CHECK(c.say("SEMEL.PERMIT pools k 2 LEASE 5 WAIT 5").starts_with("-ERR unknown word 'WAIT'"));
  CHECK(c.say("SEMEL.PERMIT pools k 0 WAIT 5").starts_with("-ERR the number of permits"));
  c.say("MULTI");
  c.say("SEMEL.PERMIT pools k 2 WAIT 0");
  CHECK(c.say("EXEC").starts_with("[outcome in_flight"));
  CHECK(c.raw({"EVAL", "return redis.call('SEMEL.PERMIT', KEYS[1], 'k', '2', 'WAIT', '0')[2]", "1",
               "pools"})
            .find("in_flight") != std::string::npos);
  CHECK_FALSE(c.waits());
}

TEST_CASE("SEMEL.PERMIT WAIT: a permit whose waiter has left goes to the next",
          "[net][claims][semaphore][wait]") {
  Full f;
  Client gone{*f.node};
  Client next{*f.node};
  CHECK(gone.say("SEMEL.PERMIT pools k 2 WAIT 0 OWNER gone") == "(waits)");
  CHECK(next.say("SEMEL.PERMIT pools k 2 WAIT 0 OWNER next") == "(waits)");
  CHECK(f.engine->stats().waiters == 2);
  SECTION("its connection had ended before") {
    gone.disconnect();
    CHECK(f.engine->stats().waiters == 1);
    CHECK(f.b.say("SEMEL.RELEASE pools {k}#1 %") == "outcome ok, late no");
  }
  SECTION("its connection ends before it has read the reply") {
    CHECK(f.b.say("SEMEL.RELEASE pools {k}#1 %") == "outcome ok, late no");
    CHECK(next.hear() == "(waits)");
    gone.disconnect();
  }
  SECTION("CLIENT UNBLOCK") {
    CHECK(gone.handle().unblock(true));
    CHECK(f.engine->stats().waiters == 1);
    CHECK(f.b.say("SEMEL.RELEASE pools {k}#1 %") == "outcome ok, late no");
  }
  CHECK(next.hear() == granted_slot(1));
  CHECK(f.engine->stats().waiters == 0);
}

TEST_CASE("SEMEL.PERMIT WAIT: a grant with a claim id is kept for a repeated request",
          "[net][claims][semaphore][wait]") {
  Full f;
  Client c{*f.node};
  const std::string id = " CLAIM-ID " + std::string(32, '7');
  CHECK(c.say("SEMEL.PERMIT pools k 2 WAIT 0 LEASE 1000" + id) == "(waits)");
  f.b.say("SEMEL.RELEASE pools {k}#1 %");
  c.disconnect();  // before it has read the reply
  c.connect();
  CHECK(c.say("SEMEL.PERMIT pools k 2 WAIT 0" + id) ==
        "outcome regranted, epoch E, attempt 1, remaining_ms 1000, slot 1, key {k}#1");
}

TEST_CASE("SEMEL.PERMIT WAIT: fewer permits wait for fewer holders, more are served meanwhile",
          "[net][claims][semaphore][wait]") {
  Full f;
  Client c{*f.node};
  Client few{*f.node};
  Client more{*f.node};
  CHECK(c.say("SEMEL.PERMIT pools k 3") == granted_slot(2));
  CHECK(few.say("SEMEL.PERMIT pools k 1 WAIT 0 OWNER few") == "(waits)");
  CHECK(more.say("SEMEL.PERMIT pools k 3 WAIT 0 OWNER more") == "(waits)");
  f.a.say("SEMEL.RELEASE pools {k}#0 %");  // two hold beyond the one that `few` knows of
  CHECK(few.hear() == "(waits)");
  CHECK(more.hear() == granted_slot(0));
  f.b.say("SEMEL.RELEASE pools {k}#1 %");
  more.say("SEMEL.RELEASE pools {k}#0 %");
  CHECK(few.hear() == "(waits)");
  c.say("SEMEL.RELEASE pools {k}#2 %");
  CHECK(few.hear() == granted_slot(0));
}

TEST_CASE("SEMEL.PERMIT WAIT: fewer permits hear of leases and connections that end",
          "[net][claims][semaphore][wait]") {
  Full f;
  Client bound{*f.node};
  Client few{*f.node};
  CHECK(bound.say("SEMEL.PERMIT pools k 3 BIND LEASE 600000") == granted_slot(2));
  CHECK(few.say("SEMEL.PERMIT pools k 2 WAIT 0 OWNER few") == "(waits)");
  f.a.say("SEMEL.RELEASE pools {k}#0 %");
  CHECK(few.hear() == "(waits)");  // two are held
  SECTION("a lease") {
    f.pass(60'999ms);
    CHECK(few.hear() == "(waits)");
    f.pass(1ms);
  }
  SECTION("a connection") {
    bound.disconnect();
    f.pass(23ms);
  }
  CHECK(few.hear() == granted_slot(0));
}

TEST_CASE("SEMEL.PERMIT WAIT: it takes account of permits that came while it waited",
          "[net][claims][semaphore][wait]") {
  NodeFixture f;
  Client a{*f.node};
  Client few{*f.node};
  Client more{*f.node};
  CHECK(a.say("SEMEL.PERMIT pools k 1 LEASE 90000") == granted_slot(0));
  CHECK(few.say("SEMEL.PERMIT pools k 1 WAIT 0 OWNER few") == "(waits)");
  CHECK(more.say("SEMEL.PERMIT pools k 2 LEASE 60000") == granted_slot(1));
  a.say("SEMEL.RELEASE pools {k}#0 %");
  CHECK(few.hear() == "(waits)");  // one is held
  more.say("SEMEL.RELEASE pools {k}#1 %");
  f.pass(22ms);  // it stands in no line of that slot, and looks
  CHECK(few.hear() == granted_slot(0));
}

TEST_CASE("SEMEL.PERMIT WAIT: in a fair namespace newcomers queue, and waiters are served",
          "[net][claims][semaphore][wait]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  Client c{*f.node};
  a.say("SEMEL.NAMESPACE pools AS fair-lock");
  CHECK(a.say("SEMEL.PERMIT pools k 1") == granted_slot(0));
  CHECK(b.say("SEMEL.PERMIT pools k 1 WAIT 0") == "(waits)");
  CHECK(c.say("SEMEL.PERMIT pools k 1").starts_with("outcome in_flight"));
  a.say("SEMEL.RELEASE pools {k}#0 %");
  CHECK(b.hear() == granted_slot(0));
  CHECK(c.say("SEMEL.PERMIT pools k 1 WAIT 0") == "(waits)");
  b.say("SEMEL.RELEASE pools {k}#0 %");
  CHECK(c.hear() == granted_slot(0));
}

TEST_CASE("SEMEL.PERMIT WAIT: what stands in the way of a slot is the answer",
          "[net][claims][semaphore][wait]") {
  Full f;
  Client c{*f.node};
  CHECK(c.say("SEMEL.PERMIT pools k 2 WAIT 0") == "(waits)");
  SECTION("another record") {
    f.a.say("MULTI");
    f.a.say("DEL pools:{k}#1");
    f.a.say("SET pools:{k}#1 x");
    f.a.say("EXEC");
    CHECK(c.hear() == "-WRONGTYPE the key holds something else than a claim");
  }
  SECTION("the namespace is gone") {
    CHECK(f.a.say("SEMEL.NAMESPACE DROP pools ALL") == "2");
    CHECK(c.hear().starts_with("-"));
  }
}

TEST_CASE(
    "SEMEL.PERMIT WAIT: waiters_per_key_max wait for a semaphore, one more is refused at once",
    "[net][claims][semaphore][wait][limits]") {
  Full f;
  std::vector<std::unique_ptr<Client>> waiters;
  for (std::size_t i = 0; i < limits::waiters_per_key_max; ++i) {
    waiters.push_back(std::make_unique<Client>(*f.node));
    REQUIRE(waiters.back()->say("SEMEL.PERMIT pools k 2 WAIT 0") == "(waits)");
  }
  Client late{*f.node};
  CHECK(late.say("SEMEL.PERMIT pools k 2 WAIT 0") == "(waits)");  // through the handle, as all
  CHECK(late.hear().starts_with("outcome busy, reason waiters_full"));
  // Each serves the next.
  std::string epoch = f.a.epoch;
  for (const auto& waiter : waiters) {
    REQUIRE(f.a.say("SEMEL.RELEASE pools {k}#0 " + epoch) == "outcome ok, late no");
    REQUIRE(waiter->hear() == granted_slot(0));
    epoch = waiter->epoch;
  }
}

TEST_CASE(
    "SEMEL.PERMIT WAIT: a waiter that has no memory for its places is refused, and takes none",
    "[net][claims][semaphore][wait]") {
  NodeFixture f{{.memory_bytes = std::size_t{8} << 20}};
  std::vector<std::unique_ptr<Client>> all;
  for (unsigned i = 0; i < 1'024; ++i) {
    all.push_back(std::make_unique<Client>(*f.node));
    const std::string reply = all.back()->say("SEMEL.PERMIT pools k 1024 LEASE 600000");
    REQUIRE(reply.starts_with("outcome granted"));
  }
  bool is_full = false;
  for (unsigned i = 0; i < 1'000 && !is_full; ++i) {
    all.push_back(std::make_unique<Client>(*f.node));
    REQUIRE(all.back()->say("SEMEL.PERMIT pools k 1024 WAIT 0") == "(waits)");
    is_full = all.back()->hear().starts_with("outcome busy, reason memory_full");
  }
  CHECK(is_full);
  all.clear();
  Client again{*f.node};
  CHECK(again.say("SEMEL.PERMIT pools other 1 WAIT 0").starts_with("outcome granted"));
}

}  // namespace semel::tests
