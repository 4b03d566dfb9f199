// What the table says, what CONFIG GET and CONFIG SET answer, and that redis-server answers the
// same.
//
// Words: a *row* is a line of settings.def; a setting *for clients* is one that is stored and does
// nothing.
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/settings/setting_limits.hpp"
#include "net/settings/settings.hpp"
#include "tests/support/redis_or_skip.hpp"
#include "tests/support/resp_client.hpp"

namespace semel::tests {
namespace {

using net::find_setting;
using net::row_of;
using net::Setting;
using net::Settings;
using net::SettingType;

/// "OK" or the error.
std::string set(Settings& settings, const std::vector<std::string>& words) {
  std::vector<Settings::NamedView> pairs;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) pairs.emplace_back(words[i], words[i + 1]);
  const Status status = settings.set(pairs);
  return status ? "OK" : status.error().detail;
}

std::string failed(const std::string& name, const std::string& why) {
  return "ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why;
}

std::map<std::string, std::string> get(const Settings& settings, std::string_view glob) {
  const auto pairs = settings.get(std::span{&glob, 1});
  return {pairs.begin(), pairs.end()};
}

}  // namespace

TEST_CASE("settings: every default is what its own row allows", "[net][config]") {
  const Settings settings;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < net::setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    const net::SettingRow& row = row_of(setting);
    INFO(row.name);
    const auto parsed = net::parse_setting(row, row.default_text, {});
    CHECK(parsed.ok());
    CHECK(settings.text(setting) == row.default_text);
    CHECK(settings.origin(setting).text() == "default");
    CHECK(row.flags.find_first_not_of("rapscqdxh") == std::string_view::npos);
    CHECK_FALSE(row.doc.empty());
    CHECK((row.section == "redis") == row.has_one_value());
    CHECK((row.loss() != net::Loss::none) == row.has_one_value());
    CHECK(names.insert(row.name).second);
    for (const std::string_view known : net::words_of(row.redis_names)) {
      CHECK((known == row.name || names.insert(known).second));
      CHECK(find_setting(known)->setting == setting);
    }
    CHECK(find_setting(row.name)->setting == setting);
  }
}

TEST_CASE("settings: what is written for people reads back as the same value", "[net][config]") {
  for (const net::SettingRow& row : net::all_settings()) {
    for (const std::string text : {"0", "1", "300", "65536", "104857600", "100mb", "64k", "1gb",
                                   "90s", "2h", "yes", "700", "-1"}) {
      const auto parsed = net::parse_setting(row, text, row.default_text);
      if (!parsed) continue;
      INFO(row.name << " = " << text);
      const std::string written = net::write_setting(row, *parsed);
      INFO(written);
      CHECK(net::parse_setting(row, written, row.default_text).value() == *parsed);
      const std::string shown = net::show_setting(row, *parsed);
      CHECK(net::parse_setting(row, shown, row.default_text).value() == *parsed);
    }
  }
}

TEST_CASE("settings: bytes and durations have Redis' units and end where 64 bits end",
          "[net][config]") {
  CHECK(net::bytes_of("0") == 0);
  CHECK(net::bytes_of("64k") == 64'000);
  CHECK(net::bytes_of("64KB") == 65'536);
  CHECK(net::bytes_of("1m") == 1'000'000);
  CHECK(net::bytes_of("100mb") == 104'857'600);
  CHECK(net::bytes_of("1g") == 1'000'000'000);
  CHECK(net::bytes_of("2Gb") == 2'147'483'648);
  CHECK(net::bytes_of("7b") == 7);
  CHECK(net::bytes_of("9223372036854775807") == 9'223'372'036'854'775'807);
  CHECK(net::bytes_of("8589934591gb") == 9'223'372'035'781'033'984);
  for (const std::string_view bad :
       {"", "mb", "-1", "+1", "1.5gb", "1 mb", "1x", "9223372036854775808", "8589934592gb"}) {
    INFO(bad);
    CHECK_FALSE(net::bytes_of(bad));
  }
  CHECK(net::duration_of("30", "s") == 30);
  CHECK(net::duration_of("30s", "ms") == 30'000);
  CHECK(net::duration_of("250ms", "us") == 250'000);
  CHECK(net::duration_of("2m", "s") == 120);
  CHECK(net::duration_of("1h", "s") == 3'600);
  CHECK(net::duration_of("3000ms", "s") == 3);
  CHECK(net::duration_of("-1", "us") == -1);
  for (const std::string_view bad :
       {"", "s", "-1s", "1.5s", "250ms", "1 s", "1y", "01", "9223372036854775807h"}) {
    INFO(bad);
    CHECK_FALSE(net::duration_of(bad, "s"));
  }
}

TEST_CASE("settings: an integer is taken at its bounds and refused beyond them", "[net][config]") {
  for (const net::SettingRow& row : net::all_settings()) {
    if (row.type != SettingType::integer || !row.detail.empty()) continue;
    INFO(row.name);
    CHECK(net::parse_setting(row, std::to_string(row.low), {}).ok());
    CHECK(net::parse_setting(row, std::to_string(row.high), {}).ok());
    CHECK_FALSE(net::parse_setting(row, std::to_string(row.low - 1), {}).ok());
    if (row.high < std::numeric_limits<std::int64_t>::max()) {
      CHECK_FALSE(net::parse_setting(row, std::to_string(row.high + 1), {}).ok());
    }
  }
}

TEST_CASE("settings: io-threads ends at the limit of the server", "[net][config][limits]") {
  Settings settings;
  CHECK(settings.assign(Setting::io_threads, std::to_string(net::io_threads_max), {}).ok());
  CHECK(settings.assign(Setting::io_threads, std::to_string(net::io_threads_max + 1), {})
            .error()
            .detail == "argument must be between 0 and 64 inclusive");
  CHECK(settings.integer(Setting::io_threads) == 64);
}

TEST_CASE("settings: a text, a list and any value end at their length", "[net][config]") {
  const auto error_of = [](Setting setting, std::string_view text) {
    const auto parsed = net::parse_setting(row_of(setting), text, {});
    return parsed ? std::string{} : parsed.error().detail;
  };
  CHECK(error_of(Setting::unix_socket, std::string(107, 'a')) == "");
  CHECK(error_of(Setting::unix_socket, std::string(108, 'a')) ==
        "argument must have at most 107 bytes");
  CHECK(error_of(Setting::bind, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16") == "");
  CHECK(error_of(Setting::bind, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17") ==
        "argument must have between 0 and 16 words");
  CHECK(error_of(Setting::bind, std::string(64 * 1024, 'a')) == "");
  CHECK(error_of(Setting::bind, std::string(64 * 1024 + 1, 'a')) ==
        "argument must have at most 65536 bytes");
  CHECK(error_of(Setting::dir, std::string_view{"a\0b", 3}) ==
        "argument must not have a zero byte");
  CHECK(error_of(Setting::tls_protocols, "tlsv1.3") == "");
  CHECK(error_of(Setting::tls_protocols, "TLSv1.1") ==
        "argument(s) must be one of the following: TLSv1.2, TLSv1.3");
  CHECK(error_of(Setting::unix_socket_mode, "777") == "");
  CHECK(error_of(Setting::unix_socket_mode, "1000") ==
        "argument must be between 0 and 777 inclusive");
  CHECK(error_of(Setting::unix_socket_mode, "8") ==
        "argument couldn't be parsed as an octal number");
  CHECK(error_of(Setting::shards, "64") == "");
  CHECK(error_of(Setting::shards, "24") == "argument must be a power of two");
  CHECK(error_of(Setting::maxmemory, "0") ==
        "argument must be between 1 and 274877906944 inclusive");
}

TEST_CASE("settings: CONFIG SET changes all or nothing, with Redis' words", "[net][config]") {
  Settings settings;
  CHECK(set(settings, {"timeout", "5", "MAXCLIENTS", "7"}) == "OK");
  CHECK(settings.integer(Setting::timeout) == 5);
  CHECK(settings.integer(Setting::maxclients) == 7);
  CHECK(settings.origin(Setting::timeout).text() == "CONFIG SET");

  CHECK(set(settings, {"timeout", "6", "hz", "x"}) ==
        failed("hz", "argument couldn't be parsed into an integer"));
  CHECK(set(settings, {"timeout", "6", "Maxclients", "0"}) ==
        failed("maxclients", "argument must be between 1 and 1000000 inclusive"));
  CHECK(set(settings, {"timeout", "6", "nosuch", "1"}) ==
        "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'");
  CHECK(set(settings, {"timeout", "6", "databases", "16"}) ==
        failed("databases", "can't set immutable config"));
  CHECK(set(settings, {"timeout", "6", "dir", "/"}) == failed("dir", "can't set protected config"));
  CHECK(set(settings, {"timeout", "6", "TIMEOUT", "7"}) ==
        failed("timeout", "duplicate parameter"));
  CHECK(settings.integer(Setting::timeout) == 5);
}

TEST_CASE("settings: CONFIG GET answers Redis' names, and ours where it has none",
          "[net][config]") {
  Settings settings;
  CHECK(get(settings, "*-priority") ==
        std::map<std::string, std::string>{{"slave-priority", "100"}, {"replica-priority", "100"}});
  CHECK(get(settings, "unixsock*").size() == 2);
  CHECK(get(settings, "unix-sock*").empty());
  CHECK(get(settings, "UNIX-socket") == std::map<std::string, std::string>{{"UNIX-socket", ""}});
  CHECK(get(settings, "request-*") ==
        std::map<std::string, std::string>{{"request-deadline", "30000"}});
  CHECK(get(settings, "nosuch").empty());
  const std::vector<std::string_view> twice{"timeout", "TIME*", "timeout"};
  CHECK(settings.get(twice).size() == 1);
}

TEST_CASE("settings: typed reads give what was set", "[net][config]") {
  Settings settings;
  CHECK(set(settings, {"timeout", "2m", "slowlog-log-slower-than", "-1", "tcp-keepalive", "32767",
                       "latency-monitor-threshold", "9223372036854775807"}) == "OK");
  CHECK(settings.duration(Setting::timeout) == std::chrono::minutes{2});
  CHECK(settings.duration(Setting::slowlog_log_slower_than) == std::chrono::microseconds{-1});
  CHECK(settings.duration(Setting::tcp_keepalive) == std::chrono::seconds{32767});
  CHECK(settings.duration(Setting::latency_monitor_threshold) == std::chrono::microseconds::max());
  CHECK(settings.boolean(Setting::protected_mode));
  CHECK(settings.list(Setting::bind) == std::vector<std::string>{"127.0.0.1", "-::1"});
  enum class Auth { no, yes, optional };
  CHECK(settings.choice<Auth>(Setting::tls_auth_clients) == Auth::yes);

  CHECK(set(settings, {"client-output-buffer-limit", "replica 1mb 2k 3"}) == "OK");
  const net::OutputLimits limits = settings.output_limits();
  CHECK(limits[0].hard_bytes == 0);
  CHECK(limits[1].hard_bytes == 1'048'576);
  CHECK(limits[1].soft_bytes == 2'000);
  CHECK(limits[1].soft_seconds == 3);
  CHECK(limits[2].soft_seconds == 60);

  CHECK(set(settings, {"notify-keyspace-events", "KEn$"}) == "OK");
  CHECK(settings.event_classes() ==
        (net::event_keyspace | net::event_keyevent | net::event_new | net::event_string));
  CHECK(set(settings, {"notify-keyspace-events", "AKn"}) == "OK");
  CHECK(settings.event_classes() == (net::event_all | net::event_keyspace | net::event_new));
}

TEST_CASE("settings: observers are called once per success, and may set in turn", "[net][config]") {
  Settings settings;
  int timeouts = 0;
  int files = 0;
  settings.on_change(Setting::timeout, [&] {
    ++timeouts;
    CHECK(set(settings, {"slowlog-max-len", std::to_string(settings.integer(Setting::timeout))}) ==
          "OK");
  });
  settings.on_change(Setting::tls_cert_file, [&] { ++files; });
  CHECK(set(settings, {"timeout", "9"}) == "OK");
  CHECK(timeouts == 1);
  CHECK(settings.integer(Setting::slowlog_max_len) == 9);
  CHECK(set(settings, {"timeout", "x"}) != "OK");
  CHECK(set(settings, {"maxclients", "5"}) == "OK");
  CHECK(timeouts == 1);
  CHECK(set(settings, {"tls-cert-file", "a"}) == "OK");
  CHECK(set(settings, {"tls-cert-file", "a"}) == "OK");
  CHECK(files == 2);
}

TEST_CASE("settings: what cannot be applied is as if it had not been set", "[net][config]") {
  Settings settings;
  constexpr std::array both = {Setting::tls_cert_file, Setting::tls_key_file};
  std::string in_use;
  int notified = 0;
  settings.apply_with(both, [&]() -> Status {
    const std::string file = settings.text(Setting::tls_cert_file);
    if (file == "bad") return Error{ErrorCode::bad_option, "Cannot be used."};
    in_use = file + "+" + settings.text(Setting::tls_key_file);
    return Done{};
  });
  settings.on_change(Setting::tls_cert_file, [&] { ++notified; });
  CHECK(set(settings, {"tls-key-file", "k", "tls-cert-file", "c"}) == "OK");
  CHECK(in_use == "c+k");  // asked once, of both
  CHECK(notified == 1);
  // The first setting concerned is named, nothing is changed, and no callback is called.
  CHECK(set(settings, {"timeout", "7", "tls-key-file", "l", "tls-cert-file", "bad"}) ==
        "ERR CONFIG SET failed (possibly related to argument 'tls-key-file') - Cannot be used.");
  CHECK(settings.text(Setting::tls_key_file) == "k");
  CHECK(settings.text(Setting::tls_cert_file) == "c");
  CHECK(settings.integer(Setting::timeout) == 0);
  CHECK(in_use == "c+k");
  CHECK(notified == 1);
  in_use.clear();
  CHECK(set(settings, {"timeout", "7"}) == "OK");
  CHECK(in_use.empty());
}

TEST_CASE("settings: readers beside writers see whole values", "[net][config][race]") {
  Settings settings;
  std::atomic<bool> ends{false};
  std::thread writer{[&] {
    for (int i = 1; i <= 2'000; ++i) {
      static_cast<void>(set(settings, {"maxclients", i % 2 == 0 ? "111111" : "222222",
                                       "requirepass", std::string(100, i % 2 == 0 ? 'a' : 'b')}));
    }
    ends.store(true, std::memory_order_release);
  }};
  bool are_whole = true;
  while (!ends.load(std::memory_order_acquire)) {
    const auto count = settings.integer(Setting::maxclients);
    are_whole &= count == 10'000 || count == 111'111 || count == 222'222;
    const std::string text = settings.text(Setting::requirepass);
    are_whole &= text.find_first_not_of(text.empty() ? 'a' : text.front()) == std::string::npos;
  }
  writer.join();
  CHECK(are_whole);
}

TEST_CASE("settings: the nearest name is near", "[net][config]") {
  CHECK(net::nearest_setting("prot") == "port");
  CHECK(net::nearest_setting("Max-clients") == "maxclients");
  CHECK(net::nearest_setting("tls-prot") == "tls-port");
  CHECK(net::nearest_setting("unixsocket") == "unix-socket");
  CHECK(net::nearest_setting("zzzzzzzzzz").empty());
  CHECK(net::nearest_setting("").empty());
  CHECK(net::nearest_setting(std::string(65, 'a')).empty());
}

namespace {

/// What differs by intent: other defaults, or values of our own.
const std::set<std::string> own_defaults{"bind",       "port",      "unixsocket",
                                         "io-threads", "maxmemory", "dir",
                                         "tls-port",   "save",      "io-threads-do-reads"};

/// Changes what redis-server does to this test: its log, its password, its files; or is read in
/// another way by intent (ports may be -1). One-value settings are not asked for either.
const std::set<std::string> not_asked{
    "loglevel", "requirepass", "appendonly", "appendfsync", "min-replicas-to-write",
    "min-slaves-to-write", "bind", "bind-source-addr", "port", "activedefrag", "jemalloc-bg-thread",
    "oom-score-adj", "oom-score-adj-values", "hz", "save", "proc-title-template", "maxmemory",
    "latency-tracking-info-percentiles", "tls-port", "maxclients", "tls-auth-clients-user",
    "shutdown-on-sigint", "shutdown-on-sigterm", "tls-protocols", "maxmemory-policy",
    "cluster-announce-hostname", "tls-cluster", "tls-replication", "repl-backlog-size",
    "lfu-decay-time", "lfu-log-factor", "maxmemory-samples",  // a node applies them
    // a bound of our own
    "acllog-max-len", "slowlog-max-len", "tcp-keepalive", "databases"};

}  // namespace

TEST_CASE("settings: whatever redis-server's CONFIG GET knows is known, with the same default",
          "[net][config][redis]") {
  const auto server = redis_or_skip();
  if (!server) return;
  RespClient client{server->socket_path()};
  const RespValue all = client.call({"CONFIG", "GET", "*"});
  REQUIRE(all.items.size() > 300);
  const auto ours = get(Settings{}, "*");
  for (std::size_t i = 0; i + 1 < all.items.size(); i += 2) {
    const std::string& name = all.items[i].text;
    INFO(name);
    REQUIRE(ours.count(name) == 1);
    if (own_defaults.count(name) == 0) CHECK(ours.at(name) == all.items[i + 1].text);
  }
}

namespace {

/// What a client might say: names that redis-server knows and some that are unknown, and values
/// that fit one of them.
struct Vocabulary {
  std::vector<std::string> names{"nosuch", "a b"};
  std::vector<std::string> values{"",
                                  "0",
                                  "1",
                                  "-1",
                                  "-2",
                                  "5",
                                  "100",
                                  "01",
                                  "+1",
                                  " 1",
                                  "yes",
                                  "NO",
                                  "maybe",
                                  "1kb",
                                  "3g",
                                  "2Mb",
                                  "1.5",
                                  "x",
                                  "AK",
                                  "Kx",
                                  "nEm",
                                  "65536",
                                  "2147483648",
                                  "9999999999",
                                  "50%",
                                  "101%",
                                  "60 5",
                                  "pubsub 1 2",
                                  "normal 1mb 0 0 replica 1gb 2k 9",
                                  "slave 1 2 -3",
                                  "all 1 2 3"};

  Vocabulary() {
    for (const net::SettingRow& row : net::all_settings()) {
      for (const std::string_view name : net::words_of(row.redis_names)) {
        const bool is_asked = not_asked.count(std::string{name}) == 0;
        if (is_asked && !row.has_one_value()) names.emplace_back(name);
      }
      if (row.type != SettingType::choice) continue;
      for (const std::string_view word : net::words_of(row.detail)) values.emplace_back(word);
    }
  }

  /// Names and values in turn, for one call.
  [[nodiscard]] std::vector<std::string> pairs(std::mt19937_64& random) const {
    std::vector<std::string> pairs;
    for (std::size_t left = 1 + random() % 3; left > 0; --left) {
      const std::string& name = names[random() % names.size()];
      std::string value = values[random() % values.size()];
      const auto found = find_setting(name);
      const bool is_memory = found && (row_of(found->setting).type == SettingType::bytes ||
                                       found->setting == Setting::maxmemory_clients);
      if (is_memory && value.empty()) value = "0";  // as redis-server reads it; we refuse it
      pairs.insert(pairs.end(), {name, value});
    }
    return pairs;
  }
};

}  // namespace

TEST_CASE("settings: CONFIG SET answers as redis-server does", "[net][config][redis]") {
  const auto server = redis_or_skip();
  if (!server) return;
  RespClient client{server->socket_path()};
  Settings settings;
  const std::string limits = settings.text(Setting::client_output_buffer_limit);
  REQUIRE(client.call({"CONFIG", "SET", "client-output-buffer-limit", limits}).show() == "+OK");

  const Vocabulary vocabulary;
  std::mt19937_64 random{Catch::rngSeed()};
  INFO("seed " << Catch::rngSeed());
  int successes = 0;
  for (int round = 0; round < 4'000; ++round) {
    const std::vector<std::string> pairs = vocabulary.pairs(random);
    std::vector<std::string> command{"CONFIG", "SET"};
    command.insert(command.end(), pairs.begin(), pairs.end());
    const RespValue reply = client.call(command);
    INFO("CONFIG SET " << Catch::StringMaker<std::vector<std::string>>::convert(pairs));
    REQUIRE(set(settings, pairs) == reply.text);
    successes += reply.text == "OK" ? 1 : 0;
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      const RespValue held = client.call({"CONFIG", "GET", pairs[i]});
      if (held.items.size() != 2 || own_defaults.count(pairs[i]) != 0) continue;
      REQUIRE(get(settings, pairs[i]).at(pairs[i]) == held.items[1].text);
    }
  }
  CHECK(successes > 200);
}

}  // namespace semel::tests
