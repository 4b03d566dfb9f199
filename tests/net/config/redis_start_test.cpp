// What a node that stands in for redis-server makes of Redis' flags and files.
//
// Words: what is *ignored* gets a line, what is *without effect* only a name.
#include "net/config/redis_start.hpp"

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/storage/directory.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using net::RedisStart;
using net::Setting;
using net::Settings;

struct StartOf {
  explicit StartOf(std::vector<std::string_view> arguments, std::string input = {}) {
    start = net::read_redis_start(
        arguments,
        [&] {
          ++inputs_read;
          return input;
        },
        settings);
  }

  [[nodiscard]] std::string shown(std::string_view name) const {
    const std::vector<std::string_view> names{name};
    const auto found = settings.get(names);
    return found.empty() ? "(none)" : found.front().second;
  }
  [[nodiscard]] std::string only_error() const {
    REQUIRE(start.errors.size() == 1);
    return start.errors.front();
  }

  Settings settings;
  RedisStart start;
  int inputs_read = 0;
};

std::string conf_written(const Directory& directory, const std::string& name,
                         const std::string& text) {
  const std::string path = directory.path() + "/" + name;
  std::ofstream{path, std::ios::binary} << text;
  return path;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("redis start: without arguments it is a node for tests, at Redis' defaults",
          "[net][config][redis-start]") {
  const StartOf of{{}};
  CHECK(of.start.errors.empty());
  CHECK(of.settings.integer(Setting::port) == 6379);
  CHECK(of.settings.boolean(Setting::test_clock));
  CHECK(of.settings.integer(Setting::io_threads) == 1);
  CHECK_FALSE(of.settings.boolean(Setting::storage_enabled));
  CHECK(of.inputs_read == 0);
  CHECK(of.shown("dir") != "");
}

TEST_CASE("redis start: a flag takes the arguments behind it, also several",
          "[net][config][redis-start]") {
  const StartOf of{{"--port", "7001", "--bind", "127.0.0.1", "::1", "--save", "900", "1", "--save",
                    "60", "100", "--unixsocketperm", "700", "--requirepass", "a b",
                    "--maxmemory 20mb"}};
  CHECK(of.start.errors == Names{});
  CHECK(of.settings.integer(Setting::port) == 7001);
  CHECK(of.settings.list(Setting::bind) == Names{"127.0.0.1", "::1"});
  CHECK(of.shown("save") == "900 1 60 100");
  CHECK(of.settings.integer(Setting::unix_socket_mode) == 0700);
  CHECK(of.settings.text(Setting::requirepass) == "a b");
  CHECK(of.settings.integer(Setting::maxmemory) == 20 * 1024 * 1024);
  CHECK(of.start.without_effect == Names{"save"});
}

TEST_CASE("redis start: `--save` alone is an empty one, another flag's value may begin with dashes",
          "[net][config][redis-start]") {
  for (const std::vector<std::string_view>& arguments :
       {std::vector<std::string_view>{"--save", "--port", "7001"},
        {"--port", "7001", "--save"},
        {"--save", "900 1", "--save", "", "--port", "7001"}}) {
    const StartOf of{arguments};
    CHECK(of.start.errors == Names{});
    CHECK(of.shown("save") == "");
    CHECK(of.settings.integer(Setting::port) == 7001);
    CHECK(of.start.without_effect == Names{});
  }
  const StartOf dashes{{"--requirepass", "--secret", "--port", "7001"}};
  CHECK(dashes.settings.text(Setting::requirepass) == "--secret");
  CHECK(dashes.settings.integer(Setting::port) == 7001);
}

TEST_CASE("redis start: what redis-server does to its process is shown, flags in their order",
          "[net][config][redis-start]") {
  const Directory directory;
  const std::string conf = conf_written(directory, "redis.conf", "timeout 5\n");
  // Behind the file a directive may come without dashes.
  const StartOf of{{conf, "loglevel", "verbose", "--shutdown-on-sigint", "nosave", "force", "now",
                    "now", "--shutdown-on-sigterm", "nosave force", "--oom-score-adj", "yes"}};
  CHECK(of.start.errors == Names{});
  CHECK(of.shown("loglevel") == "verbose");
  CHECK(of.shown("shutdown-on-sigint") == "nosave now force");
  CHECK(of.shown("shutdown-on-sigterm") == "nosave force");
  CHECK(of.shown("oom-score-adj") == "yes");
  CHECK(of.shown("save") == "3600 1 300 100 60 10000");  // where nothing sets it
  CHECK(of.start.without_effect.size() == 3);
}

TEST_CASE("redis start: flags of a node are taken, bare if they are switches",
          "[net][config][redis-start]") {
  const StartOf of{{"--test-clock", "no", "--exit-with-parent", "--port", "auto"}};
  CHECK(of.start.errors == Names{});
  CHECK_FALSE(of.settings.boolean(Setting::test_clock));
  CHECK(of.settings.boolean(Setting::exit_with_parent));
  CHECK(of.settings.integer(Setting::port) == 0);  // a free one
}

TEST_CASE("redis start: port 0 is none, as redis-server has it", "[net][config][redis-start]") {
  const StartOf of{{"--port", "0", "--unixsocket", "/tmp/s"}};
  CHECK(of.start.errors == Names{});
  CHECK(of.settings.integer(Setting::port) == -1);
  const StartOf nothing{{"--port", "0"}};
  CHECK(nothing.only_error().starts_with("nothing to listen on"));
}

TEST_CASE("redis start: the file, standard input and the flags hold in this order",
          "[net][config][redis-start]") {
  const Directory directory;
  conf_written(directory, "more.conf", "timeout 5\nhz 50\n");
  const std::string conf =
      conf_written(directory, "redis.conf",
                   "# a comment\r\n  port 7001\r\n\nrequirepass \"a \\\"b\\\"\"\ninclude " +
                       directory.path() + "/mor*.conf\ntimeout 6\nmaxclients 50\n");
  const StartOf of{{conf, "-", "--maxclients", "70"}, "port 7002\nmaxclients 60\n"};
  CHECK(of.start.errors == Names{"'-' belongs to no flag"});  // it stands in the middle
  const StartOf last{{conf, "--maxclients", "70", "-"}, "port 7002\nmaxclients 60"};
  CHECK(last.start.errors == Names{});
  CHECK(last.start.file == conf);
  CHECK(last.inputs_read == 1);
  CHECK(last.settings.integer(Setting::port) == 7002);
  CHECK(last.settings.integer(Setting::maxclients) == 70);
  CHECK(last.settings.text(Setting::requirepass) == "a \"b\"");
  CHECK(last.shown("timeout") == "6");
  CHECK(last.shown("hz") == "50");
  CHECK(last.start.without_effect == Names{"hz"});
}

TEST_CASE("redis start: an include that cannot be read, or that includes itself, is an error",
          "[net][config][redis-start]") {
  const Directory directory;
  const std::string missing =
      conf_written(directory, "a.conf", "include " + directory.path() + "/none.conf\n");
  CHECK(StartOf{{missing}}.only_error().find("none.conf") != std::string::npos);
  const std::string pattern =
      conf_written(directory, "b.conf", "include " + directory.path() + "/none*\n");
  CHECK(StartOf{{pattern}}.start.errors == Names{});
  const std::string itself =
      conf_written(directory, "c.conf", "include " + directory.path() + "/c.conf\n");
  CHECK(StartOf{{itself}}.only_error().find("nested more than 16") != std::string::npos);
}

TEST_CASE("redis start: the unknown is named and ignored, and an error if it is strict",
          "[net][config][redis-start]") {
  const StartOf of{{"--no-such-thing", "1", "--cluster-enabled", "yes", "--loadmodule", "x.so",
                    "--appendonly", "yes"}};
  CHECK(of.start.errors == Names{});
  REQUIRE(of.start.warnings.size() == 3);
  CHECK(of.start.warnings[0].find("'no-such-thing'") != std::string::npos);
  CHECK(of.start.warnings[1].find("cluster-enabled") != std::string::npos);
  CHECK(of.start.warnings[2].find("loadmodule") != std::string::npos);
  CHECK(of.start.without_effect == Names{"appendonly"});
  CHECK(of.shown("appendonly") == "yes");  // as a program that asks wants to see it
  CHECK(of.shown("cluster-enabled") == "no");

  const StartOf strict{{"--strict", "--no-such-thing", "1"}};
  CHECK(strict.only_error().find("'no-such-thing'") != std::string::npos);
  CHECK(strict.start.warnings.empty());
}

TEST_CASE("redis start: a value that its directive does not take is an error",
          "[net][config][redis-start]") {
  CHECK(StartOf{{"--port", "70000"}}.start.errors.size() == 1);
  CHECK(StartOf{{"--port"}}.only_error() == "--port: 'port': wrong number of arguments");
  const auto error_of = [](std::vector<std::string_view> arguments) {
    return StartOf{arguments}.only_error();
  };
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(error_of({"--port", "6379", "6380"}), "'port \"6379\" \"6380\"': wrong number of"));
  CHECK(has(error_of({"--port", "--loglevel", "verbose"}), "'port \"--loglevel\" \"verbose\"'"));
  CHECK(has(error_of({"--loglevel", "--bla"}), "'loglevel \"--bla\"'"));
  CHECK(has(error_of({"--shutdown-on-sigint"}), "argument(s) must be one of the following"));
  CHECK(has(error_of({"--replicaof", "host", "abc"}), "Invalid master port"));
  CHECK(has(error_of({"--replicaof", "host"}), "wrong number of arguments"));
  CHECK(has(error_of({"--user", "foo", "--user", "foo"}), "Duplicate user 'foo'"));
  CHECK(StartOf{{"--appendonly", "perhaps"}}.start.errors.size() == 1);
  CHECK(StartOf{{"--daemonize", "perhaps"}}.start.errors.size() == 1);
  CHECK(StartOf{{"--daemonize"}}.start.errors.size() == 1);
  CHECK(StartOf{{"-p", "7001"}}.start.errors.size() == 1);
  CHECK(StartOf{{"--requirepass \"a"}}.only_error() == "--requirepass: quotes that do not close");
  CHECK(StartOf{{"--include"}}.start.errors.size() <= 1);
  CHECK(StartOf{{""}}.start.errors.size() == 1);
  CHECK(StartOf{{"/no/such/redis.conf"}}.start.errors.size() == 1);
}

TEST_CASE("redis start: rename-command is read in order, and has two words",
          "[net][config][redis-start]") {
  const Directory directory;
  const std::string conf = conf_written(
      directory, "redis.conf", "rename-command FLUSHALL \"\"\nRENAME-COMMAND config \"a b\"\n");
  const StartOf of{{conf, "--rename-command", "get", "set"}};
  CHECK(of.start.errors == Names{});
  CHECK(of.start.warnings == Names{});
  REQUIRE(of.start.renames.size() == 3);
  CHECK(of.start.renames[0].where == conf + ":1");
  CHECK(of.start.renames[0].from == "FLUSHALL");
  CHECK(of.start.renames[0].to.empty());
  CHECK(of.start.renames[1].to == "a b");
  CHECK(of.start.renames[2].from == "get");  // whether it can be is the table's to say
  CHECK(StartOf{{"--rename-command", "get"}}.only_error() ==
        "--rename-command: 'rename-command \"get\"': wrong number of arguments");
  CHECK(StartOf{{"--rename-command", "get", "a", "b"}}.start.errors.size() == 1);
}

TEST_CASE("redis start: daemonize and pidfile are about the process",
          "[net][config][redis-start]") {
  CHECK_FALSE(StartOf{{}}.start.daemonizes);
  CHECK(StartOf{{}}.start.pidfile.empty());
  const StartOf of{{"--daemonize", "yes"}};
  CHECK(of.start.daemonizes);
  CHECK(of.start.pidfile == "/var/run/redis.pid");
  const StartOf named{{"--daemonize", "yes", "--pidfile", "/tmp/x.pid"}};
  CHECK(named.start.pidfile == "/tmp/x.pid");
  CHECK(named.start.without_effect == Names{});
  CHECK(StartOf{{"--pidfile", "/tmp/x.pid"}}.start.pidfile == "/tmp/x.pid");
}

}  // namespace semel::tests
