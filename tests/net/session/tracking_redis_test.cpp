// CLIENT TRACKING beside a redis-server: the same replies, errors and messages, in the same order.
#include <string>
#include "tests/support/catch.hpp"

#include "tests/net/dialogue.hpp"
#include "tests/support/redis_or_skip.hpp"

namespace semel::tests {
namespace {

class Both {
 public:
  Both(LocalNode& local, const RedisServer& server, std::uint64_t id)
      : ours_(local.node, local.batch, id), theirs_(server.socket_path()) {}

  /// Its reply has the number of the connection.
  void speak_resp3() {
    CHECK(ours_.say("HELLO 3").starts_with("%7"));
    CHECK(theirs_.say(Words{"HELLO", "3"}, false).starts_with("%7"));
  }
  /// Not behind CLIENT CACHING: the marker behind a request ends its effect.
  void say(const std::string& line) {
    INFO(line);
    const Words words = words_in(line);
    const std::string ours = ours_.say(words);
    const bool in_transaction = ours_.in_transaction();
    CHECK(ours == theirs_.say(words, in_transaction));
  }
  void hear(const std::string& about) {
    INFO(about);
    const std::string ours = ours_.heard();
    CHECK(ours == theirs_.heard(ours_.in_transaction()));
  }

 private:
  NodeClient ours_;
  RedisClient theirs_;
};

}  // namespace

TEST_CASE("tracking beside redis-server: errors and what TRACKINGINFO says",
          "[net][tracking][redis]") {
  const auto server = redis_or_skip();
  if (server == nullptr) return;
  LocalNode local;
  Both client{local, *server, 1};
  for (const char* line : {"CLIENT TRACKING",
                           "CLIENT TRACKING MAYBE",
                           "CLIENT TRACKING ON NONSENSE",
                           "CLIENT TRACKING ON REDIRECT",
                           "CLIENT TRACKING ON PREFIX",
                           "CLIENT TRACKING ON PREFIX a",
                           "CLIENT TRACKING ON REDIRECT x",
                           "CLIENT TRACKING ON REDIRECT 0",
                           "CLIENT TRACKING ON REDIRECT -1",
                           "CLIENT TRACKING ON REDIRECT 999999",
                           "CLIENT TRACKING OFF NONSENSE",
                           "CLIENT TRACKING MAYBE BCAST",
                           "CLIENT TRACKING ON BCAST OPTIN",
                           "CLIENT TRACKING ON BCAST OPTOUT",
                           "CLIENT TRACKING ON OPTIN OPTOUT",
                           "CLIENT CACHING YES",
                           "CLIENT CACHING",
                           "CLIENT GETREDIR",
                           "CLIENT TRACKINGINFO",
                           "CLIENT TRACKING ON",
                           "CLIENT TRACKINGINFO",
                           "CLIENT GETREDIR",
                           "CLIENT TRACKING ON BCAST",
                           "CLIENT CACHING YES",
                           "CLIENT CACHING NO",
                           "CLIENT CACHING MAYBE",
                           "CLIENT TRACKING ON OPTIN",
                           "CLIENT CACHING NO",
                           "CLIENT CACHING YES",
                           "PING",
                           "CLIENT TRACKINGINFO",
                           "CLIENT TRACKING ON OPTOUT",
                           "CLIENT TRACKINGINFO",
                           "CLIENT TRACKING ON NOLOOP",
                           "CLIENT TRACKINGINFO",
                           "CLIENT TRACKING ON OPTOUT",
                           "CLIENT CACHING NO",
                           "CLIENT TRACKING OFF",
                           "CLIENT TRACKING OFF",
                           "CLIENT TRACKINGINFO",
                           "CLIENT TRACKING ON BCAST PREFIX ab PREFIX a",
                           "CLIENT TRACKING ON BCAST PREFIX a PREFIX ab",
                           "CLIENT TRACKING ON BCAST PREFIX b PREFIX a NOLOOP",
                           "CLIENT TRACKINGINFO",
                           "CLIENT TRACKING ON BCAST PREFIX a",
                           "CLIENT TRACKING ON BCAST PREFIX bc",
                           "CLIENT TRACKING ON",
                           "CLIENT TRACKING ON BCAST",
                           "CLIENT TRACKINGINFO",
                           "CLIENT TRACKING ON BCAST PREFIX c",
                           "CLIENT TRACKING OFF",
                           "MULTI",
                           "CLIENT TRACKING ON",
                           "GET k",
                           "SET k 1",
                           "CLIENT TRACKINGINFO",
                           "EXEC"}) {
    client.say(std::string{line});
  }
}

TEST_CASE("tracking beside redis-server: which changes are told of, and in which order",
          "[net][tracking][redis]") {
  const auto server = redis_or_skip();
  if (server == nullptr) return;
  const std::string options =
      GENERATE("", "NOLOOP", "BCAST", "BCAST NOLOOP PREFIX k PREFIX l", "OPTIN", "OPTOUT");
  INFO(options);
  LocalNode local;
  Both reader{local, *server, 1};
  Both writer{local, *server, 2};
  writer.say("FLUSHALL");
  reader.speak_resp3();
  reader.say("CLIENT TRACKING ON " + options);
  for (const char* change :
       {"SET k 1",        "SET k 1 NX",     "SETNX k 2",    "GETSET k 2", "APPEND k x",
        "SETRANGE k 0 y", "EXPIRE k 1000",  "PERSIST k",    "PERSIST k",  "MSET k 1 l 2 m 3",
        "INCR k",         "DEL k gone",     "DEL k",        "LPUSH l x",  "RPUSH k a b",
        "LPOP k",         "LREM k 0 none",  "RENAME k m",   "COPY m k",   "COPY m k",
        "SADD l a",       "HSET h f 1",     "HDEL h none",  "HDEL h f",   "ZADD z 1 a",
        "ZADD z 1 a",     "XADD x 1-1 f v", "SETBIT b 1 1", "PFADD p a",  "FLUSHDB",
        "FLUSHALL"}) {
    for (const char* read : {"MGET k l m", "HGET h f", "ZSCORE z a", "XLEN x", "GET b"}) {
      reader.say(std::string{read});
    }
    writer.say(std::string{change});
    reader.hear(change);
    // The message of BCAST about an own change follows the marker behind the request.
    if (options == "BCAST") continue;
    reader.say(std::string{change});
    reader.hear(change);
    writer.hear(change);
  }
}

}  // namespace semel::tests
