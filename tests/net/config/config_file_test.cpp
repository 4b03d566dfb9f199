// From files, environment and flags into Settings, and back into a file.
//
// Words: a *line* is a message for a person; a *file* is a temporary one.
#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include "tests/support/catch.hpp"

#include "net/config/config_file.hpp"
#include "net/config/config_text.hpp"
#include "net/config/flags.hpp"
#include "net/config/rewrite.hpp"
#include "net/config/toml_edit.hpp"
#include "semel/policies.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {
namespace {

using net::ConfigSources;
using net::Findings;
using net::Setting;
using net::Settings;
using Lines = std::vector<std::string>;

class Folder {
 public:
  /// The path of a file with this content.
  [[nodiscard]] std::string file(const std::string& name, const std::string& content) const {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream{path, std::ios::binary} << content;
    return path;
  }
  [[nodiscard]] std::size_t count() const {
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator{directory_.path()})
      ++files;
    return files;
  }

 private:
  Directory directory_;
};

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}

/// The lines about a TOML file.
Lines errors_in(const std::string& toml) {
  std::vector<net::Assignment> out;
  Findings findings;
  net::read_toml(toml, "f", out, findings);
  return findings.errors;
}

Findings load_toml(const std::string& toml, Settings& settings) {
  const Folder folder;
  return net::load_config({.file = folder.file("semel.toml", toml)}, settings);
}

Findings load_redis(const std::string& conf, Settings& settings) {
  const Folder folder;
  Findings findings = net::load_config({.redis_conf = folder.file("redis.conf", conf)}, settings);
  for (Lines* lines : {&findings.errors, &findings.warnings}) {
    for (std::string& line : *lines) line.erase(0, line.find("redis.conf"));
  }
  return findings;
}

bool change(Settings& settings, const std::vector<Settings::NamedView>& pairs) {
  return settings.set(pairs).ok();
}

/// Parses a command line; what CLI11 has to say about it, or nothing.
std::string parse(ConfigSources& sources, const Lines& words) {
  CLI::App app{"node"};
  net::register_flags(app, sources);
  try {
    app.parse(Lines{words.rbegin(), words.rend()});
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("config: every form of a value is read from TOML", "[net][config]") {
  Settings settings;
  const Findings findings = load_toml(
      "[server]\n"
      "bind = [\"127.0.0.1\", \"::1\"]\n"
      "port = 7_000\n"
      "unix-socket = \"/tmp/a \\\"b\\\"\"\n"
      "unix-socket-mode = 0o700\n"
      "timeout = \"2m\"\n"
      "request-deadline = 250\n"
      "client-query-buffer-limit = \"1gb\"\n"
      "protected-mode = false\n"
      "client-output-buffer-limit = \"pubsub 1mb 1k 5\"\n"
      "[log]\n"
      "log-level = \"WARNING\"\n"
      "[redis]\n"
      "save = \"\"\n",
      settings);
  CHECK(findings.errors == Lines{});
  CHECK(settings.list(Setting::bind) == Lines{"127.0.0.1", "::1"});
  CHECK(settings.integer(Setting::port) == 7000);
  CHECK(settings.text(Setting::unix_socket) == "/tmp/a \"b\"");
  CHECK(settings.integer(Setting::unix_socket_mode) == 0700);
  CHECK(settings.duration(Setting::timeout) == std::chrono::minutes{2});
  CHECK(settings.duration(Setting::request_deadline) == std::chrono::milliseconds{250});
  CHECK(settings.integer(Setting::client_query_buffer_limit) == 1 << 30);
  CHECK_FALSE(settings.boolean(Setting::protected_mode));
  CHECK(settings.output_limits()[2].hard_bytes == 1 << 20);
  CHECK(settings.output_limits()[1].hard_bytes == 256 << 20);
  CHECK(settings.text(Setting::log_level) == "warning");
  CHECK(settings.text(Setting::save).empty());
  CHECK(settings.origin(Setting::port).text().ends_with("semel.toml:3"));
  CHECK(settings.origin(Setting::maxclients).text() == "default");
}

TEST_CASE("config: all errors of a TOML file are reported, each with its line", "[net][config]") {
  CHECK(errors_in("[server]\n"
                  "prot = 1\n"
                  "maxclients = 0\n"
                  "log-level = \"debug\"\n"
                  "timeout = 1.5\n"
                  "unixsocket = \"a\"\n"
                  "zzzzzzzzzz = 1\n"
                  "bind = [\"a\", 1]\n"
                  "[sever]\n"
                  "[security]\n"
                  "requirepass = 5\n") ==
        Lines{"f:2:1: unknown setting 'prot', did you mean 'port'?",
              "f:3:14: maxclients = '0': argument must be between 1 and 1000000 inclusive",
              "f:4:1: 'log-level' belongs into [log]",
              "f:5:11: timeout: expected a number or a text as \"30s\", not a floating-point",
              "f:6:1: unknown setting 'unixsocket', did you mean 'unix-socket'?",
              "f:7:1: unknown setting 'zzzzzzzzzz'",
              "f:8:8: bind: expected an array of texts without blanks, not a array",
              "f:9:2: unknown section 'sever', did you mean 'server'?",
              "f:11:15: requirepass: expected a text, not a integer"});
  CHECK(
      errors_in("port = 1\nserver = 2\n") ==
      Lines{"f:1:1: 'port' belongs into [server]", "f:2:1: 'server' is a section: write [server]"});
  CHECK(errors_in("[server]\nport = 1\nport = 2\n").size() == 1);
  REQUIRE(errors_in("[server]\nport = \n").size() == 1);
  CHECK(errors_in("[server]\nport = \n")[0].starts_with("f:2:"));
}

TEST_CASE("config: a secret that is wrong is not shown", "[net][config]") {
  const Lines lines = errors_in("[security]\nrequirepass = \"" + std::string(5000, 's') + "\"\n");
  CHECK(lines == Lines{"f:2:15: requirepass = <hidden>: argument must have at most 4096 bytes"});
}

TEST_CASE("config: flag before environment before file before redis.conf", "[net][config]") {
  const Folder folder;
  ConfigSources sources{
      .file = folder.file("semel.toml", "[server]\nport = 2\ntimeout = 2\nmaxclients = 2\n"),
      .redis_conf = folder.file("r.conf", "port 1\ntimeout 1\nmaxclients 1\ntcp-keepalive 1\n")};
  const std::array<const char*, 6> environment{
      "PATH=/bin", "SEMEL_PORT=3", "SEMEL_TIMEOUT=3", "SEMEL_CONFIG=/nowhere", "SEMEL_", nullptr};
  CHECK(parse(sources, {"--port", "4"}) == "");
  net::add_environment(sources, environment.data());
  Settings settings;
  CHECK(net::load_config(sources, settings).errors == Lines{});
  CHECK(settings.integer(Setting::port) == 4);
  CHECK(settings.origin(Setting::port).text() == "--port");
  CHECK(settings.integer(Setting::timeout) == 3);
  CHECK(settings.origin(Setting::timeout).text() == "SEMEL_TIMEOUT");
  CHECK(settings.integer(Setting::maxclients) == 2);
  CHECK(settings.integer(Setting::tcp_keepalive) == 1);
  CHECK(settings.origin(Setting::tcp_keepalive).text().ends_with("r.conf:4"));
}

TEST_CASE("config: with an error anywhere nothing is taken", "[net][config]") {
  const Folder folder;
  ConfigSources sources{.file = folder.file("semel.toml", "[server]\nport = 99999\ntimeout = 5\n")};
  const std::array<const char*, 4> environment{"SEMEL_TIMEOUT=soon", "SEMEL_PROT=1",
                                               "SEMEL_ELSEWHERE=x", nullptr};
  net::add_environment(sources, environment.data());
  CHECK(parse(sources, {"--port", "4", "--tls-port=x"}) == "");
  Settings settings;
  const Findings findings = net::load_config(sources, settings);
  CHECK(
      findings.errors ==
      Lines{sources.file + ":2:8: port = '99999': argument must be between -1 and 65535 inclusive",
            "SEMEL_TIMEOUT: timeout = 'soon': argument couldn't be parsed into an integer",
            "--tls-port: tls-port = 'x': argument couldn't be parsed into an integer"});
  CHECK(findings.warnings ==
        Lines{"SEMEL_PROT: no setting has this name, did you mean SEMEL_PORT?"});
  CHECK(settings.integer(Setting::port) == 6379);
  CHECK(settings.integer(Setting::timeout) == 0);
}

TEST_CASE("config: a file that cannot be read is named", "[net][config]") {
  const Folder folder;
  Settings settings;
  CHECK(net::load_config({.file = "/nowhere/semel.toml"}, settings).errors ==
        Lines{"/nowhere/semel.toml: No such file or directory"});
  CHECK(net::load_config({.redis_conf = "/tmp"}, settings).errors == Lines{"/tmp: Is a directory"});
  const std::string most = "#" + std::string(net::config_bytes_max - 1, ' ');
  CHECK(net::load_config({.file = folder.file("a", most)}, settings).errors == Lines{});
  const std::string beyond = folder.file("b", most + " ");
  CHECK(net::load_config({.file = beyond}, settings).errors ==
        Lines{beyond + ": larger than 1048576 bytes"});
}

TEST_CASE("config: settings that contradict each other are reported with their sources",
          "[net][config]") {
  Settings settings;
  CHECK(net::check_together(settings) == Lines{});
  ConfigSources sources;
  CHECK(parse(sources, {"--port", "-1", "--durability", "synced", "--admin-port", "6380",
                        "--tls-port", "6380"}) == "");
  CHECK(net::load_config(sources, settings).errors ==
        Lines{"admin-port is 6380 (--admin-port), and so is tls-port",
              "tls-port is 6380 (--tls-port), but there is no tls-cert-file",
              "tls-port is 6380 (--tls-port), but there is no tls-key-file",
              "tls-auth-clients is yes (default), but there is neither tls-ca-cert-file nor "
              "tls-ca-cert-dir",
              "durability is synced (--durability), but storage-enabled is no"});
  ConfigSources silent;
  CHECK(parse(silent, {"--port=-1", "--storage-enabled"}) == "");
  CHECK(net::load_config(silent, settings).errors ==
        Lines{"nothing to listen on: port is -1 (--port), tls-port is -1, and there is no "
              "unix-socket",
              "storage-enabled is yes (--storage-enabled), but there is no dir"});
}

TEST_CASE("config: flags take Redis' names, bare switches, several words, the last of two",
          "[net][config]") {
  ConfigSources sources;
  REQUIRE(parse(sources, {"--unixsocket",
                          "/s",
                          "--monitor",
                          "--protected-mode",
                          "no",
                          "--bind",
                          "a -b",
                          "--bind",
                          "c",
                          "--port",
                          "1",
                          "--port",
                          "2",
                          "--save",
                          "",
                          "--appendonly",
                          "no",
                          "--exit-with-parent",
                          "--config",
                          "f.toml"}) == "");
  CHECK(sources.file == "f.toml");
  sources.file.clear();
  Settings settings;
  CHECK(net::load_config(sources, settings).errors == Lines{});
  CHECK(settings.text(Setting::unix_socket) == "/s");
  CHECK(settings.boolean(Setting::monitor));
  CHECK(settings.boolean(Setting::exit_with_parent));
  CHECK_FALSE(settings.boolean(Setting::protected_mode));
  CHECK(settings.list(Setting::bind) == Lines{"a", "-b", "c"});
  CHECK(settings.integer(Setting::port) == 2);
  CHECK(settings.origin(Setting::unix_socket).text() == "--unix-socket");
  CHECK(parse(sources, {"--prot", "1"}) != "");

  CLI::App app{"node"};
  net::register_flags(app, sources);
  const std::string help = app.help();
  INFO(help);
  CHECK(help.find("--unix-socket") != std::string::npos);
  CHECK(help.find("no|yes|optional") != std::string::npos);
  CHECK(help.find("--appendonly") == std::string::npos);
}

TEST_CASE("config: a redis.conf is taken as far as it can be meant", "[net][config]") {
  Settings settings;
  const Findings findings = load_redis(
      "# comment\n"
      "\n"
      "bind 127.0.0.1 -::1\r\n"
      "  Port 7000\n"
      "requirepass \"a \\x41\\\"b\"\n"
      "maxmemory 100mb\n"
      "client-output-buffer-limit normal 0 0 0\n"
      "client-output-buffer-limit pubsub 32mb 8mb 60\n"
      "hz 20\n"
      "unixsocketperm 700\n"
      "no-such-line 1\n"
      "max-clients 5\n"
      "*1\n"
      "daemonize no\n"
      "tls-port 0",
      settings);
  CHECK(findings.errors == Lines{});
  CHECK(findings.warnings ==
        Lines{"redis.conf:11: unknown line 'no-such-line', ignored",
              "redis.conf:12: unknown line 'max-clients', ignored; did you mean 'maxclients'?",
              "redis.conf:13: unknown line '*1', ignored",
              "redis.conf:9: hz = '20': cannot be kept: the node ticks ten times a second; only "
              "'10' is true here; ignored"});
  CHECK(settings.integer(Setting::port) == 7000);
  CHECK(settings.integer(Setting::tls_port) == -1);
  CHECK(settings.text(Setting::requirepass) == "a A\"b");
  CHECK(settings.integer(Setting::maxmemory) == 100 << 20);
  CHECK(settings.output_limits()[0].hard_bytes == 0);
  CHECK(settings.output_limits()[2].soft_bytes == 8 << 20);
  CHECK(settings.integer(Setting::unix_socket_mode) == 0700);
}

TEST_CASE("config: lines of a redis.conf that would be a broken promise are errors",
          "[net][config]") {
  Settings settings;
  CHECK(load_redis("include /etc/other.conf\n"
                   "loadmodule a.so\n"
                   "rename-command FLUSHALL \"\"\n"
                   "user a on\n"
                   "replicaof host 0\n"
                   "slaveof host\n"
                   "cluster-enabled yes\n"
                   "maxmemory-policy allkeys-lru\n"
                   "min-replicas-to-write 1\n"
                   "maxmemory 0\n"
                   "databases 32\n"
                   "requirepass \"open\n"
                   "port\n"
                   "port 1 2\n",
                   settings)
            .errors ==
        Lines{"redis.conf:1: 'include': other files are not followed; put its lines into this one",
              "redis.conf:2: 'loadmodule': there are no modules",
              "redis.conf:3: 'rename-command': commands keep their names; take rights away in the "
              "aclfile",
              "redis.conf:4: 'user': users belong into the aclfile",
              "redis.conf:5: replicaof = 'host 0': Invalid master port",
              "redis.conf:6: replicaof = 'host': wrong number of arguments",
              "redis.conf:10: 'maxmemory': 0 would be unlimited; name a limit, as 1gb",
              "redis.conf:11: databases = '32': argument must be between 1 and 16 inclusive",
              "redis.conf:12: 'requirepass': quotes that do not close",
              "redis.conf:13: 'port': wrong number of arguments",
              "redis.conf:14: 'port': wrong number of arguments",
              "redis.conf:7: cluster-enabled = 'yes': cannot be kept: set node-id, cluster-id and "
              "peer for a group of nodes; only 'no' is true here",
              "redis.conf:9: min-replicas-to-write = '1': cannot be kept: no write waits for "
              "replicas of redis-server; in a group each waits for a majority; only '0' is true "
              "here"});
}

TEST_CASE("config: a redis.conf that keeps data wants a word about the storage", "[net][config]") {
  const Folder folder;
  const std::string conf = folder.file("r.conf", "appendonly yes\nsave 60 1\nsave 3600 1\n");
  Settings settings;
  CHECK(net::load_config({.redis_conf = conf}, settings).errors.size() == 3);
  ConfigSources sources{.redis_conf = conf};
  CHECK(parse(sources, {"--storage-enabled=no"}) == "");
  const Findings decided = net::load_config(sources, settings);
  CHECK(decided.errors == Lines{});
  CHECK(decided.warnings.size() == 3);
  CHECK(settings.text(Setting::appendonly) == "no");
}

TEST_CASE("config: what is printed gives the same settings again", "[net][config]") {
  Settings settings;
  REQUIRE(change(settings, {{"timeout", "90"},
                            {"maxclients", "7"},
                            {"client-query-buffer-limit", "600mb"},
                            {"tls-protocols", "TLSv1.3"},
                            {"tls-ciphers", "a\"b\\c\x01 \xc3\xa4"},
                            {"notify-keyspace-events", "KEA"},
                            {"latency-tracking", "no"}}));
  for (const bool origins : {false, true}) {
    const std::string page = net::print_config(settings, {.origins = origins});
    INFO(page);
    Settings again;
    CHECK(load_toml(page, again).errors == Lines{});
    for (std::size_t i = 0; i < net::setting_count; ++i) {
      const auto setting = static_cast<Setting>(i);
      CHECK(again.value(setting) == settings.value(setting));
    }
    CHECK((page.find("timeout = \"90s\"  # CONFIG SET\n") != std::string::npos) == origins);
    CHECK((page.find("port = 6379  # default\n") != std::string::npos) == origins);
  }
}

TEST_CASE("config: a secret is printed as hidden, and does not become the secret",
          "[net][config]") {
  Settings settings;
  REQUIRE(change(settings, {{"requirepass", "open sesame"}}));
  const std::string page = net::print_config(settings, {});
  CHECK(page.find("sesame") == std::string::npos);
  CHECK(page.find("# requirepass = \"<hidden>\"\n") != std::string::npos);
  CHECK(errors_in(page) == Lines{});
}

TEST_CASE("config: a rewrite changes what CONFIG SET changed and no other byte", "[net][config]") {
  const std::string before =
      "# ours\r\n"
      "[server]  # the node\n"
      "maxclients=100# few\n"
      "timeout   = \"5s\"\n"
      "\n"
      "[security]\n"
      "requirepass = '''old\n"
      "two'''\n"
      "\"tls-protocols\" = [\n  \"TLSv1.2\",\n  \"TLSv1.3\",  # new\n]\n"
      "[log]\n"
      "log-keys = false";
  Settings settings;
  REQUIRE(load_toml(before, settings).errors == Lines{});
  CHECK(net::rewritten(settings, before).value() == before);
  REQUIRE(change(settings, {{"maxclients", "7"},
                            {"timeout", "0"},
                            {"tcp-keepalive", "60"},
                            {"requirepass", "n\xc3\xa4\"w"},
                            {"tls-protocols", "TLSv1.3"},
                            {"log-keys", "yes"},
                            {"slowlog-max-len", "5"}}));
  CHECK(net::rewritten(settings, before).value() ==
        "# ours\r\n"
        "[server]  # the node\n"
        "tcp-keepalive = \"60s\"\n"
        "maxclients=7# few\n"
        "timeout   = 0\n"
        "\n"
        "[security]\n"
        "requirepass = \"n\xc3\xa4\\\"w\"\n"
        "\"tls-protocols\" = [\"TLSv1.3\"]\n"
        "[log]\n"
        "log-keys = true\n"
        "\n"
        "[slowlog]\n"
        "slowlog-max-len = 5\n");
}

TEST_CASE("config: a rewrite reads dotted keys and refuses what it cannot place", "[net][config]") {
  Settings settings;
  REQUIRE(change(settings, {{"maxclients", "7"}}));
  CHECK(net::rewritten(settings, "server.maxclients = 5\n").value() == "server.maxclients = 7\n");
  CHECK(net::rewritten(settings, "server = { maxclients = 5, timeout = 1 }\n").value() ==
        "server = { maxclients = 7, timeout = 1 }\n");
  CHECK(net::rewritten(settings, "server = { ready-file = \"\xc3\xa4\", maxclients = 5 }\n")
            .value() == "server = { ready-file = \"\xc3\xa4\", maxclients = 7 }\n");
  CHECK(net::rewritten(settings, "").value() == "[server]\nmaxclients = 7\n");
  CHECK_FALSE(net::rewritten(settings, "server = { timeout = 1 }\n").ok());
  CHECK_FALSE(net::rewritten(settings, "server.timeout = 1\n").ok());
  CHECK_FALSE(net::rewritten(settings, "[log]\nlog-file = '''\n[server]\n'''\n").ok());
  CHECK_FALSE(net::rewritten(settings, "[server\n").ok());
  CHECK_FALSE(net::rewritten(settings, "[server]\nmaxclients = 5\nmaxclients = 6\n").ok());
  REQUIRE(change(settings, {{"requirepass", "\xff"}}));
  CHECK_FALSE(net::rewritten(settings, "").ok());
}

TEST_CASE("config: two files are the same but for what was to change, or they are not",
          "[net][config]") {
  const std::vector<const net::SettingRow*> port{&net::row_of(Setting::port)};
  const std::string file = "[server]\nport = 1\ntimeout = 2\n";
  CHECK(net::is_same_toml(file, "[server]\ntimeout = 2\nport = 7\n", port));
  CHECK(net::is_same_toml("", "[server]\nport = 7\n", port));
  CHECK_FALSE(net::is_same_toml(file, "[server]\nport = 7\ntimeout = 3\n", port));
  CHECK_FALSE(net::is_same_toml(file, "[server]\nport = 7\n", port));
  CHECK_FALSE(net::is_same_toml(file, file + "[", port));
}

TEST_CASE("config: a rewrite replaces the file, follows a link, keeps the mode", "[net][config]") {
  const Folder folder;
  const std::string path = folder.file("semel.toml", "[server]\nport = 7000\n");
  std::filesystem::permissions(path, std::filesystem::perms{0640});
  const std::string link = path + ".link";
  std::filesystem::create_symlink(path, link);
  Settings settings;
  REQUIRE(net::load_config({.file = path}, settings).errors == Lines{});
  REQUIRE(change(settings, {{"maxclients", "7"}, {"hz", "10"}}));
  CHECK(net::rewrite_config(settings, link).ok());
  CHECK(content_of(path) == "[server]\nmaxclients = 7\nport = 7000\n");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms{0640});
  CHECK(folder.count() == 2);
  Settings again;
  CHECK(net::load_config({.file = path}, again).errors == Lines{});
  CHECK(again.integer(Setting::maxclients) == 7);
}

TEST_CASE("config: a rewrite that fails says why and leaves the file", "[net][config]") {
  const Folder folder;
  Settings settings;
  REQUIRE(change(settings, {{"maxclients", "7"}}));
  CHECK(net::rewrite_config(settings, "").error().detail ==
        "ERR The server is running without a config file");
  CHECK(net::rewrite_config(settings, "/nowhere/a").error().detail ==
        "ERR Rewriting config file: No such file or directory");
  const std::string path = folder.file("semel.toml", "server.timeout = 1\n");
  CHECK(net::rewrite_config(settings, path).error().detail ==
        "ERR Rewriting config file: the values changed cannot be put into it; write them by hand");
  CHECK(content_of(path) == "server.timeout = 1\n");
  CHECK(folder.count() == 1);
}

namespace {

constexpr std::string_view table_begin = "anew -->\n";
constexpr std::string_view table_end = "<!-- settings: end -->";

/// The page with the table as it must be.
std::string page_with_table(const std::string& page) {
  const std::size_t begin = page.find(table_begin) + table_begin.size();
  const std::size_t end = page.find(table_end);
  REQUIRE(begin < end + 1);
  REQUIRE(end != std::string::npos);
  return page.substr(0, begin) + "\n" + net::settings_table() + "\n" + page.substr(end);
}

}  // namespace

TEST_CASE("config: docs/operations.md holds the table of settings", "[net][config]") {
  const std::string page = content_of(SEMEL_OPERATIONS);
  // If not: net_tests "[write-settings]"
  CHECK((page == page_with_table(page)));
}

TEST_CASE("config: write the table of settings into docs/operations.md", "[.][write-settings]") {
  const std::string page = page_with_table(content_of(SEMEL_OPERATIONS));
  std::ofstream{SEMEL_OPERATIONS, std::ios::binary} << page;
  CHECK(content_of(SEMEL_OPERATIONS) == page);
}

TEST_CASE("configuration: namespaces are declared with a policy by its name and what differs",
          "[net][config]") {
  Settings settings;
  const Findings findings = load_toml(
      "[namespaces.orders]\n"
      "as = \"message\"\n"
      "lease = \"5m\"\n"
      "attempts-max = 3\n"
      "[namespaces]\n"
      "payments = { on-lease-end = \"in-doubt\", window = 1000, strict = true, fair = false, db = "
      "3 }\n",
      settings);
  REQUIRE(findings.errors == Lines{});
  REQUIRE(findings.namespaces.size() == 2);
  const net::DeclaredNamespace& orders = findings.namespaces[0];
  CHECK(orders.name == "orders");
  CHECK(orders.policy.lease == Millis{300'000});
  CHECK(orders.policy.attempts_max == 3);
  CHECK(orders.policy.result_ttl == policies::message.result_ttl);
  CHECK(orders.policy.db == 0);
  const Policy& payments = findings.namespaces[1].policy;
  CHECK(payments.on_lease_end == Policy::OnLeaseEnd::in_doubt);
  CHECK(payments.window == Millis{1'000});
  CHECK(payments.strict);
  CHECK_FALSE(payments.fair);
  CHECK(payments.db == 3);
}

TEST_CASE("configuration: errors of a namespace are reported with their line", "[net][config]") {
  const auto error = [](const std::string& toml) {
    const Lines lines = errors_in(toml);
    return lines.size() == 1 ? lines[0] : std::to_string(lines.size()) + " errors";
  };
  CHECK(error("namespaces = 1") == "f:1:1: 'namespaces' is a section of sections");
  CHECK(error("[namespaces]\norders = \"message\"") ==
        "f:2:1: 'orders' is a namespace: write [namespaces.orders]");
  CHECK(error("[namespaces.orders]\nleese = 5") ==
        "f:2:1: unknown option 'leese' of a namespace, did you mean 'lease'?");
  CHECK(error("[namespaces.orders]\nlease = \"soon\"") ==
        "f:2:1: lease must be milliseconds or a text as \"30s\", not 'soon'");
  CHECK(error("[namespaces.orders]\nlease = 0") ==
        "f:1:13: namespace 'orders': LEASE must be 1..3162240000000, not '0'");
  CHECK(error("[namespaces.orders]\nas = \"wish\"")
            .starts_with("f:1:13: namespace 'orders': AS must be one of call, "));
  CHECK(error("[namespaces.orders]\nstrict = 1") == "f:2:1: strict must be true or false, not '1'");
  CHECK(error("[namespaces.orders]\nlease = [1]") == "f:2:1: lease cannot be of type array");
  CHECK(error("[namespaces.orders]\ndb = 16") == "f:2:1: db must be 0..15, not '16'");
}

}  // namespace semel::tests
