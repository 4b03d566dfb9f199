// CLIENT TRACKING: which connections are told that a key has changed.
//
// Words: a *reader* tracks and reads; a *writer* changes keys; what a client *hears* is all that it
// is sent.
#include "net/session/tracking.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"
#include "tests/net/dialogue.hpp"

namespace semel::tests {
namespace {

std::string bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string{text} + "\r\n";
}

/// The message to a RESP3 client.
std::string invalidate(const std::vector<std::string>& keys) {
  std::string bytes = ">2\r\n" + bulk("invalidate") + "*" + std::to_string(keys.size()) + "\r\n";
  for (const std::string& key : keys) bytes += bulk(key);
  return bytes;
}
const std::string invalidate_all = ">2\r\n" + bulk("invalidate") + "_\r\n";
/// The message to a RESP2 client that listens for another.
std::string redirected(const std::string& key) {
  return "*3\r\n" + bulk("message") + bulk("__redis__:invalidate") + "*1\r\n" + bulk(key);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

struct Cache : LocalNode {
  NodeClient reader{node, batch, 1};
  NodeClient writer{node, batch, 2};

  explicit Cache(const std::string& options = {}) {
    reader.say("HELLO 3");
    REQUIRE(reader.say("CLIENT TRACKING ON " + options) == "+OK\r\n");
  }
};

}  // namespace

TEST_CASE("tracking: a key that was read is told of once, until it is read again",
          "[net][tracking]") {
  Cache cache;
  cache.writer.say("SET k 1");
  CHECK(cache.reader.heard().empty());
  CHECK(cache.reader.say("GET k") == bulk("1"));
  cache.writer.say("SET k 2");
  CHECK(cache.reader.heard() == invalidate({"k"}));
  cache.writer.say("SET k 3");
  CHECK(cache.reader.heard().empty());
  cache.reader.say("GET k");
  cache.writer.say("DEL k");
  CHECK(cache.reader.heard() == invalidate({"k"}));
}

TEST_CASE("tracking: a key that does not change is not told of", "[net][tracking]") {
  Cache cache;
  cache.writer.say("SET k 1");
  cache.reader.say("MGET k gone");
  cache.writer.say("SET k 2 NX");
  cache.writer.say("DEL gone");
  cache.writer.say("LPUSH k x");
  CHECK(cache.reader.heard().empty());
  CHECK(cache.node.tracking.figures().keys == 2);
  cache.writer.say("EXPIRE k 100");
  CHECK(cache.reader.heard() == invalidate({"k"}));
  cache.writer.say("SET gone 1");
  CHECK(cache.reader.heard() == invalidate({"gone"}));
  CHECK(cache.node.tracking.figures().items == 0);
}

TEST_CASE("tracking: the message of an own change follows its reply, or none does with NOLOOP",
          "[net][tracking]") {
  Cache cache;
  cache.reader.say("GET k");
  CHECK(cache.reader.say("SET k 1") == "+OK\r\n" + invalidate({"k"}));
  cache.reader.say("GET k");
  CHECK(cache.reader.send(request_bytes({"SET", "k", "2"}) + request_bytes({"PING"})) ==
        "+OK\r\n" + invalidate({"k"}) + "+PONG\r\n");
  cache.reader.say("CLIENT TRACKING ON NOLOOP");
  cache.reader.say("GET k");
  CHECK(cache.reader.say("SET k 3") == "+OK\r\n");
  cache.reader.say("GET k");
  cache.writer.say("SET k 4");
  CHECK(cache.reader.heard() == invalidate({"k"}));
}

TEST_CASE("tracking: messages follow the reply of a transaction", "[net][tracking]") {
  Cache cache;
  cache.reader.say("MGET a b");
  cache.reader.say("MULTI");
  cache.reader.say("INCR a");
  cache.reader.say("GET b");
  cache.reader.say("INCR a");
  CHECK(cache.reader.say("EXEC") == "*3\r\n:1\r\n_\r\n:2\r\n" + invalidate({"a"}));
  cache.writer.say("SET b 1");
  CHECK(cache.reader.heard() == invalidate({"b"}));
}

TEST_CASE("tracking: a script that reads has its declared keys remembered", "[net][tracking]") {
  Cache cache;
  cache.reader.say(Words{"EVAL", "return redis.call('set', 'c', '1')", "1", "a"});
  cache.writer.say("SET a 1");
  CHECK(cache.reader.heard().empty());
  cache.reader.say(Words{"EVAL", "return redis.call('get', KEYS[2])", "2", "a", "b"});
  cache.writer.say("MSET b 1 a 2");
  CHECK(cache.reader.heard() == invalidate({"b"}) + invalidate({"a"}));
  cache.reader.say(Words{"EVAL_RO", "return redis.call('ping')", "1", "a"});
  cache.writer.say("SET a 3");
  CHECK(cache.reader.heard().empty());
  // What a script writes is told of behind its reply.
  cache.reader.say("GET a");
  CHECK(cache.reader.say(Words{"EVAL", "redis.call('del', 'a') return 7", "1", "a"}) ==
        ":7\r\n" + invalidate({"a"}));
}

TEST_CASE("tracking: a flush says that all keys have changed", "[net][tracking]") {
  const std::string flush = GENERATE("FLUSHALL", "FLUSHDB", "SWAPDB 0 1");
  Cache cache;
  cache.writer.say("SET k 1");
  cache.reader.say("GET k");
  cache.writer.say(flush);
  CHECK(cache.reader.heard() == invalidate_all);
  CHECK(cache.node.tracking.figures().keys == 0);
  CHECK(cache.writer.say("FLUSHALL nonsense").starts_with("-ERR"));
  CHECK(cache.reader.heard().empty());
}

TEST_CASE("tracking: a key that has expired is told of", "[net][tracking]") {
  Conversation nodes{2};
  static_cast<void>(nodes.call({"HELLO", "3"}));
  REQUIRE(nodes.call({"CLIENT", "TRACKING", "ON"}) == "+OK\r\n");
  static_cast<void>(nodes.call({"SET", "k", "1", "PX", "100"}, 1));
  static_cast<void>(nodes.call({"GET", "k"}));
  nodes.clock.advance(Millis{99});
  nodes.node.tick();
  CHECK(nodes.collect().empty());
  nodes.clock.advance(Millis{5'000});
  nodes.node.tick();
  CHECK(nodes.collect() == invalidate({"k"}));
}

TEST_CASE("tracking: keys that move to another database are told of", "[net][tracking]") {
  Cache cache;
  cache.writer.say("SET k 1");
  cache.reader.say("MGET k l");
  cache.writer.say("COPY k l DB 3");
  CHECK(cache.reader.heard() == invalidate({"l"}));
  cache.writer.say("COPY k l DB 3");
  CHECK(cache.reader.heard().empty());
  cache.writer.say("MOVE k 2");
  CHECK(cache.reader.heard() == invalidate({"k"}));
}

TEST_CASE("tracking: a client that is served while it waits changes keys as well",
          "[net][tracking]") {
  Cache cache;
  NodeClient waiting{cache.node, cache.batch, 3};
  cache.writer.say("RPUSH to a");
  cache.reader.say("LRANGE to 0 -1");
  CHECK(waiting.say("BLMOVE from to LEFT LEFT 0").empty());
  cache.writer.say("RPUSH from x");
  CHECK(waiting.heard() == bulk("x"));
  CHECK(cache.reader.heard() == invalidate({"to"}));
}

TEST_CASE("tracking: BCAST tells of all keys with a prefix, once a round", "[net][tracking]") {
  Cache cache{"BCAST PREFIX a: PREFIX b:"};
  cache.writer.send(request_bytes({"SET", "a:2", "1"}) + request_bytes({"SET", "a:1", "1"}) +
                    request_bytes({"SET", "c", "1"}) + request_bytes({"SET", "b:", "1"}) +
                    request_bytes({"SET", "a", "1"}) + request_bytes({"SET", "a:2", "2"}));
  CHECK(cache.reader.heard() == invalidate({"a:1", "a:2"}) + invalidate({"b:"}));
  CHECK(cache.node.tracking.figures().prefixes == 2);
  CHECK(cache.reader.say("CLIENT TRACKING ON BCAST PREFIX c") == "+OK\r\n");
  cache.writer.say("SET c 2");
  CHECK(cache.reader.heard() == invalidate({"c"}));
  cache.reader.say("CLIENT TRACKING OFF");
  cache.writer.say("SET c 3");
  CHECK(cache.reader.heard().empty());
  CHECK(cache.node.tracking.figures().prefixes == 0);
  CHECK_FALSE(cache.node.watches.any());
}

TEST_CASE("tracking: BCAST with NOLOOP leaves out the keys that the client changed last",
          "[net][tracking]") {
  Cache cache{"BCAST NOLOOP"};
  CHECK(cache.reader.say("SET a 1") == "+OK\r\n");
  cache.writer.say("SET b 1");
  CHECK(cache.reader.heard() == invalidate({"b"}));
  CHECK(cache.node.tracking.figures().keys == 0);
}

TEST_CASE("tracking: OPTIN and OPTOUT are about the next command, or a whole transaction",
          "[net][tracking]") {
  LocalNode local;
  NodeClient reader{local.node, local.batch, 1};
  const auto keys = [&] { return local.node.tracking.figures().keys; };
  reader.say("CLIENT TRACKING ON OPTIN");
  reader.say("GET a");
  CHECK(keys() == 0);
  CHECK(reader.say("CLIENT CACHING YES") == "+OK\r\n");
  reader.say("GET a");
  reader.say("GET b");
  CHECK(keys() == 1);
  reader.say("CLIENT CACHING YES");
  for (const char* line : {"MULTI", "GET c", "GET d", "EXEC", "GET e"}) reader.say(line);
  CHECK(keys() == 3);
  reader.say("CLIENT CACHING YES");
  reader.say(Words{"EVAL", "redis.call('get', 'f') return redis.call('get', 'g')", "2", "f", "g"});
  CHECK(keys() == 5);
  reader.say("CLIENT TRACKING OFF");
  reader.say("CLIENT TRACKING ON OPTOUT");
  reader.say("CLIENT CACHING NO");
  reader.say("GET h");
  CHECK(keys() == 0);  // the last that tracked took the table with it
  reader.say("GET h");
  CHECK(keys() == 1);
}

TEST_CASE("tracking: messages go to another connection, which may speak RESP2 if it listens",
          "[net][tracking]") {
  LocalNode local;
  NodeClient reader{local.node, local.batch, 1};
  NodeClient listener{local.node, local.batch, 2};
  NodeClient writer{local.node, local.batch, 3};
  CHECK(reader.say("CLIENT TRACKING ON REDIRECT 2") == "+OK\r\n");
  CHECK(reader.say("CLIENT GETREDIR") == ":2\r\n");
  reader.say("GET k");
  writer.say("SET k 1");
  CHECK(listener.heard().empty());  // it could not tell the message from a reply
  listener.say("SUBSCRIBE __redis__:invalidate");
  reader.say("GET k");
  writer.say("SET k 2");
  CHECK(listener.heard() == redirected("k"));
  CHECK(reader.heard().empty());
  writer.say("FLUSHALL");
  CHECK(listener.heard() == "*3\r\n" + bulk("message") + bulk("__redis__:invalidate") + "$-1\r\n");
}

TEST_CASE("tracking: a client whose listener has gone is told so", "[net][tracking]") {
  LocalNode local;
  NodeClient reader{local.node, local.batch, 1};
  NodeClient writer{local.node, local.batch, 3};
  reader.say("HELLO 3");
  {
    NodeClient listener{local.node, local.batch, 2};
    reader.say("CLIENT TRACKING ON REDIRECT 2");
    CHECK(has(reader.say("CLIENT LIST ID 1"), " flags=t "));
    CHECK(has(reader.say("CLIENT LIST ID 1"), " redir=2 "));
  }
  reader.say("GET k");
  writer.say("SET k 1");
  CHECK(reader.heard() == ">2\r\n" + bulk("tracking-redir-broken") + ":2\r\n");
  CHECK(has(reader.say("CLIENT LIST ID 1"), " flags=tR "));
  CHECK(has(reader.say("CLIENT TRACKINGINFO"), "broken_redirect"));
  CHECK(reader.say("CLIENT TRACKING ON REDIRECT 2") ==
        "-ERR The client ID you want redirect to does not exist\r\n");
}

TEST_CASE("tracking: beyond tracking-table-max-keys random keys are given up, with a message",
          "[net][tracking]") {
  Cache cache;
  cache.writer.say("CONFIG SET tracking-table-max-keys 3");
  std::string heard;
  for (int i = 0; i < 10; ++i) heard += cache.reader.say("GET k" + std::to_string(i));
  CHECK(cache.node.tracking.figures().keys == 3);
  std::size_t messages = 0;
  for (std::size_t at = 0; (at = heard.find("invalidate", at)) != std::string::npos; ++at)
    ++messages;
  CHECK(messages == 7);
  cache.writer.say("CONFIG SET tracking-table-max-keys 1");
  CHECK(cache.node.tracking.figures().keys == 1);
  CHECK(split_values(cache.reader.heard()).size() == 2);
  cache.writer.say("CONFIG SET tracking-table-max-keys 0");
  for (int i = 0; i < 10; ++i) CHECK(cache.reader.say("GET k" + std::to_string(i)) == "_\r\n");
  CHECK(cache.node.tracking.figures().keys == 10);
}

TEST_CASE("tracking: more names than may wait become the message of a flush", "[net][tracking]") {
  const std::string options = GENERATE("", "BCAST");
  Cache cache{options};
  const std::string prefix(1'000, 'k');
  Words reads{"MGET"};
  Words writes{"MSET"};
  for (std::size_t i = 0; i < net::Tracking::queued_bytes_max / 1'000; ++i) {
    reads.push_back(prefix + std::to_string(i));
    writes.push_back(reads.back());
    writes.emplace_back("v");
  }
  cache.reader.say(reads);
  CHECK(cache.writer.say(writes) == "+OK\r\n");
  CHECK(cache.reader.heard() == invalidate_all);
  CHECK(cache.node.tracking.figures().keys == 0);
}

TEST_CASE("tracking: a client has so many prefixes and no more", "[net][tracking]") {
  LocalNode local;
  NodeClient client{local.node, local.batch, 1};
  Words words{"CLIENT", "TRACKING", "ON", "BCAST"};
  for (std::size_t i = 0; i < net::Tracking::prefixes_max; ++i) {
    words.emplace_back("PREFIX");
    words.push_back(std::to_string(10'000 + i));
  }
  CHECK(client.say(words) == "+OK\r\n");
  CHECK(client.say("CLIENT TRACKING ON BCAST PREFIX x") ==
        "-ERR a client would have 1025 prefixes, the limit is 1024\r\n");
  client.say("RESET");
  CHECK(local.node.tracking.figures().prefixes == 0);
  const std::string whole(net::Tracking::prefix_bytes_max, 'x');
  CHECK(client.say(Words{"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", whole + "x"})
            .starts_with("-ERR the prefixes of a client would have 1048577 bytes"));
  CHECK(client.say(Words{"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", whole}) == "+OK\r\n");
}

TEST_CASE("tracking: keys have any bytes", "[net][tracking]") {
  Cache cache;
  const std::string binary{"\0\r\n$\xff", 5};
  cache.reader.say(Words{"MGET", binary, "k"});
  cache.writer.say(Words{"SET", binary, "1"});
  cache.writer.say(Words{"SET", "k", "1"});
  CHECK(cache.reader.heard() == invalidate({binary}) + invalidate({"k"}));
}

TEST_CASE("tracking: a client that has gone leaves nothing that is sent", "[net][tracking]") {
  LocalNode local;
  NodeClient writer{local.node, local.batch, 2};
  {
    NodeClient reader{local.node, local.batch, 1};
    reader.say("HELLO 3");
    reader.say("CLIENT TRACKING ON");
    reader.say("GET k");
    CHECK(has(writer.say("INFO clients"), "tracking_clients:1\r\n"));
  }
  CHECK(local.node.tracking.figures().clients == 0);
  CHECK(local.node.tracking.figures().items == 0);
  CHECK_FALSE(local.node.tracking.any());
  writer.say("SET k 1");
  CHECK(has(writer.say("INFO stats"), "tracking_total_keys:"));
}

TEST_CASE("tracking: no reader keeps a value that others have changed", "[net][tracking][race]") {
  LocalNode local;
  std::atomic<bool> ends{false};
  std::thread changes{[&] {
    net::Batch batch;
    NodeClient writer{local.node, batch, 2};
    for (int i = 1; i <= 3'000; ++i) writer.say("SET k " + std::to_string(i));
    // mo: release: the reader that sees it sees the last change
    ends.store(true, std::memory_order_release);
  }};
  NodeClient reader{local.node, local.batch, 1};
  reader.say("HELLO 3");
  reader.say("CLIENT TRACKING ON");
  std::string cached;  // empty: nothing is
  for (bool last = false; !last;) {
    last = ends.load(std::memory_order_acquire);  // mo: acquire: as above
    std::string heard = cached.empty() ? reader.say("GET k") : reader.heard();
    if (heard.empty()) continue;
    // What a message comes with is not kept, whichever of the two is first.
    if (has(heard, "invalidate")) {
      cached.clear();
    } else {
      cached = heard;
    }
  }
  changes.join();
  const std::string heard = reader.heard();
  if (has(heard, "invalidate") || cached.empty()) cached = reader.say("GET k");
  CHECK(has(cached, "3000"));
}

}  // namespace semel::tests
