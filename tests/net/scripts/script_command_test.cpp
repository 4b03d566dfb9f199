// Scripts and functions as commands: beside a redis-server, and what is our own of them.
#include <string>
#include <string_view>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/resp/text.hpp"
#include "net/scripts/script_text.hpp"
#include "semel/local_redis.hpp"
#include "tests/net/conversation.hpp"
#include "tests/net/differential/beside.hpp"

namespace semel::tests {
namespace {

constexpr std::string_view one_sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";  // return 1

std::string library(std::string_view name, std::string_view function) {
  return "#!lua name=" + std::string{name} + "\nredis.register_function('" + std::string{function} +
         "', function(keys, args) return {keys[1] or '-', args[1] or '-'} end)";
}

}  // namespace

TEST_CASE("scripts: numbers of keys and digests are refused as redis-server does it",
          "[net][script][redis]") {
  const std::string sha{one_sha};
  std::string large = sha;
  for (char& c : large) c = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  play_beside({{"EVAL"},
               {"EVAL", "return 1"},
               {"EVAL", "return 1", "x"},
               {"EVAL", "return 1", "-1"},
               {"EVAL", "return 1", "1"},
               {"EVAL", "return 1", "2", "a"},
               {"EVAL", "return 1", " 1", "a"},
               {"EVAL", "return 1", "99999999999999999999"},
               {"EVALSHA", sha, "0"},
               {"EVALSHA", sha, "-1"},
               {"EVALSHA", "x", "a"},
               {"EVAL", "return 1", "0"},
               {"EVALSHA", sha, "0"},
               {"EVALSHA", large, "0"},
               {"EVALSHA_RO", sha, "0"},
               {"SCRIPT", "EXISTS", sha, large, "x", ""},
               {"SCRIPT", "FLUSH", "x"},
               {"SCRIPT", "FLUSH", "sync", "x"},
               {"SCRIPT", "FLUSH", "async"},
               {"EVALSHA", sha, "0"},
               {"SCRIPT", "LOAD", "return 1"},
               {"SCRIPT", "EXISTS", sha},
               {"SCRIPT", "FLUSH", "SYNC"},
               {"SCRIPT", "EXISTS", sha},
               {"SCRIPT", "LOAD", "foo bar"},
               {"EVAL", "foo bar", "0"},
               {"EVAL", "foo bar", "-1"},
               {"SCRIPT"},
               {"SCRIPT", "x"},
               {"SCRIPT", "LOAD"},
               {"SCRIPT", "KILL"},
               {"SCRIPT", "KILL", "x"},
               {"SCRIPT", "DEBUG", "no"},
               {"SCRIPT", "DEBUG", "x"},
               {"COMMAND", "GETKEYS", "EVAL", "return 1", "2", "a", "b", "c"},
               {"COMMAND", "GETKEYS", "FCALL", "f", "1", "a", "b"}});
}

TEST_CASE("scripts: the first line is read as redis-server reads it", "[net][script][redis]") {
  std::vector<Words> all;
  for (const char* line :
       {"#!lua",
        "#!",
        "#!lua\n",
        "#!lua\nreturn 1",
        "#!lua flags=\nreturn 1",
        "#!lua flags=bad\nreturn 1",
        "#!lua flags=no-writes,bad\nreturn 1",
        "#!lua flags=no-writes,,allow-oom\nreturn 1",
        "#!lua flags=no-writes,\nreturn 1",
        "#!lua x=1\nreturn 1",
        "#!lua  flags=no-writes \nreturn 1",
        "#!lua flags=no-writes flags=allow-oom\nreturn redis.call('set', 'a', '1')",
        "#!foo\nreturn 1",
        "#! lua\nreturn 1",
        "#!lua\r\nreturn 1",
        "#!lua name=x\nreturn 1",
        " #!lua\nreturn 1",
        "#!LUA\nreturn 1",
        "#!lua Flags=no-writes\nreturn 1",
        "#!lua \"flags=no-writes\"\nreturn 1",
        "#!lua 'flags=no-writes'\nreturn 1",
        "#!lua flags=\"no-writes\"\nreturn 1",
        "#!lua flags=\"no-writes\nreturn 1",
        "#!lua a\"b\nreturn 1",
        "#!lua \"a\"b\nreturn 1",
        "#!lua\t\nreturn 1",
        "#!lua\nfoo bar",
        "#!lua\n\nerror('x')",
        "#!lua flags=no-writes,allow-oom,allow-stale,no-cluster,allow-cross-slot-keys\nreturn 1",
        "#!lua flags=no-writes\nreturn redis.call('set', 'a', 'b')",
        "#!lua flags=no-writes\nreturn redis.call('publish', 'a', 'b')"}) {
    all.push_back({"EVAL", line, "0"});
    all.push_back({"EVAL_RO", line, "0"});
    all.push_back({"SCRIPT", "LOAD", line});
  }
  play_beside(all);
}

TEST_CASE("scripts: commands are refused to them in redis-server's words", "[net][script][redis]") {
  std::vector<Words> all;
  for (const char* called : {"'nosuch'",
                             "'get'",
                             "'get', 'a', 'b'",
                             "'multi'",
                             "'eval', 'return 1', '0'",
                             "'config', 'get', 'x'",
                             "'config'",
                             "'config', 'x'",
                             "'client', 'id'",
                             "'ping'",
                             "'select', '3'",
                             "'select', '99'",
                             "'shutdown'",
                             "'function', 'list'",
                             "'acl', 'whoami'",
                             "'publish', 'a', 'b'",
                             "'subscribe', 'a'",
                             "'wait', '0', '0'",
                             "'reset'",
                             "'quit'",
                             "'hello', '3'",
                             "'monitor'",
                             "'object', 'x'",
                             "'watch', 'x'",
                             "'flushall'",
                             "'swapdb', '0', '1'",
                             "'hset', 'h', 'f', '1'",
                             "'get', 'h'",
                             "'incr', 'h'",
                             "'script', 'load', 'x'",
                             "'discard'",
                             "'exec'",
                             "'unwatch'",
                             "'auth', 'x'",
                             "'script'",
                             "'set', 'n', 'x'",
                             "'incr', 'n'",
                             "'SET', 'n', '7'",
                             "'Incr', 'n'",
                             "'dbsize'"}) {
    for (const char* how : {"call", "pcall"}) {
      for (const char* command : {"EVAL", "EVAL_RO"}) {
        all.push_back({command, "return redis." + std::string{how} + "(" + called + ")", "0"});
      }
    }
  }
  for (const char* called : {"'set', 'x', '1'", "'nosuch'", "'get', 'x'"}) {
    all.push_back({"EVAL", "return redis.acl_check_cmd(" + std::string{called} + ")", "0"});
  }
  play_beside(all);
}

TEST_CASE("scripts: a database chosen inside is not the client's afterwards",
          "[net][script][redis]") {
  play_beside({{"SELECT", "1"},
               {"EVAL", "redis.call('select', '3') return redis.call('set', 'x', '1')", "0"},
               {"GET", "x"},
               {"SELECT", "3"},
               {"GET", "x"},
               {"EVAL", "redis.call('select', '5') error('no')", "0"},
               {"GET", "x"},
               {"MULTI"},
               {"EVAL", "redis.call('select', '4') return redis.call('set', 'y', '1')", "0"},
               {"SET", "z", "1"},
               {"EXEC"},
               {"EXISTS", "x", "y", "z"}});
}

TEST_CASE("scripts: in transactions, with WATCH", "[net][script][redis]") {
  const std::string bump = "return redis.call('incr', KEYS[1])";
  play_beside({{"MULTI"},
               {"EVAL", bump, "1", "n"},
               {"EVALSHA", net::sha1_hex(bump), "1", "n"},
               {"SCRIPT", "LOAD", "return 2"},
               {"EVAL", "return redis.call('incr')", "0"},
               {"EVAL", "x x", "0"},
               {"GET", "n"},
               {"EXEC"},
               {"WATCH", "n"},
               {"EVAL", bump, "1", "n"},
               {"MULTI"},
               {"GET", "n"},
               {"EXEC"},
               {"WATCH", "new"},
               {"EVAL", "redis.call('set', 'new', 1) redis.call('del', 'new')", "0"},
               {"MULTI"},
               {"PING"},
               {"EXEC"},
               {"WATCH", "n"},
               {"EVAL", "return redis.call('get', KEYS[1])", "1", "n"},
               {"MULTI"},
               {"EVAL", "error('no')", "0"},
               {"EXEC"}});
}

TEST_CASE("functions: loaded, listed, called and removed as redis-server does it",
          "[net][script][redis]") {
  const std::string flags =
      "#!LUA name=flags\nredis.register_function{function_name='look', callback=function(k, a) "
      "return redis.call('get', k[1]) end, flags={'no-writes'}, description='looks'}";
  const std::string writes =
      "#!lua name=writes\nredis.register_function('put', function(k, a) return redis.call('set', "
      "k[1], a[1]) end)";
  play_beside({{"FUNCTION"},
               {"FUNCTION", "x"},
               {"FUNCTION", "LOAD"},
               {"FUNCTION", "LOAD", "return 1"},
               {"FUNCTION", "LOAD", "#!lua\nreturn 1"},
               {"FUNCTION", "LOAD", "#!lua name=x\nreturn 1"},
               {"FUNCTION", "LOAD", "#!lua name=x"},
               {"FUNCTION", "LOAD", "#!foo name=x\nreturn 1"},
               {"FUNCTION", "LOAD", "#!foo\nreturn 1"},
               {"FUNCTION", "LOAD", "#!\nreturn 1"},
               {"FUNCTION", "LOAD", "#!lua name=x name=y\nreturn 1"},
               {"FUNCTION", "LOAD", "#!lua foo=x\nreturn 1"},
               {"FUNCTION", "LOAD", "#!lua name=a-b\nreturn 1"},
               {"FUNCTION", "LOAD", "#!lua name=\nreturn 1"},
               {"FUNCTION", "LOAD", "#!lua name=\"x\nreturn 1"},
               {"FUNCTION", "LOAD", library("lib", "f")},
               {"FUNCTION", "LOAD", library("lib", "f")},
               {"FUNCTION", "LOAD", library("other", "f")},
               {"FCALL", "f", "1", "k", "v"},
               {"FCALL", "F", "0"},
               {"FUNCTION", "LOAD", "REPLACE", library("lib", "g")},
               {"FUNCTION", "LOAD", "x", library("lib", "g")},
               {"FUNCTION", "LOAD", "REPLACE", "x", library("lib", "g")},
               {"FCALL", "f", "0"},
               {"FCALL", "g", "1", "k", "v"},
               {"FUNCTION", "LOAD", "#!lua name=bad\nfoo bar"},
               {"FUNCTION", "LOAD", flags},
               {"FUNCTION", "LIST", "LIBRARYNAME", "LIB*"},
               {"FUNCTION", "LIST", "LIBRARYNAME", "fl?gs", "WITHCODE"},
               {"FUNCTION", "LIST", "LIBRARYNAME"},
               {"FUNCTION", "LIST", "x"},
               {"FUNCTION", "LIST", "WITHCODE", "WITHCODE"},
               {"FUNCTION", "LIST", "LIBRARYNAME", "a", "LIBRARYNAME", "b"},
               {"FUNCTION", "LOAD", writes},
               {"FCALL"},
               {"FCALL", "x"},
               {"FCALL", "x", "-1"},
               {"FCALL", "g", "a"},
               {"FCALL", "g", "-1"},
               {"FCALL", "g", "1"},
               {"FCALL", "put", "1", "k", "v"},
               {"FCALL_RO", "put", "1", "k", "v"},
               {"FCALL_RO", "look", "1", "k"},
               {"FCALL", "look", "1", "k"},
               {"FUNCTION", "STATS"},
               {"FUNCTION", "KILL"},
               {"FUNCTION", "DELETE", "x"},
               {"FUNCTION", "DELETE", "LIB"},
               {"FUNCTION", "DELETE", "lib"},
               {"FUNCTION", "RESTORE", "x"},
               {"FUNCTION", "RESTORE", "x", "y"},
               {"FUNCTION", "RESTORE", "x", "flush", "z"},
               {"FUNCTION", "FLUSH", "x"},
               {"FUNCTION", "FLUSH", "SYNC", "x"},
               {"FUNCTION", "FLUSH", "ASYNC"},
               {"FUNCTION", "STATS"},
               {"FCALL", "put", "0"}});
}

TEST_CASE("scripts: rights are those of the caller", "[net][script][redis]") {
  play_beside({{"ACL", "SETUSER", "al", "on", "nopass", "+@all", "-get", "~k*", "&c*"},
               {"AUTH", "al", "x"},
               {"EVAL", "return redis.call('get', 'k')", "0"},
               {"EVAL", "return redis.pcall('get', 'k')", "0"},
               {"EVAL", "return redis.call('set', 'x', 'k')", "0"},
               {"EVAL", "return redis.call('set', 'k', '1')", "0"},
               {"EVAL", "return redis.call('publish', 'x', 'k')", "0"},
               {"EVAL", "return redis.call('publish', 'c', 'k')", "0"},
               {"EVAL", "return redis.acl_check_cmd('get', 'k')", "0"},
               {"EVAL", "return redis.acl_check_cmd('set', 'k', '1')", "0"},
               {"EVAL", "return redis.acl_check_cmd('set', 'z', '1')", "0"},
               {"EVAL", "return 1", "1", "z"},
               {"EVAL", "return 1", "1", "k"},
               {"ACL", "SETUSER", "al", "-eval"},
               {"EVAL", "return 1", "1", "k"},
               {"EVALSHA", std::string{one_sha}, "1", "k"},
               {"AUTH", "default", "x"},
               {"ACL", "DELUSER", "al"}});
}

TEST_CASE("scripts: EVAL keeps 500 of them, SCRIPT LOAD all", "[net][script]") {
  Conversation one;
  const auto text = [](int i) { return "return " + std::to_string(i); };
  const auto is_there = [&](int i) {
    return one.call({"SCRIPT", "EXISTS", net::sha1_hex(text(i))}) == "*1\r\n:1\r\n";
  };
  constexpr int bound = 500;
  static_cast<void>(one.call({"SCRIPT", "LOAD", text(-1)}));
  for (int i = 0; i < bound; ++i) static_cast<void>(one.call({"EVAL", text(i), "0"}));
  for (int i = -1; i < bound; ++i) REQUIRE(is_there(i));
  CHECK(one.call({"EVALSHA", net::sha1_hex(text(0)), "0"}) == ":0\r\n");
  CHECK(one.call({"EVAL", text(bound), "0"}) == ":500\r\n");
  CHECK(is_there(-1));
  CHECK(is_there(0));  // used after 1 was
  CHECK_FALSE(is_there(1));
  CHECK(one.call({"EVALSHA", net::sha1_hex(text(1)), "0"}).starts_with("-NOSCRIPT"));
  CHECK(is_there(2));
  CHECK(is_there(bound));
  CHECK(one.call({"SCRIPT", "LOAD", text(2)}).starts_with("$40"));  // from now on it stays
  for (int i = 1; i <= bound; ++i) static_cast<void>(one.call({"EVAL", text(bound + i), "0"}));
  CHECK(is_there(2));
  CHECK(is_there(-1));
  CHECK_FALSE(is_there(3));
  const std::string info = one.call({"INFO", "memory"});
  CHECK(info.find("number_of_cached_scripts:502\r\n") != std::string::npos);
  CHECK(one.call({"SCRIPT", "FLUSH"}) == "+OK\r\n");
  CHECK_FALSE(is_there(-1));
}

TEST_CASE("scripts: a flush reaches the threads that have them", "[net][script]") {
  Conversation one;
  net::Batch other_batch;
  net::Connection other{one.node, other_batch, nullptr, {.id = 9}};
  const auto other_says = [&](const Words& words) {
    std::string reply;
    other.receive(request_bytes(words), reply);
    return reply;
  };
  const std::string sha{one_sha};
  for (int round = 0; round < 3; ++round) {
    CHECK(one.call({"EVAL", "return 1", "0"}) == ":1\r\n");
    CHECK(other_says({"EVALSHA", sha, "0"}) == ":1\r\n");
    CHECK(one.call({"SCRIPT", "FLUSH"}) == "+OK\r\n");
    CHECK(other_says({"EVALSHA", sha, "0"}).starts_with("-NOSCRIPT"));
    CHECK(one.call({"EVALSHA", sha, "0"}).starts_with("-NOSCRIPT"));
  }
  CHECK(one.call({"FUNCTION", "LOAD", library("lib", "f")}) == "$3\r\nlib\r\n");
  CHECK(other_says({"FCALL", "f", "0"}) == "*2\r\n$1\r\n-\r\n$1\r\n-\r\n");
  CHECK(one.call({"FUNCTION", "LOAD", "REPLACE",
                  "#!lua name=lib\nredis.register_function('f', function() return 2 end)"}) ==
        "$3\r\nlib\r\n");
  CHECK(other_says({"FCALL", "f", "0"}) == ":2\r\n");
  CHECK(one.call({"FUNCTION", "FLUSH"}) == "+OK\r\n");
  CHECK(other_says({"FCALL", "f", "0"}) == "-ERR Function not found\r\n");
}

TEST_CASE("scripts: the setting says which of them run", "[net][script]") {
  Conversation one;
  const std::string known =
      "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])";
  CHECK(one.call({"SCRIPT", "LOAD", "return 1"}).starts_with("$40"));
  CHECK(one.call({"CONFIG", "SET", "scripts", "known"}) == "+OK\r\n");
  const std::string refused = one.call({"EVAL", "return 2", "0"});
  CHECK(refused.find("by the setting 'scripts' ('known', or") != std::string::npos);
  CHECK(one.call({"SCRIPT", "LOAD", "return 2"}) == refused);
  CHECK(one.call({"EVAL", "return 1", "0"}) == refused);  // although it is kept
  CHECK(one.call({"EVALSHA", net::sha1_hex("return 2"), "0"}).starts_with("-NOSCRIPT"));
  CHECK(one.call({"FUNCTION", "LOAD", library("lib", "f")}).find("'scripts'") != std::string::npos);
  CHECK(one.call({"EVAL", known, "1", "k", "v", "1000"}) == "$-1\r\n");
  CHECK(one.call({"EVALSHA", net::sha1_hex(known), "1", "k", "v", "1000"}) == "$1\r\nv\r\n");
  CHECK(one.call({"CONFIG", "SET", "scripts", "off"}) == "+OK\r\n");
  for (const Words& words : {Words{"EVAL", known, "1", "k", "v", "1000"},
                             Words{"EVALSHA", net::sha1_hex(known), "1", "k", "v", "1000"},
                             Words{"SCRIPT", "LOAD", "return 1"}, Words{"FCALL", "f", "0"}}) {
    CHECK(one.call(words) == "-ERR scripts are off; the setting 'scripts' lets them run\r\n");
  }
  CHECK(one.call({"CONFIG", "SET", "scripts", "any"}) == "+OK\r\n");
  CHECK(one.call({"EVAL", "return 2", "0"}) == ":2\r\n");
}

TEST_CASE("functions: a dump is taken back, and nothing else", "[net][script]") {
  Conversation one;
  static_cast<void>(one.call({"FUNCTION", "LOAD", library("a", "fa")}));
  static_cast<void>(one.call({"FUNCTION", "LOAD", library("b", "fb")}));
  const std::string reply = one.call({"FUNCTION", "DUMP"});
  const std::size_t begin = reply.find("\r\n") + 2;
  const std::string dump = reply.substr(begin, reply.size() - begin - 2);
  const std::string listed = one.call({"FUNCTION", "LIST", "WITHCODE"});
  CHECK(one.call({"FUNCTION", "RESTORE", dump}) == "-ERR Library a already exists\r\n");
  CHECK(one.call({"FUNCTION", "RESTORE", dump, "REPLACE"}) == "+OK\r\n");
  static_cast<void>(one.call({"FUNCTION", "DELETE", "a"}));
  static_cast<void>(one.call({"FUNCTION", "LOAD", library("c", "fc")}));
  CHECK(one.call({"FUNCTION", "RESTORE", dump, "FLUSH"}) == "+OK\r\n");
  CHECK(one.call({"FUNCTION", "LIST", "WITHCODE"}) == listed);
  CHECK(one.call({"FCALL", "fa", "1", "k"}) == "*2\r\n$1\r\nk\r\n$1\r\n-\r\n");
  static_cast<void>(one.call({"FUNCTION", "FLUSH"}));
  static_cast<void>(one.call({"FUNCTION", "LOAD", library("z", "fb")}));
  CHECK(one.call({"FUNCTION", "RESTORE", dump}) == "-ERR Function fb already exists\r\n");
  CHECK(one.call({"FCALL", "fa", "0"}) == "-ERR Function not found\r\n");  // all or nothing
  for (std::size_t i = 0; i < dump.size(); ++i) {
    std::string wrong = dump;
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    REQUIRE(one.call({"FUNCTION", "RESTORE", wrong, "FLUSH"}) ==
            "-ERR DUMP payload version or checksum are wrong\r\n");
    REQUIRE(one.call({"FUNCTION", "RESTORE", dump.substr(0, i), "FLUSH"}) ==
            "-ERR DUMP payload version or checksum are wrong\r\n");
  }
}

TEST_CASE("functions: dumps of earlier releases are taken, and those of values are not",
          "[net][script]") {
  Conversation one;
  const std::string code = library("a", "fa");
  std::string old = "semel functions 1\n";
  for (std::size_t i = 0; i < 8; ++i) old += static_cast<char>(code.size() >> (8 * i));
  old += code;
  const std::string whole = old + net::sha1_hex(old).substr(0, 16);
  CHECK(one.call({"FUNCTION", "RESTORE", whole}) == "+OK\r\n");
  CHECK(one.call({"FCALL", "fa", "1", "k"}) == "*2\r\n$1\r\nk\r\n$1\r\n-\r\n");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    REQUIRE(one.call({"FUNCTION", "RESTORE", whole.substr(0, i), "FLUSH"}) ==
            "-ERR DUMP payload version or checksum are wrong\r\n");
  }
  static_cast<void>(one.call({"SET", "s", "v"}));
  const std::string reply = one.call({"DUMP", "s"});
  const std::size_t begin = reply.find("\r\n") + 2;
  const std::string value = reply.substr(begin, reply.size() - begin - 2);
  CHECK(one.call({"FUNCTION", "RESTORE", value}) == "-ERR given type is not a function\r\n");
  CHECK(one.call({"FCALL", "fa", "1", "k"}) == "*2\r\n$1\r\nk\r\n$1\r\n-\r\n");
}

TEST_CASE("scripts: what they ask for is counted and shown beside them", "[net][script]") {
  Conversation one{2};
  static_cast<void>(one.call({"CONFIG", "RESETSTAT"}));
  CHECK(one.call({"EVAL",
                  "redis.call('set', 'a', '1') redis.pcall('incr', 'b', 'c') "
                  "redis.pcall('nosuch') return redis.call('incrby', 'a', 'x')",
                  "0"})
            .starts_with("-ERR value is not an integer or out of range script: "));
  const std::string stats = one.call({"INFO", "commandstats"});
  const auto has = [&](std::string_view name, std::string_view end) {
    const std::size_t at = stats.find("cmdstat_" + std::string{name} + ":");
    REQUIRE(at != std::string::npos);
    const std::string line = stats.substr(at, stats.find('\r', at) - at);
    INFO(line);
    CHECK(line.ends_with(end));
  };
  has("eval", "rejected_calls=0,failed_calls=1");
  has("set", "rejected_calls=0,failed_calls=0");
  has("incr", "rejected_calls=1,failed_calls=0");
  has("incrby", "rejected_calls=0,failed_calls=1");
  CHECK(one.call({"INFO", "errorstats"}).find("errorstat_ERR:count=3\r\n") != std::string::npos);

  static_cast<void>(one.call({"CONFIG", "SET", "monitor", "yes"}));
  static_cast<void>(one.call({"MONITOR"}, 1));
  static_cast<void>(one.call({"EVAL", "return redis.call('set', KEYS[1], '1')", "1", "k"}));
  const std::string heard = one.collect(1);
  const std::size_t outer = heard.find("[0 127.0.0.1:5000] \"EVAL\"");
  const std::size_t inner = heard.find("[0 lua] \"set\" \"k\" \"1\"");
  REQUIRE(outer != std::string::npos);
  REQUIRE(inner != std::string::npos);
  CHECK(outer < inner);
}

TEST_CASE("scripts: known ones in a pipeline are answered as one after the other",
          "[net][script]") {
  const std::string claim =
      "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])";
  const std::string release =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return "
      "0 end";
  Conversation together;
  Conversation apart;
  std::string bytes;
  std::string expected;
  const auto say = [&](const Words& words) {
    bytes += request_bytes(words);
    expected += apart.call(words);
  };
  say({"EVALSHA", net::sha1_hex(claim), "1", "a", "x", "1000"});
  say({"SCRIPT", "LOAD", claim});
  say({"SCRIPT", "LOAD", release});
  for (int i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(i % 7);
    say({"EVALSHA", net::sha1_hex(claim), "1", key, "v" + std::to_string(i), "1000"});
    say({"GET", key});
    say({"EVALSHA", net::sha1_hex(release), "1", key, "v" + std::to_string(i % 13)});
    if (i % 10 == 0) say({"EVAL", "return {KEYS[1], ARGV[1]}", "1", key, "z"});
    if (i % 9 == 0) say({"HSET", "k3", "f", "1"});
    if (i % 11 == 0) say({"DEL", "k3"});
  }
  std::string replies;
  together.connections[0]->receive(bytes, replies);
  CHECK(replies == expected);
  const std::string stats = together.call({"INFO", "commandstats"});
  CHECK(stats.find("cmdstat_evalsha:calls=201,") != std::string::npos);
}

TEST_CASE("scripts: in process, without a node", "[net][script]") {
  const auto redis = LocalRedis::open().value();
  CHECK(redis->call({"EVAL", "return redis.call('incr', KEYS[1])", "1", "n"}).integer == 1);
  CHECK(redis->call({"FUNCTION", "LOAD", library("lib", "f")}).text == "lib");
  CHECK(redis->call({"FCALL", "f", "0"}).items.size() == 2);
  const Reply time = redis->call(
      {"EVAL", "local a = redis.call('time') local b = redis.call('time') return a[2] == b[2]",
       "0"});
  CHECK(time.integer == 1);
}

}  // namespace semel::tests
