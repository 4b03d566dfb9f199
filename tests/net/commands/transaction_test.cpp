// MULTI, EXEC, DISCARD, WATCH, where a redis-server cannot show what is right.
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/node/connection.hpp"
#include "semel/memory_journal.hpp"
#include "semel/semel.hpp"
#include "tests/support/resp.hpp"

namespace semel::tests {
namespace {

/// An engine, its node and some connections.
struct TransactionFixture {
  explicit TransactionFixture(std::size_t clients, const Options& options = {})
      : engine(std::move(Engine::open(options).value())), node(*engine) {
    for (std::size_t i = 0; i < clients; ++i) {
      connections.push_back(std::make_unique<net::Connection>(
          node, batch, nullptr, net::ClientHandle::Origin{.id = i + 1}));
    }
  }
  std::string call(std::size_t client, const Words& words) {
    return talk(client, request_bytes(words));
  }
  std::string talk(std::size_t client, const std::string& bytes) {
    std::string reply;
    connections[client]->receive(bytes, reply);
    return reply;
  }
  std::unique_ptr<Engine> engine;
  net::Node node;
  net::Batch batch;
  std::vector<std::unique_ptr<net::Connection>> connections;
};

}  // namespace

TEST_CASE("transactions: one group leaves for the journal", "[net]") {
  MemoryJournal journal;
  TransactionFixture fixture{1, {.journal = &journal}};
  const Ticket before = journal.newest();
  std::string bytes = request_bytes({"MULTI"});
  for (int i = 0; i < 20; ++i) bytes += request_bytes({"SET", "k" + std::to_string(i), "v"});
  const std::string reply = fixture.talk(0, bytes + request_bytes({"EXEC"}));
  CHECK(reply.ends_with("*20\r\n" + [] {
    std::string all;
    for (int i = 0; i < 20; ++i) all += "+OK\r\n";
    return all;
  }()));
  CHECK(journal.newest() == before + 1);
}

TEST_CASE("transactions: EXEC does not run when a watched key has ended", "[net]") {
  ManualClock clock;
  TransactionFixture fixture{1, {.clock = &clock}};
  static_cast<void>(fixture.call(0, {"SET", "k", "v", "PX", "10"}));
  CHECK(fixture.call(0, {"WATCH", "k"}) == "+OK\r\n");
  static_cast<void>(fixture.call(0, {"MULTI"}));
  clock.advance(Millis{10});
  CHECK(fixture.call(0, {"EXEC"}) == "*-1\r\n");
}

TEST_CASE("transactions: a watched key that was absent came and went", "[net]") {
  TransactionFixture fixture{2};
  CHECK(fixture.call(0, {"WATCH", "k"}) == "+OK\r\n");
  static_cast<void>(fixture.talk(
      1, request_bytes({"SET", "k", "v"}) + request_bytes({"PING"}) + request_bytes({"DEL", "k"})));
  static_cast<void>(fixture.call(0, {"MULTI"}));
  CHECK(fixture.call(0, {"EXEC"}) == "*-1\r\n");
}

TEST_CASE("transactions: what is queued has a bound", "[net]") {
  TransactionFixture fixture{1};
  static_cast<void>(fixture.call(0, {"MULTI"}));
  const std::string value(1'000'000, 'v');
  std::string reply;
  int queued = 0;
  while ((reply = fixture.call(0, {"SET", "k", value})) == "+QUEUED\r\n" && queued < 100) ++queued;
  CHECK(queued == 67);  // 64 MiB of commands of a million bytes
  CHECK(reply == "-ERR a transaction is limited to 67108864 bytes\r\n");
  CHECK(fixture.call(0, {"EXEC"}) ==
        "-EXECABORT Transaction discarded because of previous errors.\r\n");
}

TEST_CASE("transactions: two threads move between two keys and never lose one", "[net][race]") {
  TransactionFixture fixture{0};
  static_cast<void>(fixture.engine->store().set("a", "1000"));
  static_cast<void>(fixture.engine->store().set("b", "0"));
  const auto work = [&](std::uint64_t id) {
    net::Batch batch;
    net::Connection connection{fixture.node, batch, nullptr, {.id = id}};
    for (int i = 0; i < 300; ++i) {
      std::string reply;
      connection.receive(request_bytes({"MULTI"}) + request_bytes({"DECR", "a"}) +
                             request_bytes({"INCR", "b"}) + request_bytes({"EXEC"}) +
                             request_bytes({"MGET", "a", "b"}),
                         reply);
    }
  };
  std::thread other{work, 1};
  work(2);
  other.join();
  CHECK(**fixture.engine->store().get("a") == "400");
  CHECK(**fixture.engine->store().get("b") == "600");
}

TEST_CASE("transactions: WATCH makes a read and a write one step", "[net][race]") {
  TransactionFixture fixture{0};
  static_cast<void>(fixture.engine->store().set("n", "0"));
  const auto work = [&](std::uint64_t id) {
    net::Batch batch;
    net::Connection connection{fixture.node, batch, nullptr, {.id = id}};
    for (int done = 0; done < 100;) {
      std::string read;
      connection.receive(request_bytes({"WATCH", "n"}) + request_bytes({"GET", "n"}), read);
      const std::size_t at = read.find("\r\n", 5) + 2;
      const long next = std::stol(read.substr(at)) + 1;
      std::string reply;
      connection.receive(request_bytes({"MULTI"}) +
                             request_bytes({"SET", "n", std::to_string(next)}) +
                             request_bytes({"EXEC"}),
                         reply);
      if (reply.ends_with("*1\r\n+OK\r\n")) ++done;
    }
  };
  std::thread other{work, 1};
  work(2);
  other.join();
  CHECK(**fixture.engine->store().get("n") == "200");
}

TEST_CASE("transactions: a client adds to the keys it watches while others change them",
          "[net][transaction][race][attack][fault-1]") {
  // Other threads used to walk through the keys of a watcher that was adding to them.
  constexpr int key_count = 300;
  TransactionFixture fixture{0};
  Words watched{"WATCH"};
  for (int i = 0; i < key_count; ++i) watched.push_back("key:" + std::to_string(i));
  const auto talk = [&](std::uint64_t id, const std::string& bytes, int rounds) {
    net::Batch batch;
    net::Connection connection{fixture.node, batch, nullptr, {.id = id}};
    for (int i = 0; i < rounds; ++i) {
      std::string replies;
      connection.receive(bytes, replies);
    }
  };
  const std::string watches = request_bytes(watched) + request_bytes({"UNWATCH"}) +
                              request_bytes(watched) + request_bytes({"MULTI"}) +
                              request_bytes({"GET", "key:7"}) + request_bytes({"EXEC"});
  std::string writes;
  for (int i = 0; i < 20; ++i) {
    const std::string key = "key:" + std::to_string(i % 3);
    writes += request_bytes({"SET", key, "v"}) + request_bytes({"DEL", key}) +
              request_bytes({"EVAL", "return redis.call('SET', KEYS[1], 'w')", "1", key});
  }
  writes += request_bytes({"FLUSHALL"}) + request_bytes({"SWAPDB", "0", "1"});
  std::vector<std::thread> threads;
  threads.emplace_back(talk, 1, watches, 20);
  threads.emplace_back(talk, 2, watches, 20);
  threads.emplace_back(talk, 3, writes, 60);
  talk(4, writes, 60);
  for (std::thread& each : threads) each.join();
  CHECK_FALSE(fixture.node.watches.any());
}

TEST_CASE("transactions: a watcher sees a change whenever its key was added",
          "[net][transaction][attack][fault-1]") {
  const std::size_t at = GENERATE(0U, 1U, 63U, 64U, 299U);  // where a vector has just grown
  TransactionFixture fixture{2};
  Words watched{"WATCH"};
  for (int i = 0; i < 300; ++i) watched.push_back("key:" + std::to_string(i));
  CHECK(fixture.call(0, watched) == "+OK\r\n");
  CHECK(fixture.call(0, {"WATCH", watched[at + 1]}) == "+OK\r\n");  // once more changes nothing
  CHECK(fixture.call(1, {"SET", watched[at + 1], "v"}) == "+OK\r\n");
  CHECK(fixture.call(1, {"DEL", watched[at + 1]}) == ":1\r\n");
  CHECK(fixture.talk(0, "MULTI\r\nPING\r\nEXEC\r\n") == "+OK\r\n+QUEUED\r\n*-1\r\n");
  CHECK_FALSE(fixture.node.watches.any());
}

TEST_CASE("transactions: a client watches so many keys and no more",
          "[net][transaction][attack][fault-1]") {
  TransactionFixture fixture{1};
  Words watched{"WATCH"};
  for (std::size_t i = 0; i < net::Watches::keys_max; ++i) watched.push_back(std::to_string(i));
  CHECK(fixture.call(0, watched) == "+OK\r\n");
  CHECK(fixture.call(0, {"WATCH", "one more"}) ==
        "-ERR a client would watch 65537 keys, the limit is 65536\r\n");
  CHECK(fixture.call(0, {"UNWATCH"}) == "+OK\r\n");
  CHECK(fixture.call(0, {"WATCH", "one more"}) == "+OK\r\n");
}

namespace {

/// A millisecond later with each reading.
class TickingClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const noexcept override { return Timestamp{Millis{++ms_}}; }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override { return 1'000'000 + ++ms_; }

 private:
  mutable std::int64_t ms_ = 1'000;
};

}  // namespace

TEST_CASE("transactions: EXPIRE 0 ends a key at once, though time stands still",
          "[net][transaction]") {
  TickingClock clock;
  auto engine = Engine::open({.clock = &clock});
  REQUIRE(engine);
  net::Node node{**engine};
  net::Batch batch;
  net::Connection connection{node, batch, nullptr, {.id = 1}};
  std::string replies;
  for (const char* const command : {"EXPIRE k 0", "PEXPIRE k 0"}) {
    replies.clear();
    connection.receive(
        "SET k 1\r\nMULTI\r\nEXPIRE k 100\r\n" + std::string{command} + "\r\nGET k\r\nEXEC\r\n",
        replies);
    CHECK(replies == "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n:1\r\n$-1\r\n");
  }
}

}  // namespace semel::tests
