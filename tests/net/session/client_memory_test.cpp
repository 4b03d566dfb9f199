// What connections hold: replies, requests, transactions, names; counted, bounded, and given back.
//
// Vocabulary: `held` is what the node counts for all of them, `limit` its bound, a `part` a large
// value that a reply refers to.
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t limit = 48 * mib;

/// A client whose replies may refer to large values, as those of the server may.
struct Reader {
  Reader(Conversation& from, std::size_t client)
      : nodes(from), connection(*from.connections[client]) {
    connection.share_large();
  }
  /// The bytes as a socket would have got them.
  std::string ask(const std::string& request) {
    std::string text;
    connection.receive(request, text);
    for (;;) {
      take(text);
      if (!connection.more()) return std::exchange(sent, {});
      text.clear();
      connection.collect(text);
    }
  }
  void take(const std::string& text) {
    std::size_t from = 0;
    const net::Splices large = connection.take_large();
    held_most = std::max(held_most, nodes.node.client_memory->bytes());
    parts += large.size();
    for (const net::Splice& each : large) {
      sent.append(text, from, each.at - from).append(each.bytes->view());
      from = each.at;
    }
    sent.append(text, from);
    ++rounds;
  }

  Conversation& nodes;
  net::Connection& connection;
  std::string sent;
  std::size_t held_most = 0;
  std::size_t parts = 0;
  std::size_t rounds = 0;
};

std::string bulk_of_bytes(const std::string& bytes) {
  return "$" + std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n";
}

Words repeated(const std::string& command, const std::string& key, std::size_t count) {
  Words words{command};
  words.insert(words.end(), count, key);
  return words;
}

struct Limited : Conversation {
  explicit Limited(std::size_t count = 1) : Conversation(count) {
    node.client_memory->set_limit(limit);
  }
  [[nodiscard]] std::size_t held() const { return node.client_memory->bytes(); }
  void fill(const std::string& prefix, std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string value(bytes, static_cast<char>('a' + i % 26));
      REQUIRE(call({"SET", prefix + std::to_string(i), value}) == "+OK\r\n");
    }
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("replies: MGET holds a value once, however often it names it",
          "[net][memory][attack][fault-7]") {
  Limited nodes;
  nodes.fill("big", 1, mib);
  Reader reader{nodes, 0};
  const std::string reply = reader.ask(request_bytes(repeated("MGET", "big0", 300)));
  CHECK(reader.parts == 300);
  CHECK(reader.held_most == mib);
  CHECK(nodes.held() == 0);
  const std::string one = bulk_of_bytes(std::string(mib, 'a'));
  REQUIRE(reply.size() == 6 + 300 * one.size());
  CHECK(reply.starts_with("*300\r\n" + one));
  CHECK(reply.ends_with(one));
}

TEST_CASE("replies: EXEC holds a value once, however many commands read it",
          "[net][memory][attack][fault-7]") {
  Limited nodes;
  nodes.fill("big", 1, mib);
  Reader reader{nodes, 0};
  static_cast<void>(reader.ask(request_bytes({"MULTI"})));
  for (int i = 0; i < 150; ++i) {
    static_cast<void>(reader.ask(request_bytes({"GET", "big0"})));
    // Refused, so that the value stays as it was.
    static_cast<void>(reader.ask(request_bytes({"SET", "big0", "x", "NX", "GET"})));
  }
  const std::string reply = reader.ask(request_bytes({"EXEC"}));
  CHECK(reader.parts == 300);
  CHECK(reader.held_most < 2 * mib);
  CHECK(reply.size() == 6 + 300 * bulk_of_bytes(std::string(mib, 'a')).size());
  CHECK(nodes.held() == 0);
}

TEST_CASE("replies: a value that changed within EXEC is shown as each command found it",
          "[net][memory]") {
  Limited nodes;
  nodes.fill("big", 1, mib);
  Reader reader{nodes, 0};
  static_cast<void>(reader.ask(request_bytes({"MULTI"})));
  static_cast<void>(reader.ask(request_bytes({"GET", "big0"})));
  static_cast<void>(reader.ask(request_bytes({"SETRANGE", "big0", "0", "z"})));
  static_cast<void>(reader.ask(request_bytes({"GET", "big0"})));
  static_cast<void>(reader.ask(request_bytes({"GETRANGE", "big0", "1", "-1"})));
  std::string changed(mib, 'a');
  changed[0] = 'z';
  CHECK(reader.ask(request_bytes({"EXEC"})) == "*4\r\n" + bulk_of_bytes(std::string(mib, 'a')) +
                                                   ":1048576\r\n" + bulk_of_bytes(changed) +
                                                   bulk_of_bytes(changed.substr(1)));
}

TEST_CASE("replies: what would be larger than half of the limit is an error",
          "[net][memory][attack][fault-7]") {
  Limited nodes;
  nodes.fill("big", 26, mib);
  Words all{"MGET"};
  for (int i = 0; i < 26; ++i) all.push_back("big" + std::to_string(i));
  Reader reader{nodes, 0};
  SECTION("of MGET") {
    const std::string reply = reader.ask(request_bytes(all));
    CHECK(reply == "-ERR the reply is larger than 25165824 bytes, half of maxmemory-clients\r\n");
    all.resize(1 + 23);
    CHECK(reader.ask(request_bytes(all)).starts_with("*23\r\n$1048576\r\n"));
  }
  SECTION("of a queued read, and the transaction's writes are carried out") {
    static_cast<void>(reader.ask(request_bytes({"MULTI"})));
    for (int i = 0; i < 26; ++i) {
      static_cast<void>(reader.ask(request_bytes({"GET", all[static_cast<std::size_t>(1 + i)]})));
    }
    static_cast<void>(reader.ask(request_bytes({"GETDEL", "big0"})));
    static_cast<void>(reader.ask(request_bytes({"INCR", "count"})));
    const std::string reply = reader.ask(request_bytes({"EXEC"}));
    CHECK(reply.starts_with("*28\r\n$1048576\r\n"));
    CHECK(
        has(reply, "-ERR the reply is larger than 25165824 bytes, half of maxmemory-clients\r\n"));
    CHECK(reply.ends_with("half of maxmemory-clients; the command was carried out\r\n:1\r\n"));
    CHECK(nodes.call({"EXISTS", "big0"}) == ":0\r\n");
  }
  SECTION("of values that a transaction makes out of little") {
    static_cast<void>(reader.ask(request_bytes({"MULTI"})));
    for (int i = 0; i < 100; ++i) {
      static_cast<void>(reader.ask(request_bytes({"SETRANGE", "made", "1048575", "x"})));
      static_cast<void>(reader.ask(request_bytes({"GETDEL", "made"})));
    }
    const std::string reply = reader.ask(request_bytes({"EXEC"}));
    CHECK(reply.size() < 25 * mib);
    CHECK(reader.held_most < 25 * mib);
    CHECK(nodes.call({"EXISTS", "made"}) == ":0\r\n");
  }
  SECTION("of a hash's fields") {
    REQUIRE(nodes.call({"HSET", "h", "f", std::string(mib / 2, 'f')}) == ":1\r\n");
    Words fields = repeated("HMGET", "f", 100);
    fields.insert(fields.begin() + 1, "h");
    CHECK(reader.ask(request_bytes(fields)).starts_with("-ERR the reply is larger than"));
  }
  SECTION("of a connection that copies") {
    Conversation& plain = nodes;
    static_cast<void>(plain.connect("127.0.0.1:6000"));
    CHECK(plain.call(repeated("MGET", "big0", 300), 1).starts_with("-ERR the reply is larger"));
    CHECK(plain.call(repeated("MGET", "big0", 20), 1).size() > 20 * mib);
  }
  CHECK(nodes.held() == 0);
}

TEST_CASE("replies: a pipeline of large values is carried out as they are taken, each once",
          "[net][memory][attack][fault-7]") {
  Limited nodes;
  nodes.fill("big", 1, mib);
  Reader reader{nodes, 0};
  std::string request;
  std::string expected;
  for (int i = 1; i <= 64; ++i) {
    request += request_bytes({"GET", "big0"}) + request_bytes({"INCR", "count"});
    expected += bulk_of_bytes(std::string(mib, 'a')) + ":" + std::to_string(i) + "\r\n";
  }
  CHECK(reader.ask(request + "*2\r\n$4\r\nPING") == expected);
  CHECK(reader.rounds >= 32);
  CHECK(reader.held_most <= 3 * mib);
  CHECK(reader.ask("\r\n$1\r\nx\r\n") == "$1\r\nx\r\n");
  CHECK(nodes.held() == 0);
}

TEST_CASE("replies: what ends a connection waits for the requests in front of it",
          "[net][memory]") {
  Limited nodes;
  nodes.fill("big", 1, mib);
  Reader reader{nodes, 0};
  const std::string value = bulk_of_bytes(std::string(mib, 'a'));
  std::string request;
  for (int i = 0; i < 5; ++i) request += request_bytes({"GET", "big0"});
  SECTION("a page in a browser") {
    CHECK(reader.ask(request + "POST / HTTP/1.1\r\n") == value + value + value + value + value);
  }
  SECTION("a protocol error") {
    const std::string error = "-ERR Protocol error: invalid multibulk length\r\n";
    CHECK(reader.ask(request + "*x\r\n") == value + value + value + value + value + error);
  }
  CHECK(reader.connection.closes());
}

TEST_CASE("requests: an argument that could never be stored is passed over, wherever it is cut",
          "[net][memory][attack][fault-7]") {
  Limited nodes{2};
  const std::size_t large = 17 * mib;
  const std::string head = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + std::to_string(large) + "\r\n";
  const std::string error = "-ERR value exceeds the limit: 17825792 bytes, at most 16777216\r\n";
  const std::string whole = head + std::string(large, 'x') + "\r\n" + request_bytes({"PING"});
  std::mt19937_64 random{Catch::rngSeed()};
  INFO("seed " << Catch::rngSeed());
  for (int run = 0; run < 4; ++run) {
    std::string replies;
    std::size_t most = 0;
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t part = std::min<std::size_t>(1 + random() % (mib / 2), whole.size() - at);
      nodes.connections[0]->receive(whole.substr(at, part), replies);
      most = std::max(most, nodes.held());
      at += part;
    }
    CHECK(replies == error + "+PONG\r\n");
    CHECK(most < mib);
  }
  SECTION("a transaction fails with it") {
    static_cast<void>(nodes.call({"MULTI"}));
    static_cast<void>(nodes.call({"SET", "a", "1"}));
    std::string reply;
    nodes.connections[0]->receive(whole, reply);
    CHECK(reply == error + "+QUEUED\r\n");
    CHECK(nodes.call({"EXEC"}).starts_with("-EXECABORT"));
    CHECK(nodes.call({"EXISTS", "a"}) == ":0\r\n");
  }
  SECTION("as are others behind it") {
    std::string reply;
    const std::string many = "*4\r\n$4\r\nECHO\r\n$20000000\r\n" + std::string(20'000'000, 'x') +
                             "\r\n$1\r\ny\r\n$17000000\r\n" + std::string(17'000'000, 'z') +
                             "\r\n" + request_bytes({"ECHO", "next"});
    nodes.connections[0]->receive(many, reply);
    CHECK(reply ==
          "-ERR value exceeds the limit: 20000000 bytes, at most 16777216\r\n$4\r\nnext\r\n");
  }
  SECTION("beyond proto-max-bulk-len it is a protocol error, as before") {
    std::string reply;
    nodes.connections[0]->receive("*2\r\n$3\r\nGET\r\n$536870913\r\n", reply);
    CHECK(reply == "-ERR Protocol error: invalid bulk length\r\n");
    CHECK(nodes.connections[0]->closes());
  }
  SECTION("a request of more than the limit is refused by what it declares") {
    std::string reply;
    std::string request = "*4\r\n$4\r\nMSET\r\n";
    for (int i = 0; i < 3; ++i) {
      request += "$16777216\r\n" + std::string(16'777'216, 'x') + "\r\n";
    }
    nodes.connections[0]->receive(request, reply);
    CHECK(reply == "-ERR Protocol error: request of more than 50331648 bytes\r\n");
  }
}

TEST_CASE("eviction: half requests of many clients stay under the limit, the largest go first",
          "[net][memory][attack][fault-7]") {
  constexpr std::size_t count = 40;
  Limited nodes{count};
  const std::string head = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16000000\r\n";
  std::string ignored;
  std::size_t most = 0;
  std::vector<bool> killed(count);
  for (std::size_t round = 0; round < 8; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      if (killed[i]) continue;
      // The later ones send more.
      nodes.connections[i]->receive(round == 0 ? head : std::string((i + 1) * 16'384, 'x'),
                                    ignored);
      for (std::size_t j = 0; j < count; ++j) {
        if (killed[j] || !nodes.connections[j]->is_killed()) continue;
        nodes.connections[j]->end();
        killed[j] = true;
      }
      most = std::max(most, nodes.held());
    }
  }
  CHECK(ignored.empty());
  CHECK(most <= limit + mib);
  CHECK(killed[count - 1]);
  CHECK_FALSE(killed[0]);
  CHECK(nodes.node.client_memory->evictions() > 0);
}

TEST_CASE("eviction: CLIENT NO-EVICT is last, not never", "[net][memory][attack][fault-7]") {
  Limited nodes{4};
  const std::string begun =
      "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16000000\r\n" + std::string(15 * mib, 'x');
  REQUIRE(nodes.call({"CLIENT", "NO-EVICT", "ON"}, 0) == "+OK\r\n");
  std::string ignored;
  for (std::size_t i = 0; i < 3; ++i) nodes.connections[i]->receive(begun, ignored);
  CHECK_FALSE(nodes.connections[0]->is_killed());
  nodes.node.client_memory->set_limit(10 * mib);
  nodes.node.tick();
  CHECK(nodes.connections[0]->is_killed());
  CHECK(nodes.connections[1]->is_killed());
  CHECK_FALSE(nodes.connections[3]->is_killed());
  for (std::size_t i = 0; i < 3; ++i) nodes.connections[i]->end();
  CHECK(nodes.held() == 0);
}

TEST_CASE("clients: CLIENT LIST and INFO show what is held", "[net][memory][attack][fault-7]") {
  Limited nodes{3};
  std::string ignored;
  nodes.connections[0]->receive("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\n" + std::string(500, 'x'),
                                ignored);
  const std::string list = nodes.call({"CLIENT", "LIST"}, 1);
  CHECK(has(list, " qbuf=527 "));
  CHECK(has(list, " qbuf=26 "));  // this request
  CHECK_FALSE(has(list, " tot-mem=0 "));
  CHECK(nodes.held() > 500);
  static_cast<void>(nodes.call({"MULTI"}, 2));
  static_cast<void>(nodes.call({"SET", "k", std::string(100'000, 'v')}, 2));
  CHECK(nodes.held() > 100'500);
  const std::string info = nodes.call({"CLIENT", "LIST", "ID", "3"}, 1);
  CHECK(has(info, " multi-mem=100"));
  CHECK(has(nodes.call({"INFO", "memory"}, 1), "mem_clients_normal:1"));
  CHECK(has(nodes.call({"INFO", "memory"}, 1), "maxmemory_clients:50331648\r\n"));
  nodes.connections[1]->hold_output(100, 2'000, 3);
  CHECK(has(nodes.call({"CLIENT", "INFO"}, 1), " oll=3 omem=2100 "));
  nodes.connections[1]->hold_output(0, 0, 0);
  static_cast<void>(nodes.call({"DISCARD"}, 2));
  nodes.connections[0]->end();
  CHECK(nodes.held() == 0);
}

TEST_CASE("clients: the lists of a request's arguments are counted", "[net][memory]") {
  Limited nodes{2};
  std::string request = "*1000000\r\n$4\r\nMGET\r\n";
  for (int i = 0; i < 200'000; ++i) request += "$0\r\n\r\n";
  std::string ignored;
  nodes.connections[0]->receive(request, ignored);
  CHECK(nodes.held() >= request.size() + 200'000 * 16);
  CHECK(has(nodes.call({"CLIENT", "LIST", "ID", "1"}, 1), " argv-mem=3200016 "));
}

TEST_CASE("clients: names, watched keys and subscriptions are bounded and counted",
          "[net][memory][attack][fault-7]") {
  Limited nodes{2};
  const std::string longest(net::ClientHandle::name_bytes_max, 'n');
  for (const Words& words :
       {Words{"CLIENT", "SETNAME"}, Words{"CLIENT", "SETINFO", "lib-name"},
        Words{"CLIENT", "SETINFO", "lib-ver"}, Words{"HELLO", "2", "SETNAME"}}) {
    Words fits = words;
    fits.push_back(longest);
    CHECK_FALSE(nodes.call(fits).starts_with('-'));
    fits.back() += 'n';
    CHECK(nodes.call(fits) ==
          "-ERR what a client says of itself is limited to 1024 bytes, this has 1025\r\n");
  }
  CHECK(nodes.call({"WATCH", "k"}) == "+OK\r\n");
  const std::size_t one = nodes.held();
  CHECK(one > 200);
  Words keys{"WATCH"};
  for (int i = 0; i < 2'000; ++i) keys.push_back(std::to_string(i) + std::string(10'000, 'k'));
  CHECK(nodes.call(keys).starts_with("-ERR what a client watches is limited to 33554432 bytes"));
  CHECK(nodes.held() <= 32 * mib);
  CHECK(nodes.call({"UNWATCH"}) == "+OK\r\n");
  CHECK(nodes.held() == 0);
  static_cast<void>(nodes.call({"SUBSCRIBE", std::string(10'000, 'c')}, 1));
  CHECK(nodes.held() >= 10'000);
  static_cast<void>(nodes.call({"UNSUBSCRIBE"}, 1));
  CHECK(nodes.held() == 0);
}

TEST_CASE("pushes: a message to many is held once, and uncollected bytes are counted",
          "[net][memory][attack][fault-7]") {
  constexpr std::size_t listeners = 30;
  Limited nodes{listeners + 1};
  for (std::size_t i = 0; i < listeners; ++i) {
    nodes.connections[i]->share_large();
    static_cast<void>(nodes.call({i % 2 == 0 ? "SUBSCRIBE" : "PSUBSCRIBE", "news"}, i));
  }
  const std::size_t before = nodes.held();
  CHECK(nodes.call({"PUBLISH", "news", std::string(mib, 'm')}, listeners) ==
        ":" + std::to_string(listeners) + "\r\n");
  CHECK(nodes.held() - before < 2 * mib + 4096);
  std::string text;
  nodes.connections[0]->collect(text);
  const net::Splices large = nodes.connections[0]->take_large();
  REQUIRE(large.size() == 1);
  CHECK(large[0].bytes->view() ==
        "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n" + bulk_of_bytes(std::string(mib, 'm')));
  // Small ones are copied, and each is counted.
  const std::size_t between = nodes.held();
  for (int i = 0; i < 10; ++i) static_cast<void>(nodes.call({"PUBLISH", "news", "x"}, listeners));
  CHECK(nodes.held() >= between + 10 * listeners * 30);
  for (std::size_t i = 0; i < listeners; ++i) nodes.connections[i]->end();
  CHECK(nodes.held() == large[0].bytes->size());
}

}  // namespace semel::tests
