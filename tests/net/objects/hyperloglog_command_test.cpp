// HyperLogLogs by commands: what a random dialogue with a redis-server does not meet.
#include <string>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"

namespace semel::tests {

namespace {

std::string stored(Conversation& node, const std::string& key) {
  const std::string reply = node.call({"GET", key});
  const std::size_t begin = reply.find('\n') + 1;
  return reply.substr(begin, reply.size() - begin - 2);
}

}  // namespace

TEST_CASE("PFADD: the bytes are those of a redis-server 7.0", "[net][objects][hll]") {
  Conversation node;
  CHECK(node.call({"PFADD", "h", "a", "b", "c"}) == ":1\r\n");
  const std::string registers =
      "`\xf3\x80P\xb1\x84K\xfb\x80"
      "BZ";
  const std::string head{"HYLL\x01\0\0\0", 8};
  CHECK(stored(node, "h") == head + std::string("\0\0\0\0\0\0\0\x80", 8) + registers);
  CHECK(node.call({"PFCOUNT", "h"}) == ":3\r\n");
  CHECK(stored(node, "h") == head + std::string("\x03\0\0\0\0\0\0\0", 8) + registers);
  CHECK(node.call({"PFADD", "h", "a"}) == ":0\r\n");
  CHECK(stored(node, "h") == head + std::string("\x03\0\0\0\0\0\0\0", 8) + registers);
}

TEST_CASE("PFCOUNT: a count that is stored wakes a watcher, one that was stored does not",
          "[net][objects][hll][watch]") {
  Conversation node{2};
  static_cast<void>(node.call({"PFADD", "h", "a"}));
  const auto executes = [&] {
    static_cast<void>(node.call({"WATCH", "h"}));
    static_cast<void>(node.call({"PFCOUNT", "h"}, 1));
    static_cast<void>(node.call({"MULTI"}));
    static_cast<void>(node.call({"PING"}));
    return node.call({"EXEC"}) != "*-1\r\n";
  };
  CHECK_FALSE(executes());
  CHECK(executes());
}

TEST_CASE("PFCOUNT: the right to read is enough, but no read-only script may call it",
          "[net][objects][hll]") {
  Conversation node;
  static_cast<void>(node.call({"PFADD", "h", "a"}));
  static_cast<void>(node.call({"ACL", "SETUSER", "u", "on", "nopass", "+@all", "%R~h"}));
  CHECK(node.call({"EVAL_RO", "return redis.call('PFCOUNT', KEYS[1])", "1", "h"})
            .starts_with("-ERR Write commands are not allowed from read-only scripts."));
  CHECK(node.call({"AUTH", "u", "x"}) == "+OK\r\n");
  CHECK(node.call({"PFCOUNT", "h"}) == ":1\r\n");
  CHECK(node.call({"PFADD", "h", "b"}).starts_with("-NOPERM "));
}

TEST_CASE("PFCOUNT: it counts where nothing may be stored", "[net][objects][hll]") {
  Conversation node;
  static_cast<void>(node.call({"PFADD", "h", "a", "b"}));
  const std::string before = stored(node, "h");
  // Memory is full.
  std::string reply;
  for (int i = 0; !reply.starts_with("-OOM"); ++i) {
    REQUIRE(i < 100'000);
    reply = node.call({"SET", "k" + std::to_string(i), std::string(1'000'000, 'x')});
  }
  CHECK(node.call({"PFCOUNT", "h"}) == ":2\r\n");
  CHECK(node.call({"PFCOUNT", "h", "none"}) == ":2\r\n");
  CHECK(stored(node, "h").substr(16) == before.substr(16));
}

TEST_CASE("PFADD: an error leaves the string as it was", "[net][objects][hll]") {
  Conversation node;
  const std::string damaged{"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x01\x01", 18};
  const std::string corrupt = "-INVALIDOBJ Corrupted HLL object detected\r\n";
  static_cast<void>(node.call({"SET", "h", damaged}));
  CHECK(node.call({"PFADD", "h", "a", "b"}) == corrupt);
  CHECK(node.call({"PFCOUNT", "h"}) == corrupt);
  CHECK(node.call({"PFCOUNT", "h", "none"}) == corrupt);
  CHECK(node.call({"PFMERGE", "new", "h"}) == corrupt);
  CHECK(node.call({"EXISTS", "new"}) == ":0\r\n");
  CHECK(stored(node, "h") == damaged);
  const std::string none = "-WRONGTYPE Key is not a valid HyperLogLog string value.\r\n";
  static_cast<void>(node.call({"SET", "s", "text"}));
  CHECK(node.call({"PFADD", "s", "a"}) == none);
  CHECK(node.call({"PFMERGE", "s", "none"}) == none);
  CHECK(node.call({"PFMERGE", "new", "s"}) == none);
}

TEST_CASE("PFADD: a HyperLogLog keeps its ttl, and is new after it", "[net][objects][hll]") {
  Conversation node;
  static_cast<void>(node.call({"PFADD", "h", "a"}));
  static_cast<void>(node.call({"PEXPIRE", "h", "1000"}));
  CHECK(node.call({"PFADD", "h", "b"}) == ":1\r\n");
  CHECK(node.call({"PFMERGE", "h"}) == "+OK\r\n");
  CHECK(node.call({"PTTL", "h"}) == ":1000\r\n");
  node.pass(Millis{1'000});
  CHECK(node.call({"PFCOUNT", "h"}) == ":0\r\n");
  CHECK(node.call({"PFADD", "h"}) == ":1\r\n");
  CHECK(node.call({"PFADD", "h"}) == ":0\r\n");
  CHECK(node.call({"PTTL", "h"}) == ":-1\r\n");
}

TEST_CASE("PFSELFTEST: registers and estimates hold, and nothing is kept", "[net][objects][hll]") {
  Conversation node;
  CHECK(node.call({"PFSELFTEST"}) == "+OK\r\n");
  CHECK(node.call({"DBSIZE"}) == ":0\r\n");
  CHECK(node.call({"PFSELFTEST", "x"}) ==
        "-ERR wrong number of arguments for 'pfselftest' command\r\n");
}

TEST_CASE("hll-sparse-max-bytes: it says which HyperLogLogs are dense", "[net][objects][hll]") {
  Conversation node;
  CHECK(node.call({"CONFIG", "SET", "hll-sparse-max-bytes", "20"}) == "+OK\r\n");
  static_cast<void>(node.call({"PFADD", "h", "a"}));
  CHECK(node.call({"PFDEBUG", "ENCODING", "h"}) == "+dense\r\n");
  CHECK(node.call({"CONFIG", "SET", "hll-sparse-max-bytes", "3000"}) == "+OK\r\n");
  static_cast<void>(node.call({"PFADD", "g", "a"}));
  CHECK(node.call({"PFDEBUG", "ENCODING", "g"}) == "+sparse\r\n");
  CHECK(node.call({"PFMERGE", "g", "h"}) == "+OK\r\n");
  CHECK(node.call({"PFDEBUG", "ENCODING", "g"}) == "+dense\r\n");
}

}  // namespace semel::tests
