// The clock that clients may move, and the commands that move it.
#include "net/time/test_clock.hpp"

#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::TestClock;

namespace {

struct Times {
  ManualClock system;
  TestClock clock{system};
  [[nodiscard]] std::int64_t engine() const { return clock.now().time_since_epoch().count(); }
};

}  // namespace

TEST_CASE("test clock: follows the system's, stands still, and never goes back", "[net][clock]") {
  Times t;
  const std::int64_t start = t.engine();
  const std::int64_t unix_start = t.clock.unix_ms();
  t.system.advance(10ms);
  CHECK(t.engine() == start + 10);
  CHECK(t.clock.advance(100ms));
  CHECK(t.engine() == start + 110);
  t.clock.freeze();
  t.system.advance(1'000ms);
  CHECK(t.engine() == start + 110);
  CHECK(t.clock.unix_ms() == unix_start + 110);
  CHECK(t.clock.advance(5ms));
  CHECK(t.engine() == start + 115);
  t.clock.freeze();  // again: as it is
  CHECK(t.engine() == start + 115);
  t.clock.go();
  CHECK(t.engine() == start + 1'115);  // ahead by all that was advanced
  CHECK(t.clock.unix_ms() == unix_start + 1'115);
  t.clock.go();
  CHECK(t.engine() == start + 1'115);
}

TEST_CASE("test clock: takes ahead_max in all and no more, and no way back",
          "[net][clock][limits]") {
  Times t;
  const std::int64_t start = t.engine();
  CHECK_FALSE(t.clock.advance(-1ms));
  CHECK_FALSE(t.clock.advance(TestClock::ahead_max + 1ms));
  CHECK(t.clock.advance(TestClock::ahead_max - 1ms));
  CHECK_FALSE(t.clock.advance(2ms));
  CHECK(t.clock.advance(1ms));
  CHECK(t.engine() == start + TestClock::ahead_max.count());
}

TEST_CASE("test clock: a reading of the system's clock that is behind is not shown",
          "[net][clock]") {
  Times t;
  const std::int64_t start = t.engine();
  t.system.advance(-5ms);  // as another thread's reading may be
  CHECK(t.engine() == start);
}

TEST_CASE("test clock: an advance counts from the latest time that was shown", "[net][clock]") {
  Times t;
  const std::int64_t start = t.engine();
  t.system.advance(-1ms);
  CHECK(t.clock.advance(60'000ms));
  CHECK(t.engine() == start + 60'000);
  t.system.advance(1ms);
  CHECK(t.engine() == start + 60'000);
  t.clock.freeze();
  CHECK(t.clock.advance(5ms));
  CHECK(t.engine() == start + 60'005);
  t.clock.go();
  CHECK(t.engine() == start + 60'005);
  t.system.advance(1ms);
  CHECK(t.engine() == start + 60'006);
}

TEST_CASE("SEMEL.CLOCK: only where the node was started for tests", "[net][clock]") {
  NodeFixture f;
  Client a{*f.node};
  for (const char* line :
       {"SEMEL.CLOCK NOW", "SEMEL.CLOCK ADVANCE 5", "SEMEL.CLOCK FREEZE", "SEMEL.CLOCK REAL"}) {
    CHECK(a.say(line) == "-ERR SEMEL.CLOCK needs a node started with test-clock");
  }
}

TEST_CASE("SEMEL.CLOCK: expired keys are gone and published before the reply", "[net][clock]") {
  ManualClock system;
  TestClock clock{system};
  auto engine = Engine::open({.clock = &clock});
  REQUIRE(engine);
  net::Node node{**engine, &clock};
  Client a{node};
  Client b{node};
  CHECK(a.say("SEMEL.CLOCK FREEZE") == "+OK");
  const std::string now = a.say("SEMEL.CLOCK NOW");
  CHECK(now == std::to_string(system.unix_ms()));
  system.advance(50ms);
  CHECK(a.say("SEMEL.CLOCK NOW") == now);

  a.say("SET k v PX 1000");
  a.say("SEMEL.CLAIM jobs k LEASE 1000");
  CHECK(b.say("SEMEL.WAIT 5000 jobs k") == "(waits)");
  CHECK(a.say("SEMEL.CLOCK ADVANCE 999") == "+OK");
  CHECK(a.say("GET k") == "v");
  CHECK(b.hear() == "(waits)");
  CHECK(a.say("SEMEL.CLOCK ADVANCE 1") == "+OK");
  CHECK(a.say("GET k") == "nil");
  CHECK((*engine)->stats().records_with_ttl <= 1);  // the claim
  CHECK(b.hear() == "outcome granted, epoch E, attempt 2, takeover yes");
  CHECK(a.say("SEMEL.CLOCK REAL") == "+OK");
  CHECK(a.say("SEMEL.CLOCK NOW") == std::to_string(system.unix_ms() + 1'000));

  const std::string ttl_max = std::to_string(limits::ttl_max.count());
  CHECK(a.say("SEMEL.CLOCK ADVANCE -1") == "-ERR ADVANCE must be 0.." + ttl_max + ", not '-1'");
  for (int i = 0; i < 9; ++i) CHECK(a.say("SEMEL.CLOCK ADVANCE " + ttl_max) == "+OK");
  CHECK(a.say("SEMEL.CLOCK ADVANCE " + ttl_max) ==
        "-ERR ADVANCE by " + ttl_max + " would put the clock more than " +
            std::to_string(TestClock::ahead_max.count()) + " ms ahead");
  CHECK(a.say("SEMEL.CLOCK LATER") == "-ERR unknown subcommand 'LATER'. Try SEMEL.CLOCK HELP.");
  CHECK(a.say("SEMEL.CLOCK") == "-ERR wrong number of arguments for 'semel.clock' command");
  a.say("MULTI");
  CHECK(a.say("SEMEL.CLOCK NOW") == "-ERR Command not allowed inside a transaction");
}

}  // namespace semel::tests
