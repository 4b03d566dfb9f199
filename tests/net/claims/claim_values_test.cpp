// A claim is no value: what commands about keys do to one. Issue Once again, 14.
#include <string>

#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

constexpr const char* wrong_type =
    "-WRONGTYPE Operation against a key holding the wrong kind of value";

/// A node with a claim that is held, one that is done, and a string.
struct Story : NodeFixture {
  Story() {
    a.say("SEMEL.CLAIM jobs held");
    held = a.epoch;
    a.say("SEMEL.CLAIM jobs done");
    CHECK(a.say("SEMEL.COMPLETE jobs done % paid") == "outcome ok, late no");
    CHECK(a.say("SET value v") == "+OK");
  }
  void check_untouched() {
    CHECK(a.say("SEMEL.CLAIM jobs done") ==
          "outcome replay, attempt 1, result_expired no, result paid");
    CHECK(a.say("SEMEL.RENEW jobs held " + held).starts_with("outcome ok"));
    CHECK(a.say("GET value") == "v");
    CHECK(a.say("EXISTS elsewhere") == "0");
  }

  Client a{*node};
  std::string held;
};

}  // namespace

TEST_CASE("commands about keys change no claim", "[net][claims][once-again-14]") {
  Story f;
  for (const std::string key : {"jobs:held", "jobs:done"}) {
    for (const std::string& line :
         {"EXPIRE " + key + " 0",
          "EXPIRE " + key + " 1000 GT",
          "PEXPIRE " + key + " 1",
          "EXPIREAT " + key + " 1",
          "PEXPIREAT " + key + " 1",
          "PERSIST " + key,
          "RENAME " + key + " elsewhere",
          "RENAME value " + key,
          "RENAMENX " + key + " elsewhere",
          "COPY " + key + " elsewhere",
          "COPY value " + key + " REPLACE",
          "MOVE " + key + " 1",
          "SET " + key + " v",
          "SET " + key + " v XX",
          "SET " + key + " v EX 1",
          "SETEX " + key + " 1 v",
          "GETSET " + key + " v",
          "GETDEL " + key,
          "GETEX " + key + " PX 1",
          "APPEND " + key + " v",
          "SETRANGE " + key + " 0 v",
          "INCR " + key,
          "HSET " + key + " f v",
          "MSET elsewhere v " + key + " v",
          "EVAL return(redis.call([[expire]],KEYS[1],0)) 1 " + key,
          "EVAL return(redis.call([[set]],KEYS[1],[[v]],[[px]],1)) 1 " + key}) {
      CAPTURE(line);
      const std::string reply = f.a.say(line);
      CAPTURE(reply);
      CHECK(reply.starts_with("-WRONGTYPE"));
    }
    CHECK(f.a.say("SETNX " + key + " v") == "0");
    CHECK(f.a.say("COPY value " + key) == "0");
    CHECK(f.a.say("MULTI") == "+OK");
    CHECK(f.a.say("EXPIRE " + key + " 0") == "+QUEUED");
    CHECK(f.a.say("RENAME " + key + " elsewhere") == "+QUEUED");
    CHECK(f.a.say("EXEC") == std::string{"["} + wrong_type + " | " + wrong_type + "]");
  }
  f.check_untouched();
}

TEST_CASE("to delete a claim is to forget it, with the right to",
          "[net][claims][acl][once-again-14]") {
  Story f;
  CHECK(f.a.say("ACL SETUSER ada on >pw ~* &* +@all -semel.forget") == "+OK");
  Client ada{*f.node};
  CHECK(ada.say("AUTH ada pw") == "+OK");
  const std::string no = "-NOPERM this user has no permissions to run the 'semel.forget' command";
  for (const char* const line : {"DEL jobs:held", "UNLINK value jobs:done", "DELEX jobs:done",
                                 "FLUSHDB", "FLUSHALL ASYNC", "SWAPDB 0 1"}) {
    CAPTURE(line);
    CHECK(ada.say(line) == no);
  }
  CHECK(ada.say("EVAL return(redis.call([[del]],KEYS[1])) 1 jobs:held").starts_with("-"));
  CHECK(ada.say("MULTI") == "+OK");
  CHECK(ada.say("DEL jobs:held") == no);
  CHECK(ada.say("EXEC").starts_with("-EXECABORT"));
  CHECK(ada.say("DEL absent") == "0");
  f.check_untouched();
  CHECK(ada.say("DEL value") == "1");

  CHECK(f.a.say("DEL jobs:held") == "1");
  CHECK(f.engine->stats().claims_forgotten == 1);
  CHECK(f.a.say("SEMEL.CLAIM jobs held") == "outcome granted, epoch E, attempt 1, takeover no");
  const std::string why = f.a.say("SEMEL.EXPLAIN jobs held");
  CHECK(why.find("forget") != std::string::npos);
  CHECK(why.find("the record that there was had been forgotten") != std::string::npos);
  CHECK(f.a.say("FLUSHALL") == "+OK");
  CHECK(f.engine->stats().claims_forgotten == 3);
}

}  // namespace semel::tests
