// Streams and their groups: what the dialogues with a redis-server cannot show, as times, memory
// and records that come back.
#include <sstream>
#include <string>
#include <utility>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

std::string stream_bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}
std::string stream_entry(const std::string& id, const std::string& field,
                         const std::string& value) {
  return "*2\r\n" + stream_bulk(id) + "*2\r\n" + stream_bulk(field) + stream_bulk(value);
}
std::string stream_field(const std::string& reply, const std::string& name) {
  const std::size_t at = reply.find(stream_bulk(name));
  if (at == std::string::npos) return {};
  const std::size_t begin = at + stream_bulk(name).size();
  return reply.substr(begin, reply.find("\r\n", begin) - begin);
}

}  // namespace

TEST_CASE("streams: the id of * is the engine's time in ms since 1970, and only grows",
          "[net][objects][streams]") {
  Conversation node;
  const std::int64_t now = node.clock.unix_ms();
  CHECK(node.call({"XADD", "s", "*", "f", "1"}) == stream_bulk(std::to_string(now) + "-0"));
  CHECK(node.call({"XADD", "s", "*", "f", "2"}) == stream_bulk(std::to_string(now) + "-1"));
  node.clock.advance(Millis{5});
  CHECK(node.call({"XADD", "s", "*", "f", "3"}) == stream_bulk(std::to_string(now + 5) + "-0"));
  CHECK(node.call({"XADD", "s", std::to_string(now + 100) + "-7", "f", "4"}) ==
        stream_bulk(std::to_string(now + 100) + "-7"));
  CHECK(node.call({"XADD", "s", "*", "f", "5"}) == stream_bulk(std::to_string(now + 100) + "-8"));
  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"XADD", "t", "*", "f", "1"}));
  static_cast<void>(node.call({"XADD", "t", "*", "f", "2"}));
  CHECK(node.call({"EXEC"}) == "*2\r\n" + stream_bulk(std::to_string(now + 5) + "-0") +
                                   stream_bulk(std::to_string(now + 5) + "-1"));
}

TEST_CASE("streams: one without entries exists, and its last id stays", "[net][objects][streams]") {
  Conversation node;
  CHECK(node.call({"XADD", "s", "5-1", "f", "v"}) == stream_bulk("5-1"));
  CHECK(node.call({"XDEL", "s", "5-1"}) == ":1\r\n");
  CHECK(node.call({"XLEN", "s"}) == ":0\r\n");
  CHECK(node.call({"EXISTS", "s"}) == ":1\r\n");
  CHECK(node.call({"TYPE", "s"}) == "+stream\r\n");
  CHECK(node.call({"OBJECT", "ENCODING", "s"}) == stream_bulk("stream"));
  CHECK(node.call({"XADD", "s", "5-1", "f", "v"}).starts_with("-ERR The ID specified in XADD is"));
  CHECK(node.call({"XADD", "s", "5-*", "f", "v"}) == stream_bulk("5-2"));
  CHECK(node.call({"XTRIM", "s", "MAXLEN", "0"}) == ":1\r\n");
  CHECK(node.call({"EXISTS", "s"}) == ":1\r\n");
  CHECK(node.call({"DEL", "s"}) == ":1\r\n");
}

TEST_CASE("streams: a refused XADD makes no stream", "[net][objects][streams]") {
  Conversation node;
  CHECK(
      node.call({"XADD", "s", "0-0", "f", "v"}).starts_with("-ERR The ID specified in XADD must"));
  CHECK(node.call({"XADD", "s", "x", "f", "v"}).starts_with("-ERR Invalid stream ID"));
  CHECK(node.call({"XADD", "s", "NOMKSTREAM", "1-1", "f", "v"}) == "$-1\r\n");
  CHECK(node.call({"XADD", "s", "1-1", "f", "v", "g"}).starts_with("-ERR wrong number"));
  CHECK(node.call({"XGROUP", "CREATE", "s", "g", "x", "MKSTREAM"}).starts_with("-ERR Invalid"));
  CHECK(node.call({"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"}).starts_with("-NOGROUP"));
  CHECK(node.call({"EXISTS", "s"}) == ":0\r\n");
}

TEST_CASE("streams: ids that are pending count their time and deliveries",
          "[net][objects][streams]") {
  Conversation node;
  static_cast<void>(node.call({"XADD", "s", "1-1", "f", "v"}));
  static_cast<void>(node.call({"XADD", "s", "1-2", "f", "w"}));
  CHECK(node.call({"XGROUP", "CREATE", "s", "g", "0"}) == "+OK\r\n");
  CHECK(node.call({"XREADGROUP", "GROUP", "g", "a", "COUNT", "1", "STREAMS", "s", ">"}) ==
        "*1\r\n*2\r\n" + stream_bulk("s") + "*1\r\n" + stream_entry("1-1", "f", "v"));
  node.clock.advance(Millis{70});
  CHECK(node.call({"XPENDING", "s", "g", "-", "+", "9"}) ==
        "*1\r\n*4\r\n" + stream_bulk("1-1") + stream_bulk("a") + ":70\r\n:1\r\n");
  CHECK(node.call({"XPENDING", "s", "g", "IDLE", "71", "-", "+", "9"}) == "*0\r\n");
  CHECK(node.call({"XCLAIM", "s", "g", "b", "71", "1-1"}) == "*0\r\n");
  CHECK(node.call({"XCLAIM", "s", "g", "b", "70", "1-1"}) ==
        "*1\r\n" + stream_entry("1-1", "f", "v"));
  CHECK(node.call({"XPENDING", "s", "g", "-", "+", "9"}) ==
        "*1\r\n*4\r\n" + stream_bulk("1-1") + stream_bulk("b") + ":0\r\n:2\r\n");
  node.clock.advance(Millis{5});
  const std::string consumers = node.call({"XINFO", "CONSUMERS", "s", "g"});
  CHECK(stream_field(consumers, "idle") == ":75");  // of a, which asked last 75 ms ago
  CHECK(node.call({"XREADGROUP", "GROUP", "g", "b", "STREAMS", "s", "0"}) ==
        "*1\r\n*2\r\n" + stream_bulk("s") + "*1\r\n" + stream_entry("1-1", "f", "v"));
  CHECK(node.call({"XPENDING", "s", "g", "-", "+", "9"}) ==
        "*1\r\n*4\r\n" + stream_bulk("1-1") + stream_bulk("b") + ":0\r\n:3\r\n");
  CHECK(node.call({"XACK", "s", "g", "1-1", "1-1"}) == ":1\r\n");
}

TEST_CASE("streams: an entry that was deleted while it was pending is named by XAUTOCLAIM",
          "[net][objects][streams]") {
  Conversation node;
  for (const char* id : {"1-1", "1-2", "1-3"}) {
    static_cast<void>(node.call({"XADD", "s", id, "f", "v"}));
  }
  static_cast<void>(node.call({"XGROUP", "CREATE", "s", "g", "0"}));
  static_cast<void>(node.call({"XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">"}));
  CHECK(node.call({"XDEL", "s", "1-2"}) == ":1\r\n");
  CHECK(node.call({"XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", "1-1"}) ==
        "*1\r\n*2\r\n" + stream_bulk("s") + "*2\r\n*2\r\n" + stream_bulk("1-2") + "*-1\r\n" +
            stream_entry("1-3", "f", "v"));
  CHECK(node.call({"XAUTOCLAIM", "s", "g", "b", "0", "-", "COUNT", "2"}) ==
        "*3\r\n" + stream_bulk("1-3") + "*1\r\n" + stream_entry("1-1", "f", "v") + "*1\r\n" +
            stream_bulk("1-2"));
  CHECK(node.call({"XAUTOCLAIM", "s", "g", "b", "0", "1-3", "JUSTID"}) ==
        "*3\r\n" + stream_bulk("0-0") + "*1\r\n" + stream_bulk("1-3") + "*0\r\n");
  CHECK(node.call({"XPENDING", "s", "g"}) == "*4\r\n:2\r\n" + stream_bulk("1-1") +
                                                 stream_bulk("1-3") + "*1\r\n*2\r\n" +
                                                 stream_bulk("b") + stream_bulk("2"));
}

TEST_CASE("streams: names of groups and consumers are any bytes", "[net][objects][streams]") {
  Conversation node;
  const std::string zeros{"\0\0", 2};
  const std::string high(200, '\xff');
  static_cast<void>(node.call({"XADD", zeros, "1-1", zeros, high}));
  for (const std::string& group : {zeros, high, std::string{}, std::string{"g"}}) {
    CHECK(node.call({"XGROUP", "CREATE", zeros, group, "0"}) == "+OK\r\n");
    CHECK(node.call({"XGROUP", "CREATE", zeros, group, "0"}).starts_with("-BUSYGROUP "));
    for (const std::string& consumer : {zeros, high, std::string{}}) {
      CHECK(node.call({"XGROUP", "CREATECONSUMER", zeros, group, consumer}) == ":1\r\n");
    }
    CHECK(node.call({"XREADGROUP", "GROUP", group, high, "STREAMS", zeros, ">"}) ==
          "*1\r\n*2\r\n" + stream_bulk(zeros) + "*1\r\n" + stream_entry("1-1", zeros, high));
    CHECK(node.call({"XPENDING", zeros, group, "-", "+", "5", high}).starts_with("*1\r\n"));
  }
  CHECK(node.call({"XGROUP", "DELCONSUMER", zeros, high, high}) == ":1\r\n");
  CHECK(node.call({"XPENDING", zeros, high}) == "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n");
  CHECK(node.call({"XGROUP", "DESTROY", zeros, zeros}) == ":1\r\n");
  CHECK(node.call({"XINFO", "GROUPS", zeros}).starts_with("*3\r\n"));
}

TEST_CASE("streams: a watched one that changes stops the transaction", "[net][objects][streams]") {
  Conversation node{2};
  static_cast<void>(node.call({"XADD", "s", "1-1", "f", "v"}));
  static_cast<void>(node.call({"WATCH", "s"}));
  static_cast<void>(node.call({"XADD", "s", "1-2", "f", "v"}, 1));
  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"XLEN", "s"}));
  CHECK(node.call({"EXEC"}) == "*-1\r\n");
  static_cast<void>(node.call({"WATCH", "s"}));
  static_cast<void>(node.call({"XRANGE", "s", "-", "+"}, 1));
  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"XLEN", "s"}));
  CHECK(node.call({"EXEC"}) == "*1\r\n:2\r\n");
}

TEST_CASE("streams: rights are asked for each key behind STREAMS, whatever the options are named",
          "[net][objects][streams]") {
  Conversation node;
  for (const char* key : {"mine", "other"}) {
    static_cast<void>(node.call({"XADD", key, "1-1", "f", "v"}));
    static_cast<void>(node.call({"XGROUP", "CREATE", key, "STREAMS", "0"}));
  }
  static_cast<void>(node.call({"ACL", "SETUSER", "u", "on", "nopass", "+@all", "~mine"}));
  const auto may_run = [&](Words words) {
    words.insert(words.begin(), {"ACL", "DRYRUN", "u"});
    return node.call(words) == "+OK\r\n";
  };
  CHECK(may_run({"XREAD", "COUNT", "1", "BLOCK", "5", "STREAMS", "mine", "0"}));
  CHECK_FALSE(may_run({"XREAD", "STREAMS", "mine", "other", "0", "0"}));
  CHECK_FALSE(may_run({"XREAD", "COUNT", "STREAMS", "STREAMS", "other", "0"}));
  CHECK(may_run({"XREADGROUP", "GROUP", "STREAMS", "mine", "STREAMS", "mine", ">"}));
  CHECK_FALSE(may_run({"XREADGROUP", "GROUP", "STREAMS", "mine", "STREAMS", "other", ">"}));
  CHECK_FALSE(may_run({"XREADGROUP", "NOACK", "GROUP", "g", "streams", "STREAMS", "other", ">"}));
  CHECK_FALSE(may_run({"XADD", "other", "*", "f", "v"}));
  CHECK_FALSE(may_run({"XGROUP", "CREATE", "other", "g", "0"}));
}

TEST_CASE("streams: with memory full, entries can be read, acknowledged and trimmed",
          "[net][objects][streams]") {
  Conversation node;
  static_cast<void>(node.call({"XADD", "s", "1-1", "f", "v"}));
  static_cast<void>(node.call({"XADD", "s", "1-2", "f", "v"}));
  static_cast<void>(node.call({"XGROUP", "CREATE", "s", "g", "0"}));
  static_cast<void>(node.call({"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"}));
  REQUIRE(node.call({"CONFIG", "SET", "maxmemory", "4194304"}) == "+OK\r\n");
  const std::string value(100'000, 'v');
  int held = 0;
  while (node.call({"SET", "k" + std::to_string(held), value}) == "+OK\r\n") ++held;
  REQUIRE(held > 5);
  CHECK(node.call({"XADD", "new", "1-1", "f", value}).starts_with("-OOM"));
  CHECK(node.call({"XRANGE", "s", "-", "+", "COUNT", "1"}) ==
        "*1\r\n" + stream_entry("1-1", "f", "v"));
  CHECK(node.call({"XACK", "s", "g", "1-1"}) == ":1\r\n");
  CHECK(node.call({"XTRIM", "s", "MAXLEN", "1"}) == ":1\r\n");
  CHECK(node.call({"XLEN", "s"}) == ":1\r\n");
}

TEST_CASE("streams: what XREADGROUP has delivered is in its reply, also if memory ends behind it",
          "[net][objects][streams]") {
  Conversation node;
  constexpr int many = 20'000;
  REQUIRE(node.call({"XADD", "a", "1-1", "f", "v"}) == "$3\r\n1-1\r\n");
  for (int i = 1; i <= many; ++i) {
    static_cast<void>(node.call({"XADD", "b", "1-" + std::to_string(i), "f", "v"}));
  }
  for (const char* key : {"a", "b"}) {
    REQUIRE(node.call({"XGROUP", "CREATE", key, "g", "0"}) == "+OK\r\n");
  }
  REQUIRE(node.call({"CONFIG", "SET", "maxmemory", "4194304"}) == "+OK\r\n");
  for (std::size_t bytes = 100'000; bytes >= 100; bytes /= 10) {
    const std::string value(bytes, 'v');
    int held = 0;
    const auto key = [&] { return std::to_string(bytes) + ":" + std::to_string(held++); };
    while (node.call({"SET", key(), value}) == "+OK\r\n") {
    }
  }
  for (int i = 0; i < 100; ++i) {  // room for what a takes
    static_cast<void>(node.call({"DEL", "100:" + std::to_string(i)}));
  }
  const auto read = [&](const std::string& words) {
    Words request{"XREADGROUP", "GROUP", "g", "c", "COUNT", std::to_string(many), "STREAMS"};
    std::string word;
    for (std::istringstream rest{words}; rest >> word;) request.push_back(word);
    return node.call(request);
  };
  const auto pending = [&](const std::string& key) {
    return node.call({"XPENDING", key, "g"}).substr(0, 6);
  };
  CHECK(read("b >").starts_with("-OOM"));
  CHECK(read("b a > >").starts_with("-OOM"));
  CHECK(pending("a") == "*4\r\n:0");
  CHECK(read("a b > >") == "*1\r\n*2\r\n$1\r\na\r\n*1\r\n" + stream_entry("1-1", "f", "v"));
  CHECK(pending("a") == "*4\r\n:1");
  CHECK(pending("b") == "*4\r\n:0");
  // Nothing new was delivered: the error is the answer.
  CHECK(read("a b 0 >").starts_with("-OOM"));
  CHECK(pending("a") == "*4\r\n:1");
}

TEST_CASE("streams: a snapshot brings back a stream with its groups", "[net][objects][streams]") {
  Conversation node;
  for (int i = 0; i < 300; ++i) {
    static_cast<void>(node.call({"XADD", "s", "1-" + std::to_string(i + 1), "f", "v"}));
  }
  static_cast<void>(node.call({"XGROUP", "CREATE", "s", "g", "0"}));
  static_cast<void>(node.call({"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"}));
  static_cast<void>(node.call({"XDEL", "s", "1-7"}));
  Conversation again;
  REQUIRE(node.engine->host().snapshot(
      [&](const Mutation& put) { CHECK(again.engine->host().restore(put)); }));
  for (const Words& words : {Words{"XINFO", "STREAM", "s", "FULL", "COUNT", "0"},
                             Words{"XPENDING", "s", "g"}, Words{"XINFO", "GROUPS", "s"}}) {
    CHECK(again.call(words) == node.call(words));
  }
}

TEST_CASE("streams: MEMORY USAGE grows with the entries", "[net][objects][streams]") {
  Conversation node;
  static_cast<void>(node.call({"XADD", "s", "1-1", "f", "v"}));
  const std::string small = node.call({"MEMORY", "USAGE", "s"});
  static_cast<void>(node.call({"XADD", "s", "1-2", "f", std::string(1'000, 'v')}));
  const std::string large = node.call({"MEMORY", "USAGE", "s"});
  CHECK(std::stoi(large.substr(1)) > std::stoi(small.substr(1)) + 1'000);
}

}  // namespace semel::tests
