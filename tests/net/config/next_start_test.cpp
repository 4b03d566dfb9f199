// What CONFIG SET takes and CONFIG REWRITE writes, a start takes: check_together() is asked by
// both.
//
// Words: a *base* is a file that a node was started with.
#include <fstream>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/config/config_file.hpp"
#include "net/config/rewrite.hpp"
#include "net/settings/settings.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {
namespace {

using net::Setting;
using net::SettingRow;
using net::Settings;
using net::SettingType;
using Lines = std::vector<std::string>;

const Lines bases{
    "",
    "[security]\nrequirepass-file = \"/p\"\n",
    "[server]\nport = -1\nunix-socket = \"/s\"\n",
    "[security]\ntls-port = 7001\ntls-cert-file = \"/c\"\ntls-key-file = \"/k\"\n"
    "tls-ca-cert-file = \"/a\"\n",
    "[admin]\nadmin-port = 6380\n",
    "[storage]\nstorage-enabled = true\ndir = \"/d\"\ndurability = \"logged\"\n"
    "backup-dir = \"/b\"\n",
    "[cluster]\nnode-id = 1\ncluster-id = \"feed\"\npeer = [\"1=h:1\"]\n[storage]\n"
    "dir = \"/d\"\n",
};

/// Values of its form, at both ends of the range and between.
Lines values_of(const SettingRow& row) {
  Lines values{std::string{row.default_text}};
  switch (row.type) {
    case SettingType::boolean:
      values.insert(values.end(), {"yes", "no"});
      break;
    case SettingType::integer:
    case SettingType::bytes:
    case SettingType::duration:
      for (const std::int64_t value : {row.low, row.low + 1, row.high}) {
        values.push_back(std::to_string(value));
      }
      for (const char* const port : {"6380", "7001", "7002"}) values.emplace_back(port);
      break;
    case SettingType::choice:
    case SettingType::list:
      for (const std::string_view word : net::words_of(row.detail)) values.emplace_back(word);
      if (row.type == SettingType::list) values.insert(values.end(), {"", "127.0.0.1", "a b"});
      break;
    case SettingType::text:
      values.insert(values.end(), {"", "x y\"z", "10%", "1gb", "normal 1mb 1mb 1", "KEA", "50 99"});
      break;
  }
  return values;
}

std::vector<Setting> changeable() {
  std::vector<Setting> all;
  for (std::size_t i = 0; i < net::setting_count; ++i) {
    const SettingRow& row = net::row_of(static_cast<Setting>(i));
    if (!row.changes_at_run_time() || row.has_one_value()) continue;
    all.push_back(static_cast<Setting>(i));
  }
  return all;
}

/// A node that was started with a file: every setting that needs an applier has one.
struct Started {
  explicit Started(const std::string& text) : base(text) {
    std::ofstream{path, std::ios::binary} << text;
    REQUIRE(net::load_config({.file = path}, settings).errors == Lines{});
    const std::vector<Setting> all = changeable();
    settings.apply_with(all, [] { return Done{}; });
  }
  bool set(const std::vector<Settings::NamedView>& pairs) {
    const Status status = settings.set(pairs);
    refusal = status ? "" : status.error().detail;
    return status.ok();
  }
  /// The errors of the next start, after CONFIG REWRITE.
  Lines errors_of_next(Settings& next) {
    const Status written = net::rewrite_config(settings, path);
    if (!written) return {written.error().detail};
    return net::load_config({.file = path}, next).errors;
  }
  const Directory directory{Directory::Medium::memory};
  const std::string path = directory.of("semel.toml");
  const std::string base;
  Settings settings;
  std::string refusal;
};

}  // namespace

TEST_CASE("next start: each value of each setting that CONFIG SET takes, a start takes",
          "[net][config][once-again-18]") {
  for (const Setting setting : changeable()) {
    const SettingRow& row = net::row_of(setting);
    bool was_taken = false;
    for (const std::string& base : bases) {
      for (const std::string& value : values_of(row)) {
        Started node{base};
        INFO(row.name << " = " << value << " with " << base);
        if (!node.set({{row.name, value}})) {
          CHECK(node.refusal.starts_with("ERR CONFIG SET failed"));
          continue;
        }
        was_taken = true;
        Settings next;
        CHECK(node.errors_of_next(next) == Lines{});
        CHECK(next.value(setting) == node.settings.value(setting));
      }
    }
    INFO(row.name);
    CHECK(was_taken);
  }
}

TEST_CASE("next start: what contradicts other settings is refused, and all stays as it was",
          "[net][config][once-again-18]") {
  struct Refused {
    std::size_t base;
    std::vector<Settings::NamedView> pairs;
    std::string_view words;
  };
  const std::vector<Refused> all{
      {0, {{"timeout", "5"}, {"port", "-1"}}, "nothing to listen on: port is -1 (CONFIG SET)"},
      {0, {{"bind", ""}}, "bind names no address"},
      {0, {{"cluster-ready-lag", "5"}}, "there is no node-id"},
      {1, {{"requirepass", "x"}}, "and so is requirepass set (CONFIG SET)"},
      {3, {{"port", "7001"}}, "tls-port is 7001"},
      {3, {{"tls-cert-file", ""}}, "there is no tls-cert-file"},
      {3, {{"tls-ca-cert-file", ""}}, "neither tls-ca-cert-file nor tls-ca-cert-dir"},
      {4, {{"port", "6380"}}, "and so is port"},
  };
  for (const Refused& one : all) {
    Started node{bases[one.base]};
    INFO(one.words);
    const std::string before = node.settings.text(Setting::timeout);
    CHECK_FALSE(node.set(one.pairs));
    INFO(node.refusal);
    CHECK(node.refusal.starts_with("ERR CONFIG SET failed (possibly related to argument '" +
                                   std::string{one.pairs.front().first} + "') - "));
    CHECK(node.refusal.find(one.words) != std::string::npos);
    CHECK(node.settings.text(Setting::timeout) == before);
    Settings next;
    CHECK(node.errors_of_next(next) == Lines{});
  }
}

TEST_CASE("next start: an argument longer than a request is a warning, as redis-server takes it",
          "[net][config][once-again-18]") {
  for (const auto& [name, value] : std::vector<Settings::NamedView>{
           {"proto-max-bulk-len", "100gb"}, {"client-query-buffer-limit", "1mb"}}) {
    Started node{""};
    CHECK(node.set({{name, value}}));
    REQUIRE(net::rewrite_config(node.settings, node.path));
    Settings next;
    const net::Findings findings = net::load_config({.file = node.path}, next);
    CHECK(findings.errors == Lines{});
    REQUIRE(findings.warnings.size() == 1);
    CHECK(findings.warnings[0].starts_with("proto-max-bulk-len is "));
    CHECK(findings.warnings[0].find("which can never come") != std::string::npos);
  }
}

TEST_CASE("next start: a change is not refused for what was wrong before it",
          "[net][config][once-again-18]") {
  Settings settings;
  REQUIRE(settings.assign(Setting::durability, "synced", {}).ok());
  REQUIRE(net::check_together(settings).size() == 1);
  const std::vector<Settings::NamedView> pairs{{"timeout", "5"}};
  CHECK(settings.set(pairs).ok());
}

TEST_CASE("start: a setting of a group without node-id is refused, and named",
          "[net][config][once-again-18]") {
  const std::vector<std::pair<std::string_view, std::string_view>> others{
      {"cluster-id", "feed"},
      {"peer", "1=h:1"},
      {"cluster-listen", "h:1"},
      {"cluster-announce", "h:1"},
      {"cluster-election-timeout", "400"},
      {"cluster-heartbeat", "40"},
      {"cluster-tls-cert-file", "c"},
      {"cluster-tls-key-file", "k"},
      {"cluster-tls-ca-cert-file", "a"},
      {"cluster-forward", "yes"},
      {"cluster-lease-reads", "yes"},
      {"cluster-ready-lag", "1"},
      {"cluster-snapshot-rate", "2mb"}};
  std::size_t count = 1;  // node-id
  for (std::size_t i = 0; i < net::setting_count; ++i) {
    const SettingRow& row = net::row_of(static_cast<Setting>(i));
    if (row.section != "cluster" || row.name == "node-id") continue;
    ++count;
    // Its default says nothing.
    Settings same;
    REQUIRE(same.assign(static_cast<Setting>(i), row.default_text, {}).ok());
    CHECK(net::check_together(same) == Lines{});
  }
  CHECK(count == others.size() + 1);
  for (const auto& [name, value] : others) {
    Settings settings;
    REQUIRE(settings.assign(net::find_setting(name)->setting, value, {}).ok());
    const Lines errors = net::check_together(settings);
    REQUIRE(errors.size() == 1);
    INFO(errors[0]);
    CHECK(errors[0].starts_with(std::string{name} + " is "));
    CHECK(errors[0].find("there is no node-id") != std::string::npos);
    REQUIRE(settings.assign(Setting::node_id, "1", {}).ok());
    CHECK(net::check_together(settings) == Lines{});
  }
}

TEST_CASE("start: a directory for backups without a storage is refused",
          "[net][config][once-again-19]") {
  Settings settings;
  REQUIRE(settings.assign(Setting::backup_dir, "/b", {}).ok());
  CHECK(net::check_together(settings) ==
        Lines{"backup-dir is /b (default), but there is no storage to back up: set "
              "storage-enabled, dir and durability"});
  REQUIRE(settings.assign(Setting::node_id, "1", {}).ok());
  CHECK(net::check_together(settings) ==
        Lines{"backup-dir is /b (default), but a node of a group has no storage, and makes no "
              "backups"});
  Settings stores;
  REQUIRE(stores.assign(Setting::backup_dir, "/b", {}).ok());
  REQUIRE(stores.assign(Setting::storage_enabled, "yes", {net::Origin::Kind::flag, "f"}).ok());
  REQUIRE(stores.assign(Setting::dir, "/d", {}).ok());
  CHECK(net::check_together(stores) == Lines{});
}

TEST_CASE("config: a redis.conf is rewritten line by line, and read back", "[net][config]") {
  const std::string before =
      "# ours\n"
      "Hash-max-ziplist-entries 20\r\n"
      "hash-max-listpack-entries 21\n"
      "unknown-word 1\n"
      "port 7000\n"
      "timeout 5";
  Settings settings;
  const auto set = [&](std::string_view name, std::string_view value) {
    const std::vector<Settings::NamedView> pairs{{name, value}};
    return settings.set(pairs).ok();
  };
  CHECK(net::rewritten_redis_conf(settings, before).value() == before);
  REQUIRE(set("hash-max-listpack-entries", "100"));
  REQUIRE(set("requirepass", std::string_view{"a \"b\\\0\n\xff", 8}));
  REQUIRE(set("client-output-buffer-limit", "pubsub 1 2 3"));
  const std::string after = net::rewritten_redis_conf(settings, before).value();
  CHECK(after ==
        "# ours\n"
        "hash-max-listpack-entries 100\n"
        "unknown-word 1\n"
        "port 7000\n"
        "timeout 5\n"
        "client-output-buffer-limit \"normal 0 0 0 slave 268435456 67108864 60 pubsub 1 2 3\"\n"
        "requirepass \"a \\\"b\\\\\\x00\\x0a\\xff\"\n");
  std::vector<net::Assignment> read;
  net::Findings findings;
  net::read_redis_conf(after, "redis.conf", read, findings);
  CHECK(findings.errors.empty());
  Settings again;
  for (const net::Assignment& one : read) {
    REQUIRE(again.assign(one.setting, one.text, one.origin).ok());
  }
  for (const Setting each : {Setting::hash_max_listpack_entries, Setting::requirepass,
                             Setting::client_output_buffer_limit}) {
    CHECK(again.text(each) == settings.text(each));
  }
  CHECK(net::rewritten_redis_conf(again, after).value() == after);
  // What redis.conf has no name for cannot be put into one.
  REQUIRE(set("request-deadline", "5000"));
  CHECK_FALSE(net::rewritten_redis_conf(settings, before).ok());
}

}  // namespace semel::tests
