// The same random dialogues with a redis-server and with us, byte for byte, in both dialects.
//
// Words: a *dialogue* is one connection's requests in a row; a *marker* is what an ECHO after each
// request answers, so that its reply ends where the marker begins.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>
#include "base/ascii.hpp"
#include "tests/support/catch.hpp"

#include "net/node/connection.hpp"
#include "net/resp/text.hpp"
#include "semel/clock.hpp"
#include "semel/semel.hpp"
#include "tests/net/dialogue.hpp"
#include "tests/net/random_requests.hpp"
#include "tests/support/raw_client.hpp"

namespace semel::tests {
namespace {

const std::vector<Words> forms{{"SET", "K", "V"},
                               {"SET", "K", "V", "O"},
                               {"SET", "K", "V", "O", "O"},
                               {"SET", "K", "V", "O", "O", "O"},
                               {"SET", "K", "V", "NX", "GET", "EX", "T"},
                               {"GET", "K"},
                               {"GET", "K"},
                               {"GETSET", "K", "V"},
                               {"GETDEL", "K"},
                               {"GETEX", "K"},
                               {"GETEX", "K", "O"},
                               {"GETEX", "K", "EX", "T"},
                               {"GETEX", "K", "PERSIST"},
                               {"GETEX", "K", "PXAT", "A"},
                               {"SETNX", "K", "V"},
                               {"SETEX", "K", "T", "V"},
                               {"PSETEX", "K", "T", "V"},
                               {"APPEND", "K", "V"},
                               {"STRLEN", "K"},
                               {"GETRANGE", "K", "N", "N"},
                               {"SUBSTR", "K", "N", "N"},
                               {"SETRANGE", "K", "S", "V"},
                               {"INCR", "K"},
                               {"DECR", "K"},
                               {"INCRBY", "K", "N"},
                               {"DECRBY", "K", "N"},
                               {"INCRBYFLOAT", "K", "F"},
                               {"MGET", "K", "K", "K"},
                               {"MSET", "K", "V", "K", "V"},
                               {"MSET", "K", "V", "K"},
                               {"MSETNX", "K", "V", "K", "V"},
                               {"DEL", "K"},
                               {"DEL", "K", "K"},
                               {"UNLINK", "K"},
                               {"EXISTS", "K", "K"},
                               {"TOUCH", "K", "K"},
                               {"TYPE", "K"},
                               {"EXPIRE", "K", "T"},
                               {"EXPIRE", "K", "T", "R"},
                               {"EXPIRE", "K", "T", "R", "R"},
                               {"PEXPIRE", "K", "T"},
                               {"EXPIREAT", "K", "N"},
                               {"PEXPIREAT", "K", "A"},
                               {"TTL", "K"},
                               {"PEXPIREAT", "K", "A", "R"},
                               {"EXPIRETIME", "K"},
                               {"PEXPIRETIME", "K"},
                               {"PERSIST", "K"},
                               {"RENAME", "K", "K"},
                               {"RENAMENX", "K", "K"},
                               {"COPY", "K", "K"},
                               {"COPY", "K", "K", "REPLACE"},
                               {"COPY", "K", "K", "DB", "D"},
                               {"COPY", "K", "K", "DB", "D", "REPLACE"},
                               {"MOVE", "K", "D"},
                               {"SELECT", "D"},
                               {"SWAPDB", "D", "D"},
                               {"DBSIZE"},
                               {"KEYS", "*"},
                               {"KEYS", "[a-b]?"},
                               {"FLUSHDB", "O"},
                               {"PING"},
                               {"PING", "V"},
                               {"PING", "V", "V"},
                               {"ECHO", "V"},
                               {"OBJECT", "ENCODING", "K"},
                               {"OBJECT", "IDLETIME", "none"},
                               {"CLIENT", "SETNAME", "K"},
                               {"CLIENT", "GETNAME"},
                               {"CLIENT", "REPLY", "ON"},
                               {"WAIT", "0", "N"},
                               {"nothing", "V", "V"},
                               {"HSET", "H", "E", "W"},
                               {"HSET", "H", "E", "W"},
                               {"HSET", "H", "E", "L", "E", "L", "E", "L"},
                               {"HSET", "K", "E", "W"},
                               {"HSET", "H", "E", "W", "E"},
                               {"HMSET", "H", "E", "W", "E", "W"},
                               {"HMSET", "H", "E", "W", "E"},
                               {"HSETNX", "H", "E", "W"},
                               {"HGET", "H", "E"},
                               {"HGET", "K", "E"},
                               {"HMGET", "H", "E", "E", "E"},
                               {"HDEL", "H", "E"},
                               {"HDEL", "H", "E", "E", "E"},
                               {"HEXISTS", "H", "E"},
                               {"HLEN", "H"},
                               {"HSTRLEN", "H", "E"},
                               {"HGETALL", "H"},
                               {"HGETALL", "H"},
                               {"HGETALL", "K"},
                               {"HKEYS", "H"},
                               {"HVALS", "H"},
                               {"HINCRBY", "H", "E", "N"},
                               {"HINCRBY", "H", "E", "1"},
                               {"HINCRBYFLOAT", "H", "E", "F"},
                               {"HINCRBYFLOAT", "H", "E", "0.25"},
                               {"HRANDFIELD", "I"},
                               {"HRANDFIELD", "H", "M"},
                               {"HRANDFIELD", "H", "M", "WITHVALUES"},
                               {"HRANDFIELD", "H", "M", "O"},
                               {"HRANDFIELD", "I", "-3", "WITHVALUES"},
                               {"HSCAN", "H", "C"},
                               {"HSCAN", "H", "C", "COUNT", "N"},
                               {"HSCAN", "H", "C", "MATCH", "f[1-3]"},
                               {"HSCAN", "H", "C", "MATCH", "*", "COUNT", "N"},
                               {"HSCAN", "H", "C", "O", "N"},
                               {"SET", "H", "V"},
                               {"DEL", "H"},
                               {"DEL", "I"},
                               {"HSET", "I", "one", "W"},
                               {"COPY", "H", "H", "REPLACE"},
                               {"RENAME", "H", "H"},
                               {"TYPE", "H"},
                               {"GET", "H"},
                               {"SET", "H", "V", "GET"}};

const Words values{"",
                   "0",
                   "10",
                   "-5",
                   "007",
                   "1.5",
                   "abc",
                   "9223372036854775807",
                   "-9223372036854775808",
                   "v\r\n",
                   std::string(70, 'x'),
                   "3.0e3"};

const RandomRequests::Profile profile{
    .forms = forms,
    .kinds = {{'K', {"a1", "a2", "b1", "c"}},
              {'V', values},
              {'N',
               {"0", "1", "-1", "5", "-100", "9223372036854775807", "-9223372036854775808",
                "9223372036854775808", "1x", "", "+1", "01"}},
              {'F', {"1", "0.5", "-2.25", "3e2", "abc", "", " 1", "1e5000"}},
              {'O',
               {"NX", "XX", "GET", "KEEPTTL", "nx", "EX", "PX", "1000000", "PERSIST", "async",
                "O"}},
              {'R', {"NX", "XX", "GT", "LT", "gt", "ZZ"}},
              {'D', {"0", "1", "0", "1", "15", "16", "-1", "x", "4294967296"}},
              {'H', {"h1", "h1", "h1", "h2", "h3"}},
              {'I', {"single"}},  // has one field at most, so that it is known which is taken
              {'M',
               {"0", "1000", "9223372036854775807", "-9223372036854775808", "-0", "x",
                "4611686018427387904", "-9223372036854775807x"}},
              {'C', {"0", "0", "0", "7", "", "-1", "+1", " 1", "1x", "99999999999999999999"}}},
    .lower_one_in = 6,
    .cut_one_in = 40};

class Generator : public RandomRequests {
 public:
  explicit Generator(std::uint64_t seed) : RandomRequests(seed, profile) {}

 private:
  std::string filled(char letter) override {
    static const Words times{"0", "-1", "x", "9223372036854775807"};
    static const Words ends{"1", "0", "-5", "x"};
    switch (letter) {
      case 'S':
        return std::to_string(below(40)) + (below(20) == 0 ? "x" : "");
      case 'T':
        return below(3) != 0 ? std::to_string(1'000'000 + unlike()) : pick(times);
      case 'A':
        return below(3) != 0 ? std::to_string(4'000'000'000'000 + unlike()) : pick(ends);
      case 'W':  // not too long for the order that a hash keeps
        return pick(values).substr(0, 60);
      case 'E':
        return "f" + std::to_string(below(12));
      case 'L':
        return std::to_string(draw());
      default:
        return RandomRequests::filled(letter);
    }
  }

  /// Whole seconds in no order, a hundred thousand times another: which of two near times is later
  /// would depend on whose clock is read when.
  std::uint64_t unlike() { return ++drawn_ * 7'919 % 100'003 * 1'000; }

  std::uint64_t drawn_ = 0;
};

/// Lists of keys have no order.
std::string in_order(std::string reply) {
  if (!reply.starts_with('*')) return reply;
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (at < reply.size()) {
    const std::size_t end = reply.find("\r\n", at) + 2;
    lines.push_back(reply.substr(at, end - at));
    at = end;
  }
  std::sort(lines.begin() + 1, lines.end());
  std::string all;
  for (const std::string& line : lines) all += line;
  return all;
}

bool is_near(const std::string& one, const std::string& other) {
  return one.starts_with(':') && other.starts_with(':') &&
         std::llabs(std::strtoll(one.c_str() + 1, nullptr, 10) -
                    std::strtoll(other.c_str() + 1, nullptr, 10)) <= 2'000;
}

/// Equal, but for what two clocks tell.
bool is_same(const Words& words, const std::string& ours, const std::string& theirs) {
  if (ours == theirs) return true;
  const std::string name = base::lower_of(words[0]);
  if (name == "keys") return in_order(ours) == in_order(theirs);
  // What was not set as a whole is raw or embstr there, whatever it looks like.
  if (name == "object") return theirs == "$3\r\nraw\r\n" || theirs == "$6\r\nembstr\r\n";
  if (name == "hrandfield" && words.size() == 2) {  // any field, if there is one
    return ours[0] == '$' && theirs[0] == '$' && ours[1] != '-' && theirs[1] != '-';
  }
  return (name == "ttl" || name == "pttl" || name == "expiretime" || name == "pexpiretime") &&
         is_near(ours, theirs);
}

}  // namespace

TEST_CASE("dialogues: a redis-server answers the same, byte for byte", "[net][redis]") {
  const auto server = RedisServer::start();
  if (!server) {
    WARN("skipped: redis-server cannot be started");
    return;
  }
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  for (const char* dialect : {"2", "3"}) {
    RawClient theirs{server->socket_path()};
    static_cast<void>(theirs.call({"FLUSHALL"}));
    auto engine = Engine::open({});
    REQUIRE(engine);
    net::Node node{**engine};
    net::Batch batch;
    net::Connection ours{node, batch, nullptr, {.id = 1}};
    Generator generator{seed};
    std::string reply;
    ours.receive(request_bytes({"HELLO", dialect}), reply);
    static_cast<void>(theirs.call({"HELLO", dialect}));
    int different = 0;
    std::string differences;
    for (int i = 0; i < steps_wanted(25'000) && different < 10; ++i) {
      const Words words = generator.next();
      reply.clear();
      ours.receive(request_bytes(words), reply);
      const std::string expected = theirs.call(words);
      if (is_same(words, reply, expected)) continue;
      ++different;
      differences += "command " + std::to_string(i) + ": " + shown(words) + "\n  ours   " + reply +
                     "  theirs " + expected;
    }
    INFO("RESP" << dialect << "\n" << differences);
    CHECK(different == 0);
  }
}

TEST_CASE("dialogues: what is pipelined is answered in order, whatever pieces it comes in",
          "[net]") {
  auto engine = Engine::open({});
  REQUIRE(engine);
  net::Node node{**engine};
  net::Batch batch;
  net::Connection whole{node, batch, nullptr, {.id = 1}};
  const std::string bytes = request_bytes({"SET", "k", "1"}) + request_bytes({"INCR", "k"}) +
                            "GET k\r\n" + request_bytes({"ECHO", std::string(5'000, 'e')}) +
                            request_bytes({"QUIT"}) + request_bytes({"GET", "k"});
  std::string expected;
  whole.receive(bytes, expected);
  CHECK(whole.closes());
  for (std::size_t piece = 1; piece < 300; ++piece) {
    net::Connection connection{node, batch, nullptr, {.id = 2}};
    std::string replies;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      connection.receive(std::string_view{bytes}.substr(at, piece), replies);
    }
    REQUIRE(replies == expected);
  }
}

TEST_CASE("dialogues: many requests at once are answered as one after the other", "[net]") {
  ManualClock clock;
  const Options options{.clock = &clock, .hash_seed = 1};
  const auto one = Engine::open(options);
  const auto other = Engine::open(options);
  net::Node one_node{**one};
  net::Node other_node{**other};
  net::Batch batch;
  net::Connection together{one_node, batch, nullptr, {.id = 1}};
  net::Connection apart{other_node, batch, nullptr, {.id = 1}};
  std::mt19937_64 random{Catch::rngSeed()};
  Generator generator{Catch::rngSeed()};
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    std::string expected;
    std::string story;
    for (std::size_t i = 1 + random() % 200; i > 0; --i) {
      Words words = generator.next();
      if (base::lower_of(words[0]) == "hrandfield") words = {"PING"};  // by chance
      bytes += request_bytes(words);
      story += shown(words) + "\n";
      apart.receive(request_bytes(words), expected);
    }
    std::string reply;
    together.receive(bytes, reply);
    INFO(story);
    REQUIRE(reply == expected);
    clock.advance(Millis{random() % 1'000});
  }
}

TEST_CASE("dialogues: after a protocol error nothing more is read", "[net]") {
  auto engine = Engine::open({});
  REQUIRE(engine);
  net::Node node{**engine};
  net::Batch batch;
  net::Connection connection{node, batch, nullptr, {.id = 1}};
  std::string replies;
  connection.receive("PING\r\n*1\r\nPING\r\nPING\r\n", replies);
  CHECK(replies == "+PONG\r\n-ERR Protocol error: expected '$', got 'P'\r\n");
  CHECK(connection.closes());
}

}  // namespace semel::tests
