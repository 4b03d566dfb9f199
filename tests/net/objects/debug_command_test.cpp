// DEBUG: replies of redis-server 7.0.15, and digests of which only equality counts.
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "base/stopwatch.hpp"
#include "net/session/busy_scripts.hpp"
#include "net/settings/settings.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

struct Debugged : Conversation {
  Debugged() : Conversation(2) {
    REQUIRE(node.settings.assign(net::Setting::enable_debug_command, "yes", {}).ok());
  }
  std::string debug(Words words, std::size_t client = 0) {
    words.insert(words.begin(), "DEBUG");
    return call(words, client);
  }
  std::string digest(const std::string& key) { return debug({"DIGEST-VALUE", key}); }
};

const std::string zeros(40, '0');

}  // namespace

TEST_CASE("DEBUG DIGEST-VALUE: equal values have one digest, whatever order filled them",
          "[net][objects][debug]") {
  Debugged one;
  const auto is_same = [&](const Words& first, const Words& second) {
    one.call({"FLUSHALL"});
    one.call(first);
    one.call(second);
    INFO(first[0]);
    CHECK(one.digest("a").size() == std::string{"*1\r\n+\r\n"}.size() + 40);
    CHECK(one.digest("a") != "*1\r\n+" + zeros + "\r\n");
    return one.digest("a") == one.digest("b");
  };
  CHECK(is_same({"SET", "a", "1"}, {"SET", "b", "1"}));
  CHECK_FALSE(is_same({"SET", "a", "1"}, {"SET", "b", "01"}));
  CHECK(is_same({"SADD", "a", "1", "x", "2"}, {"SADD", "b", "2", "1", "x"}));
  CHECK_FALSE(is_same({"SADD", "a", "1"}, {"SADD", "b", "2"}));
  CHECK(is_same({"HSET", "a", "f", "1", "g", "2"}, {"HSET", "b", "g", "2", "f", "1"}));
  CHECK_FALSE(is_same({"HSET", "a", "f", "1", "g", "2"}, {"HSET", "b", "f", "2", "g", "1"}));
  CHECK(is_same({"ZADD", "a", "1", "x", "2", "y"}, {"ZADD", "b", "2", "y", "1", "x"}));
  CHECK_FALSE(is_same({"ZADD", "a", "1", "x"}, {"ZADD", "b", "2", "x"}));
  CHECK(is_same({"RPUSH", "a", "x", "y"}, {"LPUSH", "b", "y", "x"}));
  CHECK_FALSE(is_same({"RPUSH", "a", "x", "y"}, {"RPUSH", "b", "y", "x"}));
  CHECK_FALSE(is_same({"RPUSH", "a", "xy", ""}, {"RPUSH", "b", "x", "y"}));
  CHECK(is_same({"XADD", "a", "1-1", "f", "v"}, {"XADD", "b", "1-1", "f", "v"}));
  CHECK_FALSE(is_same({"XADD", "a", "1-1", "f", "v"}, {"XADD", "b", "1-2", "f", "v"}));
  CHECK_FALSE(is_same({"RPUSH", "a", "x"}, {"SADD", "b", "x"}));
  // Longer ones, which are kept in another form.
  Words forth{"SADD", "a"};
  Words back{"SADD", "b"};
  for (int i = 0; i < 3'000; ++i) {
    forth.push_back("m" + std::to_string(i));
    back.push_back("m" + std::to_string(2'999 - i));
  }
  CHECK(is_same(forth, back));
  CHECK(one.call({"SREM", "b", "m7"}) == ":1\r\n");
  CHECK(one.digest("a") != one.digest("b"));
}

TEST_CASE("DEBUG DIGEST-VALUE: groups do not count, a ttl does, and an ended record is none",
          "[net][objects][debug]") {
  Debugged one;
  one.call({"XADD", "s", "1-1", "f", "v"});
  const std::string before = one.digest("s");
  one.call({"XGROUP", "CREATE", "s", "g", "0"});
  CHECK(one.digest("s") == before);
  one.call({"SET", "k", "v"});
  const std::string lasting = one.digest("k");
  one.call({"PEXPIRE", "k", "10"});
  CHECK(one.digest("k") != lasting);
  one.pass(Millis{10});
  CHECK(one.digest("k") == "*1\r\n+" + zeros + "\r\n");
  CHECK(one.debug({"DIGEST-VALUE"}) == "*0\r\n");
  CHECK(one.debug({"DIGEST-VALUE", "none", "none"}) ==
        "*2\r\n+" + zeros + "\r\n+" + zeros + "\r\n");
  CHECK(one.debug({"DIGEST-VALUE", std::string(2'000'000, 'k')}).starts_with("-ERR"));
  REQUIRE(one.call({"SEMEL.CLAIM", "ns", "job"}).find("granted") != std::string::npos);
  CHECK(one.digest("ns:job") != "*1\r\n+" + zeros + "\r\n");
}

TEST_CASE("DEBUG DIGEST: of all databases, and the same again when a change is taken back",
          "[net][objects][debug]") {
  Debugged one;
  CHECK(one.debug({"DIGEST"}) == "+" + zeros + "\r\n");
  one.call({"SET", "k", "v"});
  one.call({"RPUSH", "l", "a", "b"});
  const std::string first = one.debug({"DIGEST"});
  CHECK(first.size() == std::string{"+\r\n"}.size() + 40);
  one.call({"SELECT", "15"});
  CHECK(one.debug({"DIGEST"}) == first);
  one.call({"SET", "k", "v"});
  CHECK(one.debug({"DIGEST"}) != first);  // not cancelled by its like in another database
  CHECK(one.debug({"DIGEST"}) != "+" + zeros + "\r\n");
  one.call({"DEL", "k"});
  CHECK(one.debug({"DIGEST"}) == first);
  one.call({"SELECT", "0"});
  one.call({"RENAME", "k", "other"});
  CHECK(one.debug({"DIGEST"}) != first);
  one.call({"MULTI"});
  one.call({"RENAME", "other", "k"});
  one.debug({"DIGEST"});
  one.debug({"DIGEST-VALUE", "k"});
  const std::string executed = one.call({"EXEC"});
  CHECK(executed == "*3\r\n+OK\r\n" + first + one.digest("k"));
  one.call({"FLUSHALL"});
  CHECK(one.debug({"DIGEST"}) == "+" + zeros + "\r\n");
  CHECK(one.debug({"DIGEST", "0"}).starts_with("-ERR unknown subcommand"));
}

TEST_CASE("DEBUG PROTOCOL: each type in both dialects", "[net][objects][debug]") {
  Debugged one;
  one.call({"HELLO", "3"}, 1);
  struct Row {
    const char* type;
    const char* two;
    const char* three;
  };
  for (const Row& row : std::vector<Row>{
           {"string", "$11\r\nHello World\r\n", "$11\r\nHello World\r\n"},
           {"integer", ":12345\r\n", ":12345\r\n"},
           {"double", "$5\r\n3.141\r\n", ",3.141\r\n"},
           {"null", "$-1\r\n", "_\r\n"},
           {"array", "*3\r\n:0\r\n:1\r\n:2\r\n", "*3\r\n:0\r\n:1\r\n:2\r\n"},
           {"set", "*3\r\n:0\r\n:1\r\n:2\r\n", "~3\r\n:0\r\n:1\r\n:2\r\n"},
           {"map", "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
            "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n"},
           {"attrib", "$39\r\nSome real reply following the attribute\r\n",
            "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n"
            "$39\r\nSome real reply following the attribute\r\n"},
           {"PUSH", "-ERR RESP2 is not supported by this command\r\n",
            ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n"
            "$40\r\nSome real reply following the push reply\r\n"},
           {"verbatim", "$25\r\nThis is a verbatim\nstring\r\n",
            "=29\r\ntxt:This is a verbatim\nstring\r\n"},
           {"true", ":1\r\n", "#t\r\n"},
           {"false", ":0\r\n", "#f\r\n"},
           {"bignum", "$37\r\n1234567999999999999999999999999999999\r\n",
            "(1234567999999999999999999999999999999\r\n"},
       }) {
    INFO(row.type);
    CHECK(one.debug({"PROTOCOL", row.type}) == row.two);
    CHECK(one.debug({"PROTOCOL", row.type}, 1) == row.three);
  }
  CHECK(one.debug({"PROTOCOL", "foo"}) ==
        "-ERR Wrong protocol type name. Please use one of the following: string|integer|double|"
        "bignum|null|array|set|map|attrib|push|verbatim|true|false\r\n");
  CHECK(one.debug({"PROTOCOL"}) ==
        "-ERR unknown subcommand or wrong number of arguments for "
        "'PROTOCOL'. Try DEBUG HELP.\r\n");
}

TEST_CASE("DEBUG SLEEP: its connection waits for an hour at most, and others are served",
          "[net][objects][debug]") {
  Debugged one;
  for (const char* none : {"0", "-1", "x", "", "nan", "-inf", "0.0001"}) {
    INFO(none);
    CHECK(one.debug({"SLEEP", none}) == "+OK\r\n");
  }
  CHECK(one.debug({"SLEEP", "0.2"}).empty());
  CHECK(one.call({"PING"}, 1) == "+PONG\r\n");
  one.pass(Millis{199});
  CHECK(one.collect().empty());
  one.pass(Millis{1});
  CHECK(one.collect() == "+OK\r\n");
  CHECK(one.debug({"SLEEP", "inf"}).empty());
  one.pass(Millis{3'600'000});
  CHECK(one.collect() == "+OK\r\n");
  one.call({"MULTI"});
  one.debug({"SLEEP", "0.001"});
  CHECK(one.call({"EXEC"}) == "*1\r\n+OK\r\n");
}

TEST_CASE("DEBUG SLEEP: all wait where the node stands in for redis-server",
          "[net][objects][debug]") {
  Debugged one;
  REQUIRE(one.node.settings.assign(net::Setting::stand_in, "yes", {}).ok());
  CHECK(one.debug({"SLEEP", "0.001"}) == "+OK\r\n");  // the thread came back behind it
  CHECK(one.debug({"SLEEP", "-1"}) == "+OK\r\n");
  CHECK(one.call({"PING"}, 1) == "+PONG\r\n");
  const base::Stopwatch asleep;
  CHECK(one.debug({"SLEEP", "0.025"}) == "+OK\r\n");  // in more than one piece
  CHECK(asleep.passed() >= Millis{25});
  one.node.busy_scripts.end_all();  // as a node that ends does
  const base::Stopwatch ended;
  CHECK(one.debug({"SLEEP", "60"}) == "+OK\r\n");
  CHECK(ended.passed() < Millis{30'000});
}

TEST_CASE("DEBUG SLEEP: its time counts as that of the command", "[net][objects][debug]") {
  Debugged one;
  one.node.slow_log.set_limit_us(100'000);
  one.debug({"SLEEP", "0.05"});
  CHECK(one.node.slow_log.size() == 0);
  one.pass(Millis{50});
  CHECK(one.collect() == "+OK\r\n");
  one.debug({"SLEEP", "0.2"});
  one.call({"PING"}, 1);
  one.pass(Millis{200});
  REQUIRE(one.node.slow_log.size() == 1);
  CHECK(one.node.slow_log.newest(1)[0].us >= 200'000);
  CHECK(one.node.slow_log.newest(1)[0].args == Words{"DEBUG", "SLEEP", "0.2"});
}

TEST_CASE("DEBUG POPULATE: sets strings that are not there, to a size", "[net][objects][debug]") {
  Debugged one;
  one.call({"SET", "key:1", "mine"});
  one.call({"RPUSH", "k:0", "list"});
  CHECK(one.debug({"POPULATE", "3"}) == "+OK\r\n");
  CHECK(one.call({"MGET", "key:0", "key:1", "key:2", "key:3"}) ==
        "*4\r\n$7\r\nvalue:0\r\n$4\r\nmine\r\n$7\r\nvalue:2\r\n$-1\r\n");
  CHECK(one.debug({"POPULATE", "2", "k", "9"}) == "+OK\r\n");
  CHECK(one.call({"GET", "k:1"}) == std::string{"$9\r\nvalue:1\0\0\r\n", 15});
  CHECK(one.call({"TYPE", "k:0"}) == "+list\r\n");
  CHECK(one.debug({"POPULATE", "1", "short", "3"}) == "+OK\r\n");
  CHECK(one.call({"GET", "short:0"}) == "$3\r\nval\r\n");
  CHECK(one.debug({"POPULATE", "0"}) == "+OK\r\n");
  for (const Words& words : std::vector<Words>{{"POPULATE", "-1"},
                                               {"POPULATE", "x"},
                                               {"POPULATE", ""},
                                               {"POPULATE", "1", "k", "-1"},
                                               {"POPULATE", "1", "k", "x"}}) {
    CHECK(one.debug(words) == "-ERR value is out of range, must be positive\r\n");
  }
  CHECK(one.debug({"POPULATE", "1", "k", "99999999999"}).starts_with("-ERR"));
  CHECK(one.debug({"POPULATE", "1", std::string(70'000, 'k')}).starts_with("-ERR"));
  CHECK(one.debug({"POPULATE", "100000001"}) == "-ERR at most 100000000 keys\r\n");
  CHECK(one.debug({"POPULATE", "1", ""}) == "+OK\r\n");
  CHECK(one.call({"GET", ":0"}) == "$7\r\nvalue:0\r\n");
}

TEST_CASE("DEBUG POPULATE: WATCH sees it, and a full memory ends it", "[net][objects][debug]") {
  Debugged one;
  one.call({"WATCH", "key:5"}, 1);
  one.debug({"POPULATE", "10"});
  one.call({"MULTI"}, 1);
  one.call({"PING"}, 1);
  CHECK(one.call({"EXEC"}, 1) == "*-1\r\n");
  CHECK(one.debug({"POPULATE", "100000", "big", "65536"}).starts_with("-OOM"));
}

TEST_CASE("DEBUG SET-ACTIVE-EXPIRE: what has expired stays until it is asked for",
          "[net][objects][debug]") {
  Debugged one;
  std::vector<std::string> ended;
  one.call({"SET", "k", "v", "PX", "100"});
  CHECK(one.debug({"SET-ACTIVE-EXPIRE", "0"}) == "+OK\r\n");
  one.pass(Millis{200});
  CHECK(one.node.engine().stats().expired == 0);
  CHECK(one.call({"GET", "k"}) == "$-1\r\n");
  CHECK(one.debug({"SET-ACTIVE-EXPIRE", "1"}) == "+OK\r\n");
  one.call({"SET", "l", "v", "PX", "100"});
  one.pass(Millis{200});
  CHECK(one.node.engine().stats().expired >= 1);
}

TEST_CASE("DEBUG SET-DISABLE-DENY-SCRIPTS: scripts may call DEBUG and CLIENT LIST, no others",
          "[net][objects][debug]") {
  Debugged one;
  const auto run = [&](const std::string& command) {
    return one.call({"EVAL", "return redis.call(" + command + ")", "0"});
  };
  const std::string refused = "-ERR This Redis command is not allowed from script";
  CHECK(run("'debug', 'protocol', 'integer'").starts_with(refused));
  one.debug({"SET-DISABLE-DENY-SCRIPTS", "1"});
  CHECK(run("'debug', 'protocol', 'integer'") == ":12345\r\n");
  CHECK(run("'client', 'list'").find("cmd=") != std::string::npos);
  CHECK(run("'debug', 'sleep', '0.001'") == "+OK\r\n");
  CHECK(one.call({"EVAL", "redis.setresp(3) return redis.call('debug', 'protocol', 'attrib')",
                  "0"}) == "$39\r\nSome real reply following the attribute\r\n");
  for (const char* command :
       {"'subscribe', 'x'", "'multi'", "'client', 'kill', 'x'", "'watch', 'k'"}) {
    CHECK(run(command).starts_with(refused));
  }
  one.debug({"SET-DISABLE-DENY-SCRIPTS", "0"});
  CHECK(run("'debug', 'protocol', 'integer'").starts_with(refused));
}

TEST_CASE("DEBUG RELOAD: what is there already is not loaded beside itself",
          "[net][objects][debug]") {
  Debugged one;
  CHECK(one.debug({"RELOAD", "NOFLUSH"}) == "+OK\r\n");
  one.call({"SET", "k", "v"});
  for (const Words& words :
       std::vector<Words>{{"RELOAD", "NOFLUSH"}, {"RELOAD", "nosave", "noflush"}}) {
    CHECK(one.debug(words) == "-ERR Error trying to load the RDB dump\r\n");
  }
  CHECK(one.debug({"RELOAD", "NOFLUSH", "MERGE"}) == "+OK\r\n");
  CHECK(one.debug({"RELOAD", "MERGE"}) == "+OK\r\n");
  CHECK(one.call({"GET", "k"}) == "$1\r\nv\r\n");
  one.call({"DEL", "k"});
  one.call({"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() end)"});
  CHECK(one.debug({"RELOAD", "NOFLUSH"}) == "-ERR Error trying to load the RDB dump\r\n");
  CHECK(one.debug({"RELOAD"}) == "+OK\r\n");
}

TEST_CASE("DEBUG: what has no effect checks its words", "[net][objects][debug]") {
  Debugged one;
  for (const Words& words : std::vector<Words>{{"CHANGE-REPL-ID"},
                                               {"LOADAOF"},
                                               {"LOADAOF", "x"},
                                               {"PAUSE-CRON", "1"},
                                               {"RELOAD"},
                                               {"reload", "nosave", "NOFLUSH", "merge"},
                                               {"QUICKLIST-PACKED-THRESHOLD", "0"},
                                               {"QUICKLIST-PACKED-THRESHOLD", "1b"},
                                               {"QUICKLIST-PACKED-THRESHOLD", "4293918720"},
                                               {"REPLYBUFFER", "PEAK-RESET-TIME", "100"},
                                               {"REPLYBUFFER", "peak-reset-time", "never"},
                                               {"REPLYBUFFER", "PEAK-RESET-TIME", "reset"},
                                               {"REPLYBUFFER", "RESIZING", "0"}}) {
    INFO(words.back());
    CHECK(one.debug(words) == "+OK\r\n");
  }
  for (const char* threshold : {"-1", "x", "", "4293918721", "5gb"}) {
    CHECK(one.debug({"QUICKLIST-PACKED-THRESHOLD", threshold}) ==
          "-ERR argument must be a memory value bigger than 1 and smaller than 4gb\r\n");
  }
  CHECK(one.debug({"REPLYBUFFER", "PEAK-RESET-TIME", "x"}) ==
        "-ERR value is not an integer or out of range\r\n");
  CHECK(one.debug({"RELOAD", "NOSAVE", "x"}) ==
        "-ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.\r\n");
  CHECK(one.debug({"ERROR", "BAD\r\n+OK"}) == "-BAD  +OK\r\n");
  for (const Words& words : std::vector<Words>{{"JMAP"},
                                               {"SLEEP"},
                                               {"LISTPACK"},
                                               {"REPLYBUFFER", "foo", "1"},
                                               {"CHANGE-REPL-ID", "1"},
                                               {"HELP", "x"},
                                               {"SEGFAULT"},
                                               {std::string("sl\0ep", 5), "1"},
                                               {""}}) {
    CHECK(one.debug(words).starts_with("-ERR unknown subcommand or wrong number of arguments"));
  }
}

TEST_CASE("DEBUG LISTPACK and HTSTATS-KEY: by what OBJECT ENCODING says", "[net][objects][debug]") {
  Debugged one;
  one.call({"RPUSH", "list", "a"});
  one.call({"HSET", "hash", "f", "v"});
  one.call({"ZADD", "zset", "1", "m"});
  one.call({"SADD", "set", "a", "b"});
  one.call({"SADD", "numbers", "1"});
  const std::string no_listpack = "-ERR Not a listpack encoded object.\r\n";
  const std::string no_table =
      "-ERR The value stored at the specified key is not represented using an hash table\r\n";
  CHECK(one.debug({"LISTPACK", "list"}) == no_listpack);
  CHECK(one.debug({"LISTPACK", "set"}) == no_listpack);
  CHECK(one.debug({"LISTPACK", "hash"}).starts_with("+"));
  CHECK(one.debug({"LISTPACK", "zset"}).starts_with("+"));
  CHECK(one.debug({"LISTPACK", "none"}) == "-ERR no such key\r\n");
  CHECK(one.debug({"HTSTATS-KEY", "none"}) == "-ERR no such key\r\n");
  for (const char* key : {"list", "hash", "zset", "numbers"}) {
    CHECK(one.debug({"HTSTATS-KEY", key}) == no_table);
  }
  const auto has_count = [&](const std::string& key, int count) {
    return one.debug({"HTSTATS-KEY", key}).find("number of elements: " + std::to_string(count)) !=
           std::string::npos;
  };
  CHECK(has_count("set", 2));
  one.call({"CONFIG", "SET", "hash-max-listpack-entries", "0"});
  one.call({"CONFIG", "SET", "zset-max-listpack-entries", "0"});
  CHECK(one.debug({"LISTPACK", "hash"}) == no_listpack);
  CHECK(has_count("hash", 1));
  CHECK(has_count("zset", 1));
}

TEST_CASE("DEBUG: refused without the setting, HELP too", "[net][objects][debug]") {
  Conversation one;
  CHECK(one.call({"DEBUG", "HELP"}).starts_with("-ERR DEBUG command not allowed."));
  CHECK(one.call({"DEBUG", "DIGEST"}).starts_with("-ERR DEBUG command not allowed."));
  Debugged two;
  const std::string help = two.debug({"HELP"});
  CHECK(help.find("+DIGEST-VALUE [key ...]\r\n") != std::string::npos);
  CHECK(help.find("+HELP\r\n") != std::string::npos);
}

}  // namespace semel::tests
