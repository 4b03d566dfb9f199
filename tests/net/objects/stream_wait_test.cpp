// Clients that wait for entries of streams: who is answered, by which change, and with what.
#include <string>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

std::string wait_bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}
/// The reply of one stream with these entries, each of field f and value v.
std::string new_entries(const std::string& key, const std::vector<std::string>& ids) {
  std::string reply = "*1\r\n*2\r\n" + wait_bulk(key) + "*" + std::to_string(ids.size()) + "\r\n";
  for (const std::string& id : ids) {
    reply += "*2\r\n" + wait_bulk(id) + "*2\r\n" + wait_bulk("f") + wait_bulk("v");
  }
  return reply;
}

struct StreamNode : Conversation {
  using Conversation::Conversation;
  void add(const std::string& key, const std::string& id) {
    REQUIRE(call({"XADD", key, id, "f", "v"}) == wait_bulk(id));
  }
  /// A stream s with an entry 1-1 and a group g that has read it.
  void begin_group() {
    add("s", "1-1");
    REQUIRE(call({"XGROUP", "CREATE", "s", "g", "$"}) == "+OK\r\n");
  }
  std::string read_group(const std::string& consumer, std::size_t client) {
    return call({"XREADGROUP", "GROUP", "g", consumer, "BLOCK", "0", "STREAMS", "s", ">"}, client);
  }
};

constexpr const char* no_entries = "*-1\r\n";
constexpr const char* key_gone = "-UNBLOCKED the stream key no longer exists\r\n";
constexpr const char* group_gone =
    "-NOGROUP the consumer group this client was blocked on no longer exists\r\n";

}  // namespace

TEST_CASE("stream waits: all clients that wait get a new entry, each behind its own id",
          "[net][objects][streams][waits]") {
  StreamNode node{5};
  node.add("s", "1-1");
  CHECK(node.call({"XREAD", "BLOCK", "0", "STREAMS", "s", "$"}, 1).empty());
  CHECK(node.call({"XREAD", "BLOCK", "0", "STREAMS", "s", "5-0"}, 2).empty());
  CHECK(node.call({"XREAD", "BLOCK", "0", "STREAMS", "t", "s", "0", "$"}, 3).empty());
  CHECK(node.call({"XREAD", "BLOCK", "0", "STREAMS", "s", "0"}, 4) == new_entries("s", {"1-1"}));
  CHECK(node.call({"INFO", "clients"}).find("blocked_clients:3\r\n") != std::string::npos);
  node.add("s", "1-2");
  CHECK(node.collect(1) == new_entries("s", {"1-2"}));
  CHECK(node.collect(2).empty());
  CHECK(node.collect(3) == new_entries("s", {"1-2"}));
  node.add("s", "5-0");
  CHECK(node.collect(2).empty());
  node.add("s", "5-1");
  CHECK(node.collect(2) == new_entries("s", {"5-1"}));
  CHECK(node.collect(1).empty());
}

TEST_CASE("stream waits: the wait ends at its time, by UNBLOCK, and with its client",
          "[net][objects][streams][waits]") {
  StreamNode node{4};
  CHECK(node.call({"XREAD", "BLOCK", "100", "STREAMS", "s", "$"}, 1).empty());
  CHECK(node.call({"XREAD", "BLOCK", "0", "STREAMS", "s", "$"}, 2).empty());
  CHECK(node.call({"XREAD", "BLOCK", "0", "STREAMS", "s", "$"}, 3).empty());
  node.pass(Millis{99});
  CHECK(node.collect(1).empty());
  node.pass(Millis{1});
  CHECK(node.collect(1) == no_entries);
  node.connections.pop_back();
  node.pass(Millis{1'000'000});
  CHECK(node.collect(2).empty());
  const std::string id = std::to_string(node.connections[2]->client().handle->origin.id);
  CHECK(node.call({"CLIENT", "UNBLOCK", id}) == ":1\r\n");
  CHECK(node.collect(2) == no_entries);
  CHECK(node.call({"INFO", "clients"}).find("blocked_clients:0\r\n") != std::string::npos);
  node.add("s", "1-1");
}

TEST_CASE("stream waits: a transaction is finished before, and does not wait itself",
          "[net][objects][streams][waits]") {
  StreamNode node{2};
  node.begin_group();
  CHECK(node.call({"XREAD", "COUNT", "1", "BLOCK", "0", "STREAMS", "s", "$"}, 1).empty());
  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"XADD", "s", "2-1", "f", "v"}));
  static_cast<void>(node.call({"XADD", "s", "2-2", "f", "v"}));
  static_cast<void>(node.call({"XREAD", "BLOCK", "0", "STREAMS", "s", "$"}));
  static_cast<void>(
      node.call({"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"}));
  static_cast<void>(
      node.call({"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"}));
  CHECK(node.call({"EXEC"}) == "*5\r\n" + wait_bulk("2-1") + wait_bulk("2-2") + no_entries +
                                   new_entries("s", {"2-1", "2-2"}) + no_entries);
  CHECK(node.collect(1) == new_entries("s", {"2-1"}));
  CHECK(node.call({"XREAD", "BLOCK", "0", "STREAMS", "s", "$"}, 1).empty());
  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"XADD", "s", "3-1", "f", "v"}));
  static_cast<void>(node.call({"XDEL", "s", "3-1"}));
  static_cast<void>(node.call({"EXEC"}));
  CHECK(node.collect(1) == new_entries("s", {}));  // as in redis-server
  CHECK(node.call({"EVAL", "return redis.call('xread', 'block', '0', 'streams', 's', '$')", "0"})
            .starts_with("-ERR xread command is not allowed with BLOCK option from scripts"));
}

TEST_CASE("stream waits: what is new in a group goes to the consumer that waits longest",
          "[net][objects][streams][waits]") {
  StreamNode node{3};
  node.begin_group();
  CHECK(node.read_group("a", 1).empty());
  CHECK(node.read_group("b", 2).empty());
  node.add("s", "1-2");
  CHECK(node.collect(1) == new_entries("s", {"1-2"}));
  CHECK(node.collect(2).empty());
  node.add("s", "1-3");
  CHECK(node.collect(2) == new_entries("s", {"1-3"}));
  CHECK(node.call({"XPENDING", "s", "g"}) == "*4\r\n:2\r\n" + wait_bulk("1-2") + wait_bulk("1-3") +
                                                 "*2\r\n*2\r\n" + wait_bulk("a") + wait_bulk("1") +
                                                 "*2\r\n" + wait_bulk("b") + wait_bulk("1"));
}

TEST_CASE("stream waits: a key or a group that goes ends the waits of the group",
          "[net][objects][streams][waits]") {
  const std::vector<std::pair<Words, std::string>> changes{
      {{"DEL", "s"}, key_gone},
      {{"SET", "s", "x"}, key_gone},
      {{"RENAME", "s", "t"}, key_gone},
      {{"RENAME", "other", "s"}, group_gone},
      {{"FLUSHALL"}, key_gone},
      {{"SWAPDB", "0", "1"}, key_gone},
      {{"XGROUP", "DESTROY", "s", "g"}, group_gone}};
  for (const auto& [change, reply] : changes) {
    INFO(change[0]);
    StreamNode node{3};
    node.begin_group();
    node.add("other", "7-7");
    CHECK(node.read_group("a", 1).empty());
    CHECK(node.call({"XREAD", "BLOCK", "0", "STREAMS", "s", "$"}, 2).empty());
    static_cast<void>(node.call(change));
    CHECK(node.collect(1) == reply);
    CHECK(node.collect(2) == (change[0] == "RENAME" && change[1] == "other"
                                  ? new_entries("s", {"7-7"})
                                  : std::string{}));
  }
}

TEST_CASE("stream waits: an expired key ends the waits of the group",
          "[net][objects][streams][waits]") {
  StreamNode node{2};
  node.begin_group();
  static_cast<void>(node.call({"PEXPIRE", "s", "500"}));
  CHECK(node.read_group("a", 1).empty());
  node.pass(Millis{499});
  CHECK(node.collect(1).empty());
  node.pass(Millis{10});
  CHECK(node.collect(1) == key_gone);
}

TEST_CASE("stream waits: a client that has gone gets nothing, and what it got stays pending",
          "[net][objects][streams][waits]") {
  StreamNode node{2};
  node.begin_group();
  CHECK(node.read_group("a", 1).empty());
  node.connections.pop_back();
  node.add("s", "1-2");
  CHECK(node.call({"XPENDING", "s", "g"}).starts_with("*4\r\n:0\r\n"));
}

TEST_CASE("stream waits: another kind wakes no XREAD", "[net][objects][streams][waits]") {
  StreamNode node{2};
  CHECK(node.call({"XREAD", "BLOCK", "0", "STREAMS", "s", "0"}, 1).empty());
  static_cast<void>(node.call({"SET", "s", "x"}));
  static_cast<void>(node.call({"DEL", "s"}));
  static_cast<void>(node.call({"SADD", "s", "x"}));
  CHECK(node.collect(1).empty());
  static_cast<void>(node.call({"DEL", "s"}));
  node.add("s", "1-1");
  CHECK(node.collect(1) == new_entries("s", {"1-1"}));
}

}  // namespace semel::tests
