// What a node says of itself, of its commands and of its clients, beside a redis-server.
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/commands/command_docs.hpp"
#include "net/settings/settings.hpp"
#include "tests/net/conversation.hpp"
#include "tests/net/differential/beside.hpp"
#include "tests/net/node_client.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/redis_or_skip.hpp"

namespace semel::tests {
namespace {

/// In order; each is answered the same, byte for byte.
const std::vector<Words> requests{
    {"CLIENT", "GETNAME"},
    {"CLIENT", "SETNAME", "a b"},
    {"CLIENT", "SETNAME", "ab"},
    {"CLIENT", "GETNAME"},
    {"CLIENT", "SETNAME", ""},
    {"CLIENT", "GETNAME"},
    {"CLIENT", "LIST", "TYPE", "foo"},
    {"CLIENT", "LIST", "TYPE", "pubsub"},
    {"CLIENT", "LIST", "TYPE", "master"},
    {"CLIENT", "LIST", "TYPE", "slave"},
    {"CLIENT", "LIST", "ID", "3", "x"},
    {"CLIENT", "LIST", "ID"},
    {"CLIENT", "LIST", "ID", "99"},
    {"CLIENT", "LIST", "foo"},
    {"CLIENT", "LIST", "TYPE"},
    {"CLIENT", "KILL", "1.1.1.1:1"},
    {"CLIENT", "KILL", "ID", "x"},
    {"CLIENT", "KILL", "ID", "0"},
    {"CLIENT", "KILL", "ID", "999"},
    {"CLIENT", "KILL", "ID", "99", "TYPE", "foo"},
    {"CLIENT", "KILL", "USER", "nobody"},
    {"CLIENT", "KILL", "ADDR"},
    {"CLIENT", "KILL", "SKIPME", "maybe", "ID", "99"},
    {"CLIENT", "KILL", "ID", "999", "SKIPME"},
    {"CLIENT", "KILL", "FOO", "3"},
    {"CLIENT", "KILL", "LADDR", "1.1.1.1:3"},
    {"CLIENT", "KILL", "TYPE", "master"},
    {"CLIENT", "REPLY", "foo"},
    {"CLIENT", "REPLY", "on"},
    {"CLIENT", "NO-EVICT", "foo"},
    {"CLIENT", "NO-EVICT", "on"},
    {"CLIENT", "NO-EVICT", "off"},
    {"CLIENT", "PAUSE", "x"},
    {"CLIENT", "PAUSE", "-1"},
    {"CLIENT", "PAUSE", "99999999999999999999"},
    {"CLIENT", "PAUSE", "1", "foo"},
    {"CLIENT", "PAUSE", "1", "foo", "bar"},
    {"CLIENT", "PAUSE", "0"},
    {"CLIENT", "PAUSE", "0", "write"},
    {"CLIENT", "UNPAUSE"},
    {"CLIENT", "UNBLOCK", "x"},
    {"CLIENT", "UNBLOCK", "99"},
    {"CLIENT", "UNBLOCK", "3", "foo"},
    {"CLIENT", "UNBLOCK", "3", "error", "foo"},
    {"CLIENT", "GETREDIR"},
    {"CLIENT", "TRACKINGINFO"},
    {"CLIENT", "TRACKING", "off"},
    {"CLIENT", "TRACKING", "foo"},
    {"CLIENT", "CACHING", "yes"},
    {"CLIENT", "foo"},
    {"CLIENT", "MAINT_NOTIFICATIONS", "ON"},
    {"CLIENT"},
    {"CLIENT", "GETNAME", "x"},
    {"SCAN", "x"},
    {"SCAN", " 1"},
    {"SCAN", "1 "},
    {"SCAN", "99999999999999999999999"},
    {"SCAN", "0", "MATCH"},
    {"SCAN", "0", "COUNT", "x"},
    {"SCAN", "0", "COUNT", "0"},
    {"SCAN", "0", "foo", "bar"},
    {"SCAN", "0", "TYPE", "foo", "COUNT", "0"},
    {"SCAN", "0", "COUNT", "99999999999999999999"},
    {"SET", "number", "12345"},
    {"SET", "short", "v"},
    {"SET", "edge", std::string(44, 'x')},
    {"SET", "long", std::string(45, 'x')},
    {"SET", "like", "0012"},
    {"SET", "wide", "123456789012345678901"},
    {"SCAN", "0", "COUNT", "1000", "MATCH", "number"},
    {"SCAN", "0", "COUNT", "1000", "MATCH", "n?mber", "TYPE", "string"},
    {"SCAN", "0", "COUNT", "1000", "TYPE", "hash"},
    {"OBJECT", "ENCODING", "number"},
    {"OBJECT", "ENCODING", "short"},
    {"OBJECT", "ENCODING", "edge"},
    {"OBJECT", "ENCODING", "long"},
    {"OBJECT", "ENCODING", "like"},
    {"OBJECT", "ENCODING", "wide"},
    {"OBJECT", "ENCODING", "none"},
    {"OBJECT", "REFCOUNT", "short"},
    {"OBJECT", "REFCOUNT", "none"},
    {"OBJECT", "IDLETIME", "short"},
    {"OBJECT", "IDLETIME", "none"},
    {"OBJECT", "FREQ", "short"},
    {"OBJECT", "FREQ", "none"},
    {"OBJECT", "foo"},
    {"OBJECT", "HELP", "x"},
    {"OBJECT", "ENCODING"},
    {"ROLE"},
    {"WAIT", "0", "10"},
    {"WAIT", "-1", "0"},
    {"WAIT", "x", "10"},
    {"WAIT", "0", "x"},
    {"WAIT", "0", "-1"},
    {"LOLWUT", "VERSION", "x"},
    {"MEMORY", "USAGE", "none"},
    {"MEMORY", "USAGE", "short", "SAMPLES", "x"},
    {"MEMORY", "USAGE", "short", "SAMPLES", "-1"},
    {"MEMORY", "USAGE", "short", "SAMPLES"},
    {"MEMORY", "USAGE", "short", "foo"},
    {"MEMORY", "PURGE"},
    {"DEBUG", "SLEEP", "0"},
    {"SHUTDOWN", "foo"},
    {"SHUTDOWN", "ABORT"},
    {"SHUTDOWN", "ABORT", "NOW"},
    {"SHUTDOWN", "SAVE", "NOSAVE"},
    {"BGSAVE", "foo"},
    {"REPLICAOF", "NO", "ONE"},
    {"SLAVEOF", "no", "one"},
    {"REPLICAOF", "a", "b"},
    {"READONLY"},
    {"READWRITE"},
    {"ASKING"},
    {"CLUSTER", "INFO"},
    {"CLUSTER", "KEYSLOT", "foo"},
    {"CLUSTER", "NODES"},
    {"CLUSTER", "SLOTS"},
    {"CLUSTER", "HELP"},
    {"CLUSTER", "foo"},
    {"CLUSTER"},
    {"FUNCTION", "FLUSH"},
    {"FUNCTION", "FLUSH", "foo"},
    {"FUNCTION", "FLUSH", "async"},
    {"FUNCTION", "LIST"},
    {"FUNCTION", "LIST", "foo"},
    {"FUNCTION", "LIST", "LIBRARYNAME"},
    {"FUNCTION", "LIST", "LIBRARYNAME", "x", "WITHCODE"},
    {"FUNCTION", "STATS"},
    {"FUNCTION", "DELETE", "x"},
    {"FUNCTION", "KILL"},
    {"SLOWLOG", "GET"},
    {"SLOWLOG", "GET", "x"},
    {"SLOWLOG", "GET", "-2"},
    {"SLOWLOG", "GET", "-1"},
    {"SLOWLOG", "GET", "1", "2"},
    {"SLOWLOG", "LEN"},
    {"SLOWLOG", "RESET"},
    {"LATENCY", "LATEST"},
    {"LATENCY", "HISTORY", "command"},
    {"LATENCY", "HISTORY"},
    {"LATENCY", "RESET"},
    {"LATENCY", "RESET", "foo"},
    {"LATENCY", "GRAPH", "foo"},
    {"LATENCY", "HISTOGRAM", "foo"},
    {"COMMAND", "INFO", "foo"},
    {"COMMAND", "DOCS", "foo"},
    {"COMMAND", "LIST", "FILTERBY", "MODULE", "x"},
    {"COMMAND", "LIST", "FILTERBY", "ACLCAT", "foo"},
    {"COMMAND", "LIST", "FILTERBY", "PATTERN", "GETS*"},
    {"COMMAND", "LIST", "FILTERBY", "foo", "x"},
    {"COMMAND", "LIST", "FILTERBY"},
    {"COMMAND", "LIST", "foo"},
    {"COMMAND", "GETKEYS", "get"},
    {"COMMAND", "GETKEYS", "get", "a"},
    {"COMMAND", "GETKEYS", "get", "a", "b"},
    {"COMMAND", "GETKEYS", "mset", "a", "b", "c", "d"},
    {"COMMAND", "GETKEYS", "mset", "a", "b", "c"},
    {"COMMAND", "GETKEYS", "ping", "a"},
    {"COMMAND", "GETKEYS", "foo", "a"},
    {"COMMAND", "GETKEYS", "object", "encoding", "x"},
    {"COMMAND", "GETKEYS", "object", "help"},
    {"COMMAND", "GETKEYS", "memory", "usage", "x"},
    {"COMMAND", "GETKEYS", "client", "foo"},
    {"COMMAND", "GETKEYSANDFLAGS", "set", "a", "b"},
    {"COMMAND", "GETKEYSANDFLAGS", "set", "a", "b", "EX", "10", "GET"},
    {"COMMAND", "GETKEYSANDFLAGS", "rename", "a", "b"},
    {"COMMAND", "GETKEYSANDFLAGS", "mset", "a", "b", "c", "d"},
    {"COMMAND", "GETKEYSANDFLAGS", "del", "a", "b"},
    {"COMMAND", "foo"},
    {"INFO", "foo"},
    {"INFO", "cluster"},
    {"INFO", "CLUSTER", "modules"},
    {"INFO", "keyspace"},
    {"RESET"}};

/// What stands before the first subcommand: of those the order is not said.
const std::vector<Words> debug_requests{
    {"SET", "short", "v"},
    {"DEBUG", "DIGEST-VALUE", "none", "none"},
    {"DEBUG", "SLEEP", "-1"},
    {"DEBUG", "SLEEP"},
    {"DEBUG", "JMAP"},
    {"DEBUG", "DIGEST-VALUE"},
    {"DEBUG", "DIGEST-VALUE", "none"},
    {"DEBUG", "DIGEST", "0"},
    {"DEBUG", "PROTOCOL", "string"},
    {"DEBUG", "PROTOCOL", "double"},
    {"DEBUG", "PROTOCOL", "null"},
    {"DEBUG", "PROTOCOL", "map"},
    {"DEBUG", "PROTOCOL", "set"},
    {"DEBUG", "PROTOCOL", "attrib"},
    {"DEBUG", "PROTOCOL", "push"},
    {"DEBUG", "PROTOCOL", "verbatim"},
    {"DEBUG", "PROTOCOL", "true"},
    {"DEBUG", "PROTOCOL", "bignum"},
    {"DEBUG", "PROTOCOL", "foo"},
    {"DEBUG", "ERROR", "BAD\r\n+OK"},
    {"DEBUG", "ERROR", ""},
    {"DEBUG", "QUICKLIST-PACKED-THRESHOLD", "4293918720"},
    {"DEBUG", "QUICKLIST-PACKED-THRESHOLD", "4293918721"},
    {"DEBUG", "QUICKLIST-PACKED-THRESHOLD", "-1"},
    {"DEBUG", "QUICKLIST-PACKED-THRESHOLD", "0"},
    {"DEBUG", "REPLYBUFFER", "PEAK-RESET-TIME", "x"},
    {"DEBUG", "REPLYBUFFER", "PEAK-RESET-TIME", "reset"},
    {"DEBUG", "REPLYBUFFER", "foo", "1"},
    {"DEBUG", "LISTPACK", "none"},
    {"DEBUG", "LISTPACK", "short"},
    {"DEBUG", "HTSTATS-KEY", "none"},
    {"DEBUG", "HTSTATS-KEY", "short"},
    {"DEBUG", "RELOAD", "foo"},
    {"DEBUG", "CHANGE-REPL-ID", "x"},
    {"DEBUG", "CHANGE-REPL-ID"},
    {"DEBUG", "HELP", "x"},
};

std::string without_subcommands(const std::string& reply, const std::string& name) {
  const std::size_t sub = reply.find(name + "|");
  if (sub == std::string::npos) return reply;
  // *count, *10, $length
  std::size_t at = sub;
  for (int line = 0; line < 4; ++line) at = reply.rfind("\r\n", at - 1);
  return reply.substr(0, at);
}

/// Key specifications without their notes, which are sentences.
std::string without_notes(std::string reply) {
  constexpr std::string_view head = "$5\r\nnotes\r\n";
  for (std::size_t at = reply.find(head); at != std::string::npos; at = reply.find(head)) {
    const std::size_t text = reply.find("\r\n", at + head.size()) + 2;
    reply.erase(at, reply.find("\r\n", text) + 2 - at);
    const bool is_map = reply[at - 4] == '%';
    reply[at - 3] = is_map ? '3' : '6';
  }
  return reply;
}

bool is_newer(const net::CommandRow& row) {
  return row.since.substr(0, 3) >= "7.2";
}

}  // namespace

TEST_CASE("administration: a redis-server answers the same, byte for byte", "[net][redis]") {
  play_beside(requests);
}

TEST_CASE("administration: DEBUG, byte for byte where it is allowed", "[net][redis]") {
  const auto server = redis_or_skip({"--enable-debug-command", "yes"});
  if (!server) return;
  for (const char* dialect : {"2", "3"}) {
    RedisClient theirs{server->socket_path()};
    static_cast<void>(theirs.say({"HELLO", dialect}, false));
    Conversation ours;
    REQUIRE(ours.node.settings.assign(net::Setting::enable_debug_command, "yes", {}).ok());
    static_cast<void>(ours.call({"HELLO", dialect}));
    for (const Words& words : debug_requests) {
      INFO("RESP" << dialect << ": " << words.back());
      CHECK(ours.call(words) == theirs.say(words, false));
    }
  }
}

TEST_CASE("administration: COMMAND INFO of each command is that of a redis-server",
          "[net][redis]") {
  const auto server = redis_or_skip();
  if (!server) return;
  int compared = 0;
  for (const char* dialect : {"2", "3"}) {
    RawClient theirs{server->socket_path()};
    Conversation ours;
    static_cast<void>(theirs.call({"HELLO", dialect}));
    static_cast<void>(ours.call({"HELLO", dialect}));
    const std::string none = ours.call({"COMMAND", "INFO", "none"});
    for (const net::CommandRow& row : net::all_commands()) {
      const std::string name{row.name};
      const std::string expected = theirs.call({"COMMAND", "INFO", name});
      INFO("RESP" << dialect << ": " << name);
      if (expected == none) {
        CHECK((is_newer(row) || row.name.starts_with("semel")));
        continue;
      }
      // They ask for the right to read, as their replies have entries.
      if (name == "xclaim" || name == "xautoclaim") continue;
      ++compared;
      CHECK(without_subcommands(ours.call({"COMMAND", "INFO", name}), name) ==
            without_subcommands(without_notes(expected), name));
    }
  }
  CHECK(compared > 200);
}

TEST_CASE("administration: each command has its docs", "[net]") {
  for (const net::CommandRow& row : net::all_commands()) {
    INFO(row.name);
    const net::CommandDocs& docs = net::docs_of(row);
    CHECK(docs.summary.ends_with('.'));
    CHECK_FALSE(docs.group.empty());
    CHECK_FALSE(docs.complexity.empty());
  }
}

}  // namespace semel::tests
