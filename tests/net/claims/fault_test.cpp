// SEMEL.FAULT: which request a fault acts on, and what its client sees. Words: a fault is *planted*
// and *acts*; a connection that is *closed* reads nothing more.
#include "net/time/faults.hpp"

#include "net/time/test_clock.hpp"
#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::FaultAction;
using net::Faults;
using net::FaultTerms;

namespace {

struct FaultFixture {
  FaultFixture() {
    clock.freeze();
    auto opened = Engine::open({.clock = &clock});
    REQUIRE(opened);
    engine = *std::move(opened);
    node = std::make_unique<net::Node>(*engine, &clock);
  }
  /// Time passes, and what is due happens.
  void pass(Millis time) {
    REQUIRE(clock.advance(time));
    node->tick();
  }

  ManualClock system;
  net::TestClock clock{system};
  std::unique_ptr<Engine> engine;
  std::unique_ptr<net::Node> node;
};

net::FaultRequest request_of(std::string_view command, bool needs_name = false,
                             std::span<const std::string_view> keys = {}) {
  return {.command = command, .needs_name = needs_name, .keys = keys};
}

std::string set_request() {
  return request_bytes({"SET", "k", "v"});
}

/// Which of `count` requests a fault with these terms acts on, "..x." for the third of four.
std::string acts_on(std::uint64_t nth, std::uint64_t times, int count) {
  Faults faults;
  REQUIRE(faults.add({.action = FaultAction::drop, .nth = nth, .count = times}));
  std::string marks;
  for (int i = 0; i < count; ++i) {
    marks += faults.next(request_of("get")) ? 'x' : '.';
  }
  return marks;
}

}  // namespace

TEST_CASE("faults: a fault acts from the n-th matching request, for as many as it counts",
          "[net][faults]") {
  CHECK(acts_on(1, 1, 4) == "x...");
  CHECK(acts_on(3, 1, 4) == "..x.");
  CHECK(acts_on(2, 2, 5) == ".xx..");
  CHECK(acts_on(2, 0, 5) == ".xxxx");
}

TEST_CASE("faults: the command and each key are matched by globs", "[net][faults]") {
  Faults faults;
  const std::array<std::string_view, 2> keys = {"user:1", "cart:1"};
  REQUIRE(faults.add({.command = "m[gs]et", .key = "cart:*", .count = 0}));
  CHECK(faults.next(request_of("mget", false, keys)));
  CHECK_FALSE(faults.next(request_of("get", false, keys)));
  CHECK_FALSE(faults.next(request_of("mset", false, std::span{keys}.first(1))));
  CHECK_FALSE(faults.next(request_of("mget")));
}

TEST_CASE("faults: one that names no command leaves those of the connection alone",
          "[net][faults]") {
  Faults faults;
  REQUIRE(faults.add({.action = FaultAction::drop, .count = 0}));
  CHECK_FALSE(faults.next(request_of("hello", true)));
  CHECK(faults.next(request_of("get")));
  REQUIRE(faults.add({.action = FaultAction::drop, .command = "hel*", .count = 0}));
  CHECK(faults.next(request_of("hello", true)));
}

TEST_CASE("faults: of two that match both count the request, and the first acts", "[net][faults]") {
  Faults faults;
  REQUIRE(faults.add({.action = FaultAction::drop}));
  REQUIRE(faults.add({.action = FaultAction::error, .error = "ERR x", .nth = 2}));
  CHECK(faults.next(request_of("get"))->action == FaultAction::drop);
  CHECK(faults.next(request_of("get"))->action == FaultAction::error);
  CHECK_FALSE(faults.next(request_of("get")));
  const auto all = faults.all();
  CHECK(all[0].seen == 3);
  CHECK(all[0].acted == 1);
  CHECK(faults.clear(all[0].id) == 1);
  CHECK(faults.any());
  CHECK(faults.clear(all[0].id) == 0);
  CHECK(faults.clear(0) == 1);
  CHECK_FALSE(faults.any());
}

TEST_CASE("faults: there are count_max at most", "[net][faults][limits]") {
  Faults faults;
  for (std::size_t i = 0; i < Faults::count_max; ++i) CHECK(faults.add({}).has_value());
  CHECK_FALSE(faults.add({}).has_value());
  faults.clear(1);
  CHECK(faults.add({}) == Faults::count_max + 1);  // numbers are not used again
}

TEST_CASE("SEMEL.FAULT: only where the node was started for tests", "[net][faults]") {
  NodeFixture f;
  Client a{*f.node};
  for (const char* line : {"SEMEL.FAULT ADD DROP", "SEMEL.FAULT LIST", "SEMEL.FAULT CLEAR"}) {
    CHECK(a.say(line) == "-ERR SEMEL.FAULT needs a node started with test-clock");
  }
  CHECK(a.say("SET k v") == "+OK");
}

TEST_CASE("SEMEL.FAULT: an error is the reply of one command, which does not run",
          "[net][faults]") {
  FaultFixture f;
  Client a{*f.node};
  CHECK(a.say("SEMEL.FAULT ADD ERROR 'LOADING not yet' COMMAND SET") == "1");
  CHECK(a.say("GET k") == "nil");
  CHECK(a.say("SET k v") == "-LOADING not yet");
  CHECK(a.say("GET k") == "nil");
  CHECK(a.say("SET k v") == "+OK");
  CHECK(a.say("SEMEL.FAULT LIST").find("acted 1") != std::string::npos);
  CHECK(a.say("SEMEL.FAULT CLEAR") == "1");
  CHECK(a.say("SEMEL.FAULT LIST") == "[]");
}

TEST_CASE("SEMEL.FAULT: an error fails the transaction that it is in, and one of EXEC ends it",
          "[net][faults]") {
  FaultFixture f;
  Client a{*f.node};
  a.say("SEMEL.FAULT ADD ERROR 'ERR no' COMMAND set");
  a.say("MULTI");
  CHECK(a.say("SET k v") == "-ERR no");
  CHECK(a.say("EXEC").starts_with("-EXECABORT"));
  a.say("SEMEL.FAULT ADD ERROR 'ERR no' COMMAND exec");
  a.say("MULTI");
  CHECK(a.say("SET k v") == "+QUEUED");
  CHECK(a.say("EXEC") == "-ERR no");
  CHECK(a.say("EXEC") == "-ERR EXEC without MULTI");
  CHECK(a.say("GET k") == "nil");
}

TEST_CASE("SEMEL.FAULT: DROP closes before the command runs, DROP-REPLY after it",
          "[net][faults]") {
  FaultFixture f;
  Client watcher{*f.node};
  net::Batch batch;
  const bool runs = GENERATE(false, true);
  watcher.say(runs ? "SEMEL.FAULT ADD DROP-REPLY KEY k" : "SEMEL.FAULT ADD DROP KEY k");
  {
    net::Connection connection{*f.node, batch, nullptr, {.id = f.node->next_client_id()}};
    std::string out;
    connection.receive(request_bytes({"SET", "other", "v"}) + set_request() + set_request(), out);
    CHECK(out == "+OK\r\n");  // of the request before; that behind it is not read
    CHECK(connection.closes());
    CHECK(connection.requests() == 2);
  }
  CHECK(watcher.say("GET k") == (runs ? "v" : "nil"));
}

TEST_CASE("SEMEL.FAULT: a delay ends by the node's clock, and others are served meanwhile",
          "[net][faults]") {
  FaultFixture f;
  Client a{*f.node};
  Client b{*f.node};
  b.say("SEMEL.FAULT ADD DELAY 1000 COMMAND incr");
  CHECK(a.say("INCR n") == "(waits)");
  CHECK(b.say("GET n") == "nil");
  f.pass(999ms);
  CHECK(a.hear() == "(waits)");
  f.pass(1ms);
  CHECK(a.hear() == "1");
  CHECK(a.say("INCR n") == "2");
}

TEST_CASE("SEMEL.FAULT: requests behind a delayed one keep their order", "[net][faults]") {
  FaultFixture f;
  Client a{*f.node};
  a.say("SEMEL.FAULT ADD DELAY 10 COUNT 2");
  net::Batch batch;
  net::Connection connection{*f.node, batch, nullptr, {.id = f.node->next_client_id()}};
  std::string out;
  connection.receive(
      request_bytes({"INCR", "n"}) + request_bytes({"INCR", "n"}) + request_bytes({"INCR", "n"}),
      out);
  CHECK(out.empty());
  f.pass(10ms);
  connection.collect(out);
  CHECK(out == ":1\r\n");  // the second is delayed from now on
  f.pass(10ms);
  connection.collect(out);
  CHECK(out == ":1\r\n:2\r\n:3\r\n");
}

TEST_CASE("SEMEL.FAULT: a delayed client may leave, or be killed", "[net][faults]") {
  FaultFixture f;
  Client a{*f.node};
  a.say("SEMEL.FAULT ADD DELAY 10 COUNT 0 COMMAND set");
  {
    Client gone{*f.node};
    CHECK(gone.say("SET k v") == "(waits)");
  }
  Client killed{*f.node};
  CHECK(killed.say("SET k v") == "(waits)");
  killed.handle().kill();
  CHECK(killed.hear() == "(waits)");  // for nothing: the socket closes
  f.pass(10ms);
  CHECK(a.say("GET k") == "nil");
  CHECK(f.node->deadlines.size() == 0);
}

TEST_CASE("SEMEL.FAULT: commands that run in a script or for another are not matched",
          "[net][faults]") {
  FaultFixture f;
  Client a{*f.node};
  a.say("SEMEL.FAULT ADD ERROR 'ERR no' COMMAND set COUNT 0");
  CHECK(a.say("EVAL 'return redis.call(\"set\",KEYS[1],1)' 1 k") == "+OK");
  CHECK(a.say("SEMEL.FAULT ADD ERROR 'ERR all' COMMAND * COUNT 0") == "2");
  CHECK(a.say("PING") == "-ERR all");
  CHECK(a.say("SEMEL.CLOCK ADVANCE 1") == "+OK");  // a test can always go on
  CHECK(a.say("SEMEL.FAULT CLEAR 2") == "1");
  CHECK(a.say("PING") == "+PONG");
}

TEST_CASE("SEMEL.FAULT: words that mean nothing are refused, and plant nothing", "[net][faults]") {
  FaultFixture f;
  Client a{*f.node};
  for (const char* line :
       {"SEMEL.FAULT ADD", "SEMEL.FAULT ADD EXPLODE", "SEMEL.FAULT ADD DELAY",
        "SEMEL.FAULT ADD DELAY -1", "SEMEL.FAULT ADD DELAY 60001", "SEMEL.FAULT ADD DELAY x",
        "SEMEL.FAULT ADD ERROR", "SEMEL.FAULT ADD ERROR ''", "SEMEL.FAULT ADD DROP COMMAND",
        "SEMEL.FAULT ADD DROP NTH 0", "SEMEL.FAULT ADD DROP COUNT -1",
        "SEMEL.FAULT ADD DROP KEY ''", "SEMEL.FAULT ADD DROP x y", "SEMEL.FAULT CLEAR 0",
        "SEMEL.FAULT CLEAR 1 2", "SEMEL.FAULT"}) {
    INFO(line);
    CHECK(a.say(line).starts_with("-ERR"));
  }
  CHECK(
      a.raw({"SEMEL.FAULT", "ADD", "ERROR", "ERR a\r\n+OK"}).starts_with("-ERR ERROR has a line"));
  CHECK(a.raw({"SEMEL.FAULT", "ADD", "ERROR", std::string(513, 'x')}).starts_with("-ERR ERROR is"));
  CHECK_FALSE(f.clock.faults.any());
  CHECK(a.say("SEMEL.FAULT CLEAR") == "0");
  CHECK(a.raw({"SEMEL.FAULT", "ADD", "ERROR", std::string(512, 'x')}) == ":1\r\n");
  CHECK(a.say("SEMEL.FAULT ADD DELAY 60000") == "2");
}

}  // namespace semel::tests
