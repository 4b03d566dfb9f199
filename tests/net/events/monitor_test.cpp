// MONITOR: what is shown of what others do.
#include "net/events/monitor.hpp"

#include "tests/support/catch.hpp"

#include "tests/net/node_client.hpp"

namespace semel::tests {
namespace {

struct MonitorFixture {
  MonitorFixture() : engine(std::move(Engine::open({.clock = &clock})).value()), node(*engine) {
    node.monitors.allowed.store(true, std::memory_order_relaxed);  // mo: relaxed: one thread
  }
  ManualClock clock;
  std::unique_ptr<Engine> engine;
  net::Node node;
  net::Batch batch;
};

/// A line without its time.
std::string shown(std::uint64_t client, std::string_view rest, int db = 0) {
  return "[" + std::to_string(db) + " 127.0.0.1:" + std::to_string(client) + "]" +
         std::string{rest} + "\r\n";
}

std::string without_times(const std::string& heard) {
  std::string all;
  std::size_t at = 0;
  while (at < heard.size()) {
    const std::size_t end = heard.find("\r\n", at) + 2;
    const std::string line = heard.substr(at, end - at);
    const std::size_t place = line.find(" [");
    const bool is_shown = line.starts_with('+') && place != std::string::npos;
    all += is_shown ? line.substr(place + 1) : line;
    at = end;
  }
  return all;
}

}  // namespace

TEST_CASE("monitor: it must be allowed", "[net][monitor]") {
  MonitorFixture fixture;
  fixture.node.monitors.allowed.store(false, std::memory_order_relaxed);  // mo: relaxed: one thread
  NodeClient monitor{fixture.node, fixture.batch, 1};
  CHECK(monitor.say("MONITOR") ==
        "-ERR MONITOR is not allowed on this node; the setting 'monitor' allows it\r\n");
  CHECK_FALSE(fixture.node.monitors.any());
}

TEST_CASE("monitor: each command is shown when it has been carried out", "[net][monitor]") {
  MonitorFixture fixture;
  NodeClient monitor{fixture.node, fixture.batch, 1};
  NodeClient client{fixture.node, fixture.batch, 2};
  CHECK(monitor.say("MONITOR") == "+OK\r\n");
  client.say("SET a 1");
  client.say({"set", "a\"\\\r\n\t\x01\xff", "1"});
  client.say("nothing a");
  client.say("get");
  client.say("SELECT 3");
  client.say("HELLO 3 SETNAME x AUTH name secret");
  const std::string heard = monitor.heard();
  const std::int64_t ms = fixture.clock.unix_ms();
  CHECK(heard.starts_with("+" + std::to_string(ms / 1000) + "."));
  CHECK(
      without_times(heard) ==
      shown(2, " \"SET\" \"a\" \"1\"") +
          shown(2, " \"set\" \"a\\\"\\\\\\r\\n\\t\\x01\\xff\" \"1\"") +
          shown(2, " \"SELECT\" \"3\"", 3) +
          shown(2, " \"HELLO\" \"3\" \"SETNAME\" \"x\" \"AUTH\" \"(redacted)\" \"(redacted)\"", 3));
}

TEST_CASE("monitor: what comes together is shown as what comes apart", "[net][monitor]") {
  MonitorFixture fixture;
  NodeClient monitor{fixture.node, fixture.batch, 1};
  NodeClient client{fixture.node, fixture.batch, 2};
  monitor.say("MONITOR");
  CHECK(client.send(request_bytes({"SET", "a", "1"}) + request_bytes({"GET", "a"})) ==
        "+OK\r\n$1\r\n1\r\n");
  CHECK(without_times(monitor.heard()) ==
        shown(2, " \"SET\" \"a\" \"1\"") + shown(2, " \"GET\" \"a\""));
}

TEST_CASE("monitor: a transaction's commands are shown before EXEC", "[net][monitor]") {
  MonitorFixture fixture;
  NodeClient monitor{fixture.node, fixture.batch, 1};
  NodeClient client{fixture.node, fixture.batch, 2};
  monitor.say("MONITOR");
  for (const char* const line : {"MULTI", "SET a 1", "EXEC"}) client.say(line);
  CHECK(without_times(monitor.heard()) ==
        shown(2, " \"MULTI\"") + shown(2, " \"SET\" \"a\" \"1\"") + shown(2, " \"EXEC\""));
}

TEST_CASE("monitor: it sees its own commands behind their replies, and takes no keys",
          "[net][monitor]") {
  MonitorFixture fixture;
  NodeClient monitor{fixture.node, fixture.batch, 1};
  monitor.say("MONITOR");
  CHECK(without_times(monitor.say("PING")) == "+PONG\r\n" + shown(1, " \"PING\""));
  CHECK(monitor.say("MONITOR").empty());
  CHECK(monitor.say("GET a") == "-ERR Replica can't interact with the keyspace\r\n");
  CHECK(monitor.say("PUBLISH a b") == "-ERR Replica can't interact with the keyspace\r\n");
  CHECK(without_times(monitor.say("MULTI")) == "+OK\r\n" + shown(1, " \"MULTI\""));
  CHECK(monitor.say("PING") == "+QUEUED\r\n");
  CHECK(monitor.say("MONITOR") == "+QUEUED\r\n");
  CHECK(without_times(monitor.say("EXEC")) ==
        "*2\r\n+PONG\r\n-ERR MONITOR isn't allowed for DENY BLOCKING client\r\n" +
            shown(1, " \"PING\"") + shown(1, " \"EXEC\""));
}

TEST_CASE("monitor: one that goes leaves the node as it was", "[net][monitor]") {
  MonitorFixture fixture;
  {
    NodeClient monitor{fixture.node, fixture.batch, 1};
    monitor.say("MONITOR");
    CHECK(fixture.node.monitors.any());
  }
  CHECK_FALSE(fixture.node.monitors.any());
  NodeClient client{fixture.node, fixture.batch, 2};
  CHECK(client.say("SET a 1") == "+OK\r\n");
}

}  // namespace semel::tests
