// CLIENT among several connections: names, lists, ends, pauses and waits.
#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Keeps nothing, and answers waits when the test says so.
class SlowJournal final : public Journal {
 public:
  [[nodiscard]] Ticket append(std::span<const Mutation>) override { return ++last_; }
  [[nodiscard]] Status wait(Ticket, Durability) override { return Done{}; }
  [[nodiscard]] Ticket newest() const override { return last_; }
  void when(Ticket, Durability, Function<void(Status)> then) override {
    waiting.push_back(std::move(then));
  }
  std::vector<Function<void(Status)>> waiting;

 private:
  Ticket last_ = 0;
};

}  // namespace

TEST_CASE("clients: CLIENT LIST shows each connection in one line of Redis' form", "[net]") {
  Conversation nodes{2};
  static_cast<void>(nodes.call({"CLIENT", "SETNAME", "me"}));
  static_cast<void>(nodes.call({"CLIENT", "SETINFO", "lib-name", "jedis"}));
  static_cast<void>(nodes.call({"CLIENT", "SETINFO", "LIB-VER", "1.2"}));
  static_cast<void>(nodes.call({"SELECT", "3"}, 1));
  static_cast<void>(nodes.call({"MULTI"}, 1));
  static_cast<void>(nodes.call({"SET", "a", "b"}, 1));
  nodes.clock.advance(Millis{5'500});
  const std::string list = nodes.call({"CLIENT", "LIST"});
  CHECK(has(list,
            "id=1 addr=127.0.0.1:5000 laddr=127.0.0.1:6379 fd=-1 name=me age=5 idle=0 "
            "flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 "));
  CHECK(has(list,
            " events=r cmd=client|list user=default redir=-1 resp=2 lib-name=jedis "
            "lib-ver=1.2\n"));
  CHECK(has(list,
            "id=2 addr=127.0.0.1:5001 laddr=127.0.0.1:6379 fd=-1 name= age=5 idle=5 "
            "flags=x db=3 sub=0 psub=0 ssub=0 multi=1 "));
  CHECK(has(nodes.call({"CLIENT", "LIST", "ID", "2"}), "id=2 "));
  CHECK_FALSE(has(nodes.call({"CLIENT", "LIST", "ID", "2"}), "id=1 "));
  CHECK(has(nodes.call({"CLIENT", "INFO"}), "id=1 "));
}

TEST_CASE("clients: CLIENT SETINFO takes two names without blanks", "[net]") {
  Conversation node;
  CHECK(node.call({"CLIENT", "SETINFO", "lib-name", "a b"}) ==
        "-ERR lib-name cannot contain spaces, newlines or special characters.\r\n");
  CHECK(node.call({"CLIENT", "SETINFO", "other", "a"}) == "-ERR Unrecognized option 'other'\r\n");
  CHECK(node.call({"CLIENT", "SETINFO", "lib-name"}) ==
        "-ERR wrong number of arguments for 'client|setinfo' command\r\n");
}

TEST_CASE("clients: CLIENT KILL closes what meets all of its filters", "[net]") {
  Conversation node{3};
  static_cast<void>(node.call({"CLIENT", "KILL", "ADDR", "127.0.0.1:5001", "TYPE", "pubsub"}));
  static_cast<void>(node.collect(1));
  CHECK_FALSE(node.connections[1]->closes());
  CHECK(node.call({"CLIENT", "KILL", "ADDR", "127.0.0.1:5001", "TYPE", "normal"}) == ":1\r\n");
  static_cast<void>(node.collect(1));
  CHECK(node.connections[1]->closes());
  node.connections.erase(node.connections.begin() + 1);
  node.clock.advance(Millis{2'000});
  static_cast<void>(node.connect("127.0.0.1:6000"));
  CHECK(node.call({"CLIENT", "KILL", "MAXAGE", "3"}) == ":0\r\n");
  CHECK(node.call({"CLIENT", "KILL", "MAXAGE", "2"}) == ":1\r\n");  // not the youngest, not itself
  static_cast<void>(node.collect(1));
  static_cast<void>(node.collect(2));
  CHECK(node.connections[1]->closes());
  CHECK_FALSE(node.connections[2]->closes());
  CHECK(node.call({"CLIENT", "KILL", "127.0.0.1:5000"}) == "+OK\r\n");
  CHECK(node.connections[0]->closes());
}

TEST_CASE("clients: CLIENT REPLY OFF keeps silent until ON", "[net]") {
  Conversation node;
  CHECK(node.call({"CLIENT", "REPLY", "SKIP"}).empty());
  CHECK(node.call({"PING"}).empty());
  CHECK(node.call({"PING"}) == "+PONG\r\n");
  CHECK(node.call({"CLIENT", "REPLY", "OFF"}).empty());
  CHECK(node.call({"SET", "a", "b"}).empty());
  CHECK(node.call({"CLIENT", "REPLY", "SKIP"}).empty());
  CHECK(node.call({"PING"}).empty());
  CHECK(node.call({"PING"}).empty());
  CHECK(node.call({"CLIENT", "REPLY", "ON"}) == "+OK\r\n");
  CHECK(node.call({"GET", "a"}) == "$1\r\nb\r\n");
}

TEST_CASE("clients: a pause of writes holds back writes only, until its end", "[net]") {
  Conversation node{2};
  static_cast<void>(node.call({"SET", "k", "1"}));
  CHECK(node.call({"CLIENT", "PAUSE", "100", "WRITE"}) == "+OK\r\n");
  CHECK(node.call({"GET", "k"}, 1) == "$1\r\n1\r\n");
  CHECK(node.call({"INCR"}, 1) == "-ERR wrong number of arguments for 'incr' command\r\n");
  CHECK(node.call({"INCR", "k"}, 1).empty());
  CHECK(node.connections[1]->waits());
  CHECK(node.call({"GET", "k"}, 1).empty());  // behind it
  node.pass(Millis{99});
  CHECK(node.collect(1).empty());
  node.pass(Millis{1});
  CHECK(node.collect(1) == ":2\r\n$1\r\n2\r\n");
  CHECK_FALSE(node.connections[1]->waits());
}

TEST_CASE("clients: a pause of writes holds back an EXEC that writes, and UNPAUSE ends it",
          "[net]") {
  Conversation node{2};
  static_cast<void>(node.call({"MULTI"}, 1));
  static_cast<void>(node.call({"SET", "k", "1"}, 1));
  static_cast<void>(node.call({"CLIENT", "PAUSE", "100000", "WRITE"}));
  CHECK(node.call({"EXEC"}, 1).empty());
  CHECK(has(node.call({"CLIENT", "LIST", "ID", "2"}), " flags=xb "));
  CHECK(node.call({"CLIENT", "UNPAUSE"}) == "+OK\r\n");
  CHECK(node.collect(1) == "*1\r\n+OK\r\n");
}

TEST_CASE("clients: a pause of all holds back everything; the longer and wider one counts",
          "[net]") {
  Conversation node{2};
  static_cast<void>(node.call({"CLIENT", "PAUSE", "100", "WRITE"}));
  static_cast<void>(node.call({"CLIENT", "PAUSE", "10"}));
  CHECK(node.call({"PING"}, 1).empty());
  CHECK(node.call({"nothing"}, 0) ==
        "-ERR unknown command 'nothing', with args beginning with: \r\n");
  node.pass(Millis{50});
  CHECK(node.collect(1).empty());
  node.pass(Millis{50});
  CHECK(node.collect(1) == "+PONG\r\n");
}

TEST_CASE("clients: WAIT waits for its time, or until CLIENT UNBLOCK ends it", "[net]") {
  Conversation node{2};
  CHECK(node.call({"WAIT", "1", "50"}).empty());
  CHECK(node.connections[0]->waits());
  CHECK(node.call({"PING"}).empty());
  node.pass(Millis{49});
  CHECK(node.collect().empty());
  node.pass(Millis{1});
  CHECK(node.collect() == ":0\r\n+PONG\r\n");

  CHECK(node.call({"WAIT", "1", "0"}).empty());
  CHECK(node.node.deadlines.size() == 0);
  CHECK(node.call({"CLIENT", "UNBLOCK", "1"}, 1) == ":1\r\n");
  CHECK(node.call({"CLIENT", "UNBLOCK", "1"}, 1) == ":0\r\n");
  CHECK(node.collect() == ":0\r\n");
  CHECK(node.call({"WAIT", "1", "1000"}).empty());
  CHECK(node.call({"CLIENT", "UNBLOCK", "1", "ERROR"}, 1) == ":1\r\n");
  CHECK(node.collect() == "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
  CHECK(node.node.deadlines.size() == 0);

  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"WAIT", "1", "0"}));
  CHECK(node.call({"EXEC"}) == "*1\r\n:0\r\n");
}

TEST_CASE("clients: a wait whose reply is switched off ends without one", "[net]") {
  Conversation node;
  CHECK(node.call({"CLIENT", "REPLY", "SKIP"}).empty());
  CHECK(node.call({"WAIT", "1", "5"}).empty());
  CHECK(node.call({"PING"}).empty());
  node.pass(Millis{5});
  CHECK(node.collect() == "+PONG\r\n");
}

TEST_CASE("clients: a connection that ends while it waits leaves nothing behind", "[net]") {
  Conversation node{2};
  CHECK(node.call({"WAIT", "1", "50"}, 1).empty());
  CHECK(node.node.deadlines.size() == 1);
  node.connections.pop_back();
  CHECK(node.node.deadlines.size() == 0);
  CHECK(node.node.clients.size() == 1);
  node.pass(Millis{100});
}

TEST_CASE("clients: WAITAOF needs a journal for the own disk", "[net]") {
  Conversation node;
  CHECK(node.call({"WAITAOF", "1", "0", "0"}) ==
        "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n");
  CHECK(node.call({"WAITAOF", "0", "0", "0"}) == "*2\r\n:0\r\n:0\r\n");
  CHECK(node.call({"WAITAOF", "2", "0", "0"}) ==
        "-ERR value is out of range, must be positive\r\n");
  CHECK(node.call({"WAITAOF", "0", "1", "5"}).empty());
  node.pass(Millis{5});
  CHECK(node.collect() == "*2\r\n:0\r\n:0\r\n");
}

TEST_CASE("clients: SAVE and WAITAOF wait for the journal", "[net]") {
  SlowJournal journal;
  const auto engine = std::move(Engine::open({.journal = &journal}).value());
  net::Node node{*engine};
  node.facts.journals = true;
  REQUIRE(node.settings.assign(net::Setting::storage_enabled, "yes", {}).ok());
  REQUIRE(node.settings.assign(net::Setting::durability, "logged", {}).ok());
  net::Batch batch;
  net::Connection connection{node, batch, nullptr, {.id = 1}};
  const auto call = [&](const Words& words) {
    std::string reply;
    connection.receive(request_bytes(words), reply);
    return reply;
  };
  const auto collect = [&] {
    std::string reply;
    connection.collect(reply);
    return reply;
  };
  CHECK(call({"SET", "k", "v"}) == "+OK\r\n");
  CHECK(call({"SAVE"}).empty());
  CHECK(call({"WAITAOF", "1", "0", "0"}).empty());  // behind it
  CHECK(collect().empty());
  REQUIRE(journal.waiting.size() == 1);
  journal.waiting[0](Done{});
  CHECK(collect() == "+OK\r\n");
  REQUIRE(journal.waiting.size() == 2);
  journal.waiting[1](Error{ErrorCode::refused, {}});
  CHECK(collect() == "-MISCONF the journal cannot accept writes, nothing was changed\r\n");
  CHECK(call({"WAITAOF", "1", "0", "0"}).empty());
  journal.waiting[2](Done{});
  CHECK(collect() == "*2\r\n:1\r\n:0\r\n");
  CHECK(has(call({"INFO", "persistence"}), "aof_enabled:1"));
}

TEST_CASE("clients: RESET puts a connection back to how it began", "[net]") {
  Conversation node;
  static_cast<void>(node.call({"HELLO", "3", "SETNAME", "me"}));
  static_cast<void>(node.call({"SELECT", "5"}));
  static_cast<void>(node.call({"CLIENT", "NO-TOUCH", "ON"}));
  CHECK(has(node.call({"CLIENT", "INFO"}), " flags=T db=5 "));
  static_cast<void>(node.call({"WATCH", "k"}));
  static_cast<void>(node.call({"MULTI"}));
  CHECK(node.call({"RESET"}) == "+RESET\r\n");
  CHECK(node.call({"CLIENT", "GETNAME"}) == "$-1\r\n");
  CHECK(has(node.call({"CLIENT", "INFO"}), " flags=N db=0 "));
  CHECK(node.call({"EXEC"}) == "-ERR EXEC without MULTI\r\n");
}

TEST_CASE("clients: a deadline comes once, in order, and not after it was taken back", "[net]") {
  net::Deadlines deadlines;
  std::string order;
  const auto at = [](int ms) { return Timestamp{Millis{ms}}; };
  static_cast<void>(deadlines.add(at(20), [&] { order += 'b'; }));
  static_cast<void>(deadlines.add(at(10), [&] { order += 'a'; }));
  const auto taken_back = deadlines.add(at(15), [&] { order += 'x'; });
  static_cast<void>(deadlines.add(at(20), [&] { order += 'c'; }));
  CHECK(deadlines.next() == at(10));
  deadlines.cancel(taken_back);
  deadlines.cancel(taken_back);
  deadlines.poll(at(9));
  CHECK(order.empty());
  deadlines.poll(at(20));
  deadlines.poll(at(30));
  CHECK(order == "abc");
  CHECK_FALSE(deadlines.next());
}

TEST_CASE("clients: SHUTDOWN asks the host of the node, and DEBUG needs permission", "[net]") {
  Conversation node;
  CHECK(node.call({"SHUTDOWN"}) == "-ERR Errors trying to SHUTDOWN. Check logs.\r\n");
  bool asked = false;
  node.node.hooks.shutdown = [&] { asked = true; };
  REQUIRE(node.node.settings.assign(net::Setting::enable_debug_command, "local", {}).ok());
  CHECK(node.call({"DEBUG", "SLEEP", "0.02"}).empty());
  node.pass(Millis{20});
  CHECK(node.collect() == "+OK\r\n");
  CHECK(node.call({"DEBUG", "SLEEP", "x"}) == "+OK\r\n");
  CHECK(node.call({"DEBUG", "foo"}) ==
        "-ERR unknown subcommand or wrong number of arguments for 'foo'. Try DEBUG HELP.\r\n");
  CHECK(node.call({"SHUTDOWN", "NOSAVE", "NOW"}).empty());
  CHECK(asked);
  CHECK(node.connections[0]->closes());
}

TEST_CASE("clients: listing, pausing and killing do not disturb working clients", "[net][race]") {
  constexpr int rounds = 300;
  ManualClock clock;
  const auto engine = std::move(Engine::open({.clock = &clock}).value());
  net::Node node{*engine};
  std::atomic<int> working{2};
  const auto work = [&](std::uint64_t id) {
    net::Batch batch;
    for (int i = 0; i < rounds; ++i) {
      net::Connection connection{node, batch, nullptr, {.id = id, .address = "worker"}};
      std::string replies;
      connection.receive(request_bytes({"SET", "k", "v"}) + request_bytes({"GET", "k"}) +
                             request_bytes({"PING"}) + request_bytes({"nothing"}),
                         replies);
      connection.collect(replies);
    }
    working.fetch_sub(1, std::memory_order_release);
  };
  std::thread first{work, 2};
  std::thread second{work, 3};
  net::Batch batch;
  net::Connection watcher{node, batch, nullptr, {.id = 1, .address = "watcher"}};
  const std::vector<Words> steps{
      {"CLIENT", "LIST"},    {"CLIENT", "PAUSE", "1000", "WRITE"}, {"INFO", "everything"},
      {"CLIENT", "UNPAUSE"}, {"CLIENT", "KILL", "ADDR", "worker"}, {"LATENCY", "HISTOGRAM"}};
  while (working.load(std::memory_order_acquire) != 0) {
    for (const Words& step : steps) {
      std::string reply;
      watcher.receive(request_bytes(step), reply);
      REQUIRE_FALSE(reply.empty());
    }
    node.tick();
  }
  first.join();
  second.join();
  CHECK(node.clients.size() == 1);
  CHECK(node.stats.totals().connections == 2 * rounds + 1);
}

}  // namespace semel::tests
