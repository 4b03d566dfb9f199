// Scripts that take long: they yield, the others answer BUSY, and they can be killed.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include "tests/support/catch.hpp"

#include "net/node/connection.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

constexpr std::string_view busy =
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";
constexpr std::string_view busy_function =
    "-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.\r\n";
const std::string endless = "while true do end";

/// A connection whose host serves others meanwhile.
class Served final : net::ClientHost {
 public:
  Served(net::Node& node, net::Batch& batch)
      : connection(node, batch, this, {.id = node.next_client_id()}) {}
  std::string say(const Words& words) {
    std::string out;
    connection.receive(request_bytes(words), out);
    return out;
  }
  /// One turn, if it has asked for one.
  std::string turn() {
    std::string out;
    // mo: relaxed: collect() takes the lock under which it was set
    if (woken_.exchange(false, std::memory_order_relaxed)) connection.collect(out);
    return out;
  }

 private:
  void wake() noexcept override {
    woken_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in turn()
  }
  [[nodiscard]] bool serves_others() const noexcept override { return true; }
  std::atomic<bool> woken_{false};

 public:
  net::Connection connection;
};

struct Busy {
  Busy() {
    // Each look at the time is a millisecond: scripts soon take long.
    node.ticks.step_ns = 1'000'000;
    static_cast<void>(a.say({"CONFIG", "SET", "busy-reply-threshold", "50"}));
  }
  Conversation node{0};
  Served a{node.node, node.batch};
  Served b{node.node, node.batch};
};

}  // namespace

TEST_CASE("busy: others get BUSY while a script yields, and it can be killed", "[net][script]") {
  Busy both;
  CHECK(both.a.say({"EVAL", endless, "0"}).empty());
  CHECK(both.a.connection.waits());
  CHECK(both.a.connection.works());
  for (int i = 0; i < 10; ++i) {
    CHECK(both.b.say({"PING"}) == busy);
    CHECK(both.b.say({"GET", "k"}) == busy);
    CHECK(both.a.turn().empty());
  }
  CHECK(both.b.say({"nosuch"}).starts_with("-ERR unknown command"));
  CHECK(both.b.say({"EVAL", "return 1", "0"}) == busy);
  CHECK(both.b.say({"SHUTDOWN"}) == busy);
  CHECK(both.b.say({"WATCH", "k"}) == "+OK\r\n");  // the script holds no key
  CHECK(both.b.say({"MULTI"}) == "+OK\r\n");
  CHECK(both.b.say({"GET", "k"}) == busy);
  CHECK(both.b.say({"EXEC"}).starts_with("-EXECABORT Transaction discarded because of: BUSY"));
  CHECK(both.b.say({"FUNCTION", "KILL"}) == busy);
  CHECK(both.b.say({"FUNCTION", "STATS"}) == busy);
  CHECK(both.b.say({"SCRIPT", "KILL"}) == "+OK\r\n");
  const std::string end = both.a.turn();
  CHECK(end.starts_with("-ERR Script killed by user with SCRIPT KILL... script: "));
  CHECK_FALSE(both.a.connection.waits());
  CHECK(both.b.say({"PING"}) == "+PONG\r\n");
  CHECK(both.b.say({"SCRIPT", "KILL"}) == "-NOTBUSY No scripts in execution right now.\r\n");
  CHECK(both.a.say({"EVAL", "return 7", "0"}) == ":7\r\n");
}

TEST_CASE("busy: a script that has written goes on to its end", "[net][script]") {
  Busy both;
  static_cast<void>(both.a.say({"CONFIG", "SET", "busy-reply-threshold", "1"}));
  const std::string text =
      "redis.call('set', KEYS[1], 'begun') for i = 1, 3000000 do end "
      "redis.call('set', KEYS[1], 'done') return redis.call('get', KEYS[1])";
  std::string end = both.a.say({"EVAL", text, "1", "k"});
  bool was_busy = false;
  for (int i = 0; i < 100'000 && end.empty(); ++i) {
    const std::string reply = both.b.say({"SCRIPT", "KILL"});
    was_busy = was_busy || reply.starts_with("-UNKILLABLE Sorry the script already executed write");
    CHECK(both.b.say({"FUNCTION", "KILL"}) == reply);
    CHECK(both.b.say({"GET", "k"}) == busy);
    CHECK(both.b.say({"WATCH", "k"}) == busy);
    end = both.a.turn();
  }
  CHECK(was_busy);
  CHECK(end == "$4\r\ndone\r\n");
  CHECK(both.b.say({"GET", "k"}) == "$4\r\ndone\r\n");
}

TEST_CASE("busy: what a client sends behind a long script is answered behind it", "[net][script]") {
  Busy both;
  std::string out;
  both.a.connection.receive(request_bytes({"SET", "k", "1"}) +
                                request_bytes({"EVAL", endless, "0"}) + request_bytes({"GET", "k"}),
                            out);
  CHECK(out == "+OK\r\n");
  static_cast<void>(both.b.say({"SCRIPT", "KILL"}));
  out = both.a.turn();
  CHECK(out.starts_with("-ERR Script killed"));
  CHECK(out.ends_with("$1\r\n1\r\n"));
}

TEST_CASE("busy: a function is killed by its own command", "[net][script]") {
  Busy both;
  REQUIRE(both.a.say({"FUNCTION", "LOAD",
                      "#!lua name=l\nredis.register_function('turn', function() while true do end "
                      "end)"}) == "$1\r\nl\r\n");
  CHECK(both.a.say({"FCALL", "turn", "1", "k", "x"}).empty());
  CHECK(both.b.say({"PING"}) == busy_function);
  CHECK(both.b.say({"SCRIPT", "KILL"}) == busy_function);
  const std::string stats = both.b.say({"FUNCTION", "STATS"});
  CHECK(stats.find("$4\r\nname\r\n$4\r\nturn\r\n$7\r\ncommand\r\n*5\r\n$5\r\nFCALL\r\n") !=
        std::string::npos);
  CHECK(both.b.say({"FUNCTION", "KILL"}) == "+OK\r\n");
  CHECK(both.a.turn().starts_with("-ERR Script killed by user with SCRIPT KILL... script: turn"));
}

TEST_CASE("busy: a script that is not killed ends by itself", "[net][script]") {
  Busy both;
  static_cast<void>(both.a.say({"CONFIG", "SET", "script-time-max", "200"}));
  std::string end = both.a.say({"EVAL", endless, "0"});
  for (int i = 0; i < 1'000 && end.empty(); ++i) end = both.a.turn();
  CHECK(end.starts_with("-"));
  INFO(end);
  CHECK(both.b.say({"PING"}) == "+PONG\r\n");
}

TEST_CASE("busy: with a threshold of 0 no script is busy, and script-time-max ends it",
          "[net][script][once-again-19]") {
  for (const std::string name : {"busy-reply-threshold", "lua-time-limit"}) {
    INFO(name);
    Busy both;
    REQUIRE(both.a.say({"CONFIG", "SET", name, "0"}) == "+OK\r\n");
    REQUIRE(both.a.say({"CONFIG", "SET", "script-time-max", "200"}) == "+OK\r\n");
    const std::string end = both.a.say({"EVAL", "redis.call('set', 'k', '1') " + endless, "0"});
    CHECK(end.starts_with("-"));
    CHECK(end.find("script ran for too long") != std::string::npos);
    CHECK_FALSE(both.a.connection.waits());
    CHECK(both.b.say({"SCRIPT", "KILL"}) == "-NOTBUSY No scripts in execution right now.\r\n");
    // Less than 0 is refused, in the words of Redis.
    CHECK(both.a.say({"CONFIG", "SET", name, "-1"})
              .ends_with("argument must be between 0 and 9223372036854775807 inclusive\r\n"));
  }
}

TEST_CASE("busy: a connection that ends takes its script along", "[net][script]") {
  Busy both;
  auto third = std::make_unique<Served>(both.node.node, both.node.batch);
  CHECK(third->say({"EVAL", "redis.call('set', 'k', '1') " + endless, "0"}).empty());
  CHECK(both.b.say({"GET", "k"}) == busy);
  third.reset();
  CHECK(both.b.say({"GET", "k"}) == "$1\r\n1\r\n");
}

TEST_CASE("busy: in a transaction and in process a script does not yield", "[net][script]") {
  Busy both;
  static_cast<void>(both.a.say({"CONFIG", "SET", "script-time-max", "200"}));
  static_cast<void>(both.a.say({"MULTI"}));
  static_cast<void>(both.a.say({"EVAL", endless, "0"}));
  const std::string reply = both.a.say({"EXEC"});
  CHECK(reply.starts_with("*1\r\n-"));
  CHECK_FALSE(both.a.connection.waits());
  CHECK(both.b.say({"PING"}) == "+PONG\r\n");
}

TEST_CASE("busy: a long script is in the slow log with its whole time", "[net][script]") {
  Busy both;
  static_cast<void>(both.a.say({"CONFIG", "SET", "slowlog-log-slower-than", "40000"}));
  static_cast<void>(both.a.say({"SLOWLOG", "RESET"}));
  CHECK(both.a.say({"EVAL", endless, "0"}).empty());
  static_cast<void>(both.b.say({"SCRIPT", "KILL"}));
  static_cast<void>(both.a.turn());
  const std::string log = both.a.say({"SLOWLOG", "GET"});
  CHECK(log.find("$17\r\n" + endless + "\r\n") != std::string::npos);
}

TEST_CASE("busy: a call that waits inside the engine for a script's section returns",
          "[net][script][race]") {
  Conversation node{0};
  Served script{node.node, node.batch};
  static_cast<void>(script.say({"CONFIG", "SET", "busy-reply-threshold", "20"}));
  constexpr int rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    node.ticks.step_ns = 1'000'000;
    std::atomic<int> ended{0};
    std::atomic<bool> was_busy{false};
    const auto ask = [&](const Words& words) {
      net::Batch batch;
      Served other{node.node, batch};
      for (int i = 0; i < 1'000'000 && !was_busy.load(std::memory_order_relaxed); ++i) {
        const std::string reply = other.say(words);
        if (reply.starts_with("-BUSY") || reply.find("BUSY") != std::string::npos) {
          was_busy.store(true, std::memory_order_relaxed);
        }
      }
      ended.fetch_add(1, std::memory_order_release);
    };
    std::thread one{[&] { ask({"GET", "k"}); }};
    std::thread two{[&] { ask({"MGET", "k", "l"}); }};
    std::thread three{[&] { ask({"DBSIZE"}); }};
    std::string end = script.say({"EVAL", endless, "0"});
    while (ended.load(std::memory_order_acquire) < 3) end += script.turn();
    CHECK(end.empty());
    static_cast<void>(node.node.busy_scripts.kill(net::ScriptKind::script));
    while (end.empty()) end = script.turn();
    CHECK(end.starts_with("-ERR Script killed"));
    one.join();
    two.join();
    three.join();
    CHECK(was_busy.load(std::memory_order_relaxed));
  }
}

}  // namespace semel::tests
