// Texts that are refused before anything of them has run, because they name a command that is not
// there.
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/scripts/script_text.hpp"
#include "net/settings/settings.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

constexpr std::string_view half =
    "redis.call('set', KEYS[1], '1')\n"
    "redis.call('incr', 'n')\n"
    "redis.call('VADD', 'board', 1, 'a')\n"
    "return 1";
constexpr std::string_view refusal =
    "-ERR this script was not taken, and nothing of it ran: line 3 sends 'vadd', which this node "
    "does not have, and others would have written by then (setting 'script-unknown-commands')\r\n";

std::string library_of(std::string_view body) {
  return "#!lua name=lib\nredis.register_function('f', function(keys, args)\n" + std::string{body} +
         "\nend)";
}
bool is_refused(std::string_view reply) {
  return reply.starts_with("-ERR this script was not taken") ||
         reply.starts_with("-ERR this library was not taken");
}

/// With script-unknown-commands as `refuse`.
struct Strict : Conversation {
  explicit Strict(std::size_t count = 1) : Conversation(count) {
    REQUIRE(node.settings.assign(net::Setting::script_unknown_commands, "refuse", {}).ok());
  }
};

}  // namespace

TEST_CASE("script check: a text with an unknown command changes nothing", "[net][script][check]") {
  Strict one;
  const std::string text{half};
  CHECK(one.call({"EVAL", text, "1", "k"}) == refusal);
  CHECK(one.call({"EVAL_RO", text, "1", "k"}) == refusal);
  CHECK(one.call({"SCRIPT", "LOAD", text}) == refusal);
  CHECK(one.call({"DBSIZE"}) == ":0\r\n");
  CHECK(one.call({"EVALSHA", net::sha1_hex(text), "1", "k"}).starts_with("-NOSCRIPT"));
  CHECK(one.call({"SCRIPT", "EXISTS", net::sha1_hex(text)}) == "*1\r\n:0\r\n");
  // Lines are counted as in the whole text.
  const std::string headed = "#!lua flags=allow-oom\n" + text;
  CHECK(one.call({"EVAL", headed, "1", "k"}).find("line 4 sends 'vadd'") != std::string::npos);
  CHECK(one.call({"INFO", "memory"}).find("scripts_refused:4\r\n") != std::string::npos);
}

TEST_CASE("script check: in a transaction the others are carried out", "[net][script][check]") {
  Strict one;
  static_cast<void>(one.call({"MULTI"}));
  static_cast<void>(one.call({"SET", "a", "1"}));
  CHECK(one.call({"EVAL", std::string{half}, "1", "k"}) == "+QUEUED\r\n");
  static_cast<void>(one.call({"SET", "b", "1"}));
  CHECK(one.call({"EXEC"}) == "*3\r\n+OK\r\n" + std::string{refusal} + "+OK\r\n");
  CHECK(one.call({"EXISTS", "a", "b", "k", "n"}) == ":2\r\n");
}

TEST_CASE("script check: a library with one is not loaded", "[net][script][check]") {
  Strict one;
  const std::string reply = one.call({"FUNCTION", "LOAD", library_of(half)});
  CHECK(is_refused(reply));
  CHECK(reply.find("line 5 sends 'vadd'") != std::string::npos);
  CHECK(one.call({"FUNCTION", "LIST"}) == "*0\r\n");
  CHECK(one.call({"FCALL", "f", "1", "k"}) == "-ERR Function not found\r\n");
  // One that is there stays.
  const std::string good = library_of("return redis.call('set', 'x', '1')");
  CHECK(one.call({"FUNCTION", "LOAD", good}) == "$3\r\nlib\r\n");
  CHECK(is_refused(one.call({"FUNCTION", "LOAD", "REPLACE", library_of(half)})));
  CHECK(one.call({"FCALL", "f", "0"}) == "+OK\r\n");
}

TEST_CASE("script check: what no script may send, and subcommands", "[net][script][check]") {
  Strict one;
  const auto said = [&](const std::string& sent) {
    return one.call({"EVAL", "redis.call('set', 'k', '1') redis.call(" + sent + ")", "0"});
  };
  CHECK(said("'multi'").find("'multi', which no script may send") != std::string::npos);
  CHECK(said("'config', 'get', 'x'").find("'config', which no") != std::string::npos);
  CHECK(said("'object', 'nosuch', 'k'").find("'object nosuch', which this") != std::string::npos);
  CHECK(said("'z\\r\\n\\0add'").find("'z??") != std::string::npos);
  CHECK(said("'" + std::string(100'000, 'z') + "'").size() < 400);
  CHECK(one.call({"DBSIZE"}) == ":0\r\n");
}

TEST_CASE("script check: what asks for a command with care is taken", "[net][script][check]") {
  Strict one;
  for (const char* text :
       {"redis.call('set', 'k', '1') redis.pcall('vadd', 'z', 1, 'a') return 1",
        "redis.call('set', 'k', '1') pcall(function() redis.call('vadd', 'z', 1) end) return 1",
        "redis.call('set', 'k', '1') pcall(redis.call, 'vadd', 'z', 1, 'a') return 1",
        "local z = 'vadd' redis.call('set', 'k', '1') if ARGV[1] then redis.call(z) end return 1",
        "if redis.call('type', 'k').ok == 'zset' then redis.call('zcard', 'k') end return 1",
        "-- redis.call('vadd')\nredis.call('set', 'k', '1') return 1",
        "redis.call('s\\101t', 'k', '1') redis.call('\\115ET', 'k', '1') return 1",
        "redis.call('set', 'k', 'redis.call(\"vadd\")') return 1",
        "local redis = {call = function() return 1 end} redis.call('set') return "
        "redis.call('zz')"}) {
    INFO(text);
    CHECK(one.call({"EVAL", text, "0"}) == ":1\r\n");
  }
  // Nothing is written, so nothing is half done: redis-server's own error.
  CHECK(one.call({"EVAL", "return redis.call('nosuch')", "0"})
            .starts_with("-ERR Unknown Redis command called from script script: "));
}

TEST_CASE("script check: without the setting such texts run up to the call, as in Redis",
          "[net][script][check][once-again-19]") {
  Conversation one;
  const std::string unknown = "-ERR Unknown Redis command called from script script: ";
  CHECK(one.call({"EVAL", std::string{half}, "1", "k"}).starts_with(unknown));
  CHECK(one.call({"DBSIZE"}) == ":2\r\n");
  CHECK(one.call({"FUNCTION", "LOAD", library_of(half)}) == "$3\r\nlib\r\n");
  // A branch that is not taken harms nothing.
  CHECK(one.call({"EVAL",
                  "redis.call('set','k','1') if false then redis.call('vadd','z','1') end "
                  "return 7",
                  "0"}) == ":7\r\n");
  CHECK(one.call({"CONFIG", "SET", "script-unknown-commands", "refuse"}) == "+OK\r\n");
  CHECK(one.call({"EVAL", std::string{half} + " ", "1", "k"}) == refusal);
}

TEST_CASE("script check: a library knows the version while it is loaded",
          "[net][script][function][once-again-19]") {
  Conversation one;
  const std::string loads =
      "#!lua name=lib\nlocal v, n = redis.REDIS_VERSION, redis.REDIS_VERSION_NUM\n"
      "redis.register_function('f', function() return {v, n, redis.REDIS_VERSION_NUM} end)";
  CHECK(one.call({"FUNCTION", "LOAD", loads}) == "$3\r\nlib\r\n");
  CHECK(one.call({"FCALL", "f", "0"}) == "*3\r\n$5\r\n7.2.4\r\n:459268\r\n:459268\r\n");
}

TEST_CASE("script check: sixteen connections load and run at once", "[net][script][check]") {
  constexpr std::size_t clients = 16;
  Strict all{0};
  std::vector<std::string> wrong(clients);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < clients; ++i) {
    threads.emplace_back([&, i] {
      net::Batch batch;
      net::Connection own{all.node, batch, nullptr, {.id = all.node.next_client_id()}};
      const auto say = [&](const Words& words) {
        std::string reply;
        own.receive(request_bytes(words), reply);
        return reply;
      };
      for (int round = 0; round < 50; ++round) {
        const std::string mark = "-- " + std::to_string(round % 7);
        const std::string bad = std::string{half} + mark;
        const std::string good = "redis.call('incr', KEYS[1]) return 7 " + mark;
        if (say({"EVAL", bad, "1", "k"}) != refusal) wrong[i] += "bad taken;";
        if (say({"SCRIPT", "LOAD", bad}) != refusal) wrong[i] += "bad loaded;";
        if (say({"EVAL", good, "1", "c"}) != ":7\r\n") wrong[i] += "good not run;";
        if (!say({"EVALSHA", net::sha1_hex(bad), "0"}).starts_with("-NOSCRIPT")) {
          wrong[i] += "bad kept;";
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong) CHECK(each.empty());
  Conversation* const same = &all;
  same->connect("127.0.0.1:1");
  CHECK(all.call({"EXISTS", "k", "n"}) == ":0\r\n");
  CHECK(all.call({"GET", "c"}) == "$3\r\n800\r\n");
}

}  // namespace semel::tests
