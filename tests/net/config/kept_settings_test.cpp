// A value that promises what the node does not do is refused, wherever it is given; and what
// CONFIG SET accepts has an effect.
//
// Words: a *one-value* setting is one of Redis' of which one value is true here.
#include <CLI/CLI.hpp>
#include <fstream>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "base/ascii.hpp"
#include "net/config/config_file.hpp"
#include "net/config/config_text.hpp"
#include "net/config/flags.hpp"
#include "net/config/rewrite.hpp"
#include "net/settings/settings.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {
namespace {

using net::Assignment;
using net::ConfigSources;
using net::Findings;
using net::Loss;
using net::Origin;
using net::Setting;
using net::SettingRow;
using net::Settings;
using net::SettingType;
using Lines = std::vector<std::string>;

/// Some value of the row that is not `truth`, and has the form of a value.
std::string other_than(const SettingRow& row, const std::string& truth) {
  switch (row.type) {
    case SettingType::boolean:
      return truth == "yes" ? "no" : "yes";
    case SettingType::integer:
    case SettingType::bytes:
    case SettingType::duration:
      return std::to_string(truth == std::to_string(row.low) ? row.low + 1 : row.low);
    case SettingType::choice:
    case SettingType::list:
      for (const std::string_view word : net::words_of(row.detail)) {
        if (word != truth) return std::string{word};
      }
      break;
    case SettingType::text:
      if (row.detail == "save-points") return "900 1";
      if (row.detail == "three-integers") return "1 2 3";
      return "other";
  }
  return "other";
}

std::vector<Setting> one_value_settings() {
  std::vector<Setting> all;
  for (std::size_t i = 0; i < net::setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    if (net::row_of(setting).has_one_value()) all.push_back(setting);
  }
  return all;
}

/// The path of a file with this content.
std::string written(const Directory& directory, const std::string& name,
                    const std::string& content) {
  std::ofstream{directory.of(name), std::ios::binary} << content;
  return directory.of(name);
}

/// What load_config says of one setting that is given in one way.
Findings load(Setting setting, const std::string& text, Origin::Kind kind) {
  const SettingRow& row = net::row_of(setting);
  Settings settings;
  ConfigSources sources;
  const std::string name{row.name};
  const Directory directory;
  if (kind == Origin::Kind::flag) {
    CLI::App app{"node"};
    net::register_flags(app, sources);
    // A number less than 0 would look like a flag.
    app.parse(text.empty() ? Lines{text, "--" + name} : Lines{"--" + name + "=" + text});
  } else if (kind == Origin::Kind::environment) {
    std::string variable = "SEMEL_";
    for (const char c : name) variable += c == '-' ? '_' : base::to_upper(c);
    sources.environment.emplace_back(variable, text);
  } else if (kind == Origin::Kind::file) {
    const auto value = net::parse_setting(row, text, row.default_text);
    REQUIRE(value.ok());
    sources.file = written(directory, "semel.toml",
                           "[redis]\n" + name + " = " + net::toml_value(row, *value) + "\n");
  } else {
    sources.redis_conf = written(directory, "redis.conf", name + " " + text);
  }
  return net::load_config(sources, settings);
}

std::string set(Settings& settings, const std::string& name, const std::string& value) {
  const std::vector<Settings::NamedView> pairs{{name, value}};
  const Status status = settings.set(pairs);
  return status ? "OK" : status.error().detail;
}

std::string shown(const Settings& settings, std::string_view name) {
  const auto found = settings.get(std::span{&name, 1});
  return found.empty() ? "absent" : found[0].second;
}

}  // namespace

TEST_CASE("promises: flags, variables, files and CONFIG SET refuse the same values",
          "[net][config][once-again-18]") {
  for (const Setting setting : one_value_settings()) {
    const SettingRow& row = net::row_of(setting);
    Settings settings;
    const std::string name{row.name};
    const std::string truth = net::true_text(settings, setting);
    const std::string other = other_than(row, truth);
    INFO(name << " = " << other);
    REQUIRE(net::parse_setting(row, other, row.default_text).ok());
    REQUIRE_FALSE(row.doc.empty());
    CHECK(row.loss() != Loss::none);
    for (const auto kind : {Origin::Kind::flag, Origin::Kind::environment, Origin::Kind::file}) {
      CHECK(load(setting, truth, kind).errors == Lines{});
      const Findings findings = load(setting, other, kind);
      REQUIRE(findings.errors.size() == 1);
      const std::string& line = findings.errors[0];
      INFO(line);
      CHECK(line.find(name + " = " + net::shown_value(row, other)) != std::string::npos);
      CHECK(line.find(row.doc) != std::string::npos);
      CHECK(findings.warnings == Lines{});
    }
    // CONFIG GET shows what is true, also after an attempt.
    const std::string known{net::words_of(row.redis_names)[0]};
    CHECK(shown(settings, known) == truth);
    const std::string reply = set(settings, known, other);
    INFO(reply);
    CHECK(reply.starts_with("ERR CONFIG SET failed (possibly related to argument '" + known));
    if (row.changes_at_run_time() && !row.is_protected()) {
      CHECK(reply.find(row.doc) != std::string::npos);
      CHECK(reply.find(net::shown_value(row, other)) != std::string::npos);
      CHECK(set(settings, known, truth) == "OK");
    }
    CHECK(shown(settings, known) == truth);
    CHECK_FALSE(settings.assign(setting, other, {}).ok());
    CHECK(shown(settings, known) == truth);
  }
}

TEST_CASE("promises: a node that stands in for redis-server takes what loses no promise",
          "[net][config]") {
  for (const Setting setting : one_value_settings()) {
    const SettingRow& row = net::row_of(setting);
    Settings settings;
    REQUIRE(settings.assign(Setting::stand_in, "yes", {}).ok());
    const std::string truth = net::true_text(settings, setting);
    const std::string other = other_than(row, truth);
    const std::string known{net::words_of(row.redis_names)[0]};
    INFO(known << " = " << other);
    const bool may_change = row.changes_at_run_time() && !row.is_protected();
    // What redis-server does to its process or at its end: no answer depends on it.
    const bool is_of_process =
        known.starts_with("oom-score-adj") || known.starts_with("shutdown-on-");
    const bool is_taken = may_change && (row.loss() != Loss::promise || is_of_process);
    CHECK((set(settings, known, other) == "OK") == is_taken);
    CHECK(shown(settings, known) == (is_taken ? other : truth));
    CHECK_FALSE(settings.assign(setting, other, {}).ok());
    // A start names it as without effect; one of another kind is never in the file.
    CHECK(net::rewritten_redis_conf(settings, "").value().empty() == !is_taken);
    if (may_change) CHECK(set(settings, known, truth) == "OK");
    CHECK(shown(settings, known) == truth);
  }
}

TEST_CASE("promises: a redis.conf loses speed with a warning, and nothing else",
          "[net][config][once-again-18]") {
  for (const Setting setting : one_value_settings()) {
    const SettingRow& row = net::row_of(setting);
    const std::string other = other_than(row, std::string{row.default_text});
    INFO(row.name << " = " << other);
    const Findings findings = load(setting, other, Origin::Kind::redis_conf);
    CHECK(findings.warnings.size() == (row.loss() == Loss::speed ? 1 : 0));
    CHECK(findings.errors.size() == (row.loss() == Loss::speed ? 0 : 1));
  }
}

TEST_CASE("promises: a policy that evicts needs databases that are caches, and no group",
          "[net][config][eviction]") {
  const auto errors_of = [](const std::vector<std::pair<Setting, std::string>>& given) {
    Settings settings;
    for (const auto& [setting, text] : given) REQUIRE(settings.assign(setting, text, {}).ok());
    std::string all;
    for (const std::string& error : net::check_together(settings)) {
      if (error.find("node-id") == std::string::npos) all += error + "\n";
    }
    return all;
  };
  const std::pair policy{Setting::maxmemory_policy, std::string{"allkeys-lru"}};
  const std::pair caches{Setting::cache_databases, std::string{"1 2"}};
  CHECK(errors_of({policy}).find("cache-databases names no database") != std::string::npos);
  CHECK(errors_of({policy}).find("set noeviction") != std::string::npos);
  CHECK(errors_of({policy, caches}).empty());
  CHECK(errors_of({caches}).empty());
  const std::pair group{Setting::node_id, std::string{"1"}};
  CHECK(errors_of({policy, caches, group}).find("a node of a group evicts nothing") !=
        std::string::npos);
  CHECK(errors_of({caches, group}).find("a node of a group evicts nothing") != std::string::npos);
  CHECK(errors_of({{Setting::maxmemory, "1000"}, group}).find("needs 4 MiB") != std::string::npos);
  CHECK(errors_of({{Setting::maxmemory, "1000"}}).empty());
}

TEST_CASE("promises: the four of an image of Redis are refused with what to set instead",
          "[net][config][once-again-18]") {
  const std::vector<std::pair<Lines, std::string>> given{
      {{"--appendonly", "yes"}, "--storage-enabled yes --dir DIR --durability logged"},
      {{"--save", "900 1"}, "--storage-enabled yes --dir DIR --durability logged"},
      {{"--cluster-enabled", "yes"}, "set node-id, cluster-id and peer"},
      {{"--min-replicas-to-write", "1"}, "no write waits for replicas of redis-server"},
      {{"--loadmodule", "/lib/bloom.so"}, "there are no modules"},
      {{"--rename-command", "FLUSHALL", "none"}, "aclfile"},
      {{"--include", "/etc/redis.conf"}, "put its lines into this one"},
      {{"--appendfsync", "always"}, "--durability synced"}};
  for (const auto& [words, remedy] : given) {
    INFO(words[0]);
    ConfigSources sources;
    CLI::App app{"node"};
    net::register_flags(app, sources);
    app.parse(Lines{words.rbegin(), words.rend()});
    Settings settings;
    const Findings findings = net::load_config(sources, settings);
    REQUIRE(findings.errors.size() == 1);
    INFO(findings.errors[0]);
    CHECK(findings.errors[0].find(remedy) != std::string::npos);
    CHECK(findings.errors[0].starts_with("--"));
  }
}

TEST_CASE("promises: what a storage or a group keeps is accepted, and shown without being set",
          "[net][config][once-again-18]") {
  Settings settings;
  CHECK(shown(settings, "appendonly") == "no");
  CHECK(shown(settings, "appendfsync") == "everysec");
  REQUIRE(settings.assign(Setting::storage_enabled, "yes", {}).ok());
  // Without a level, kill -9 may lose what was answered.
  CHECK(shown(settings, "appendonly") == "no");
  REQUIRE(settings.assign(Setting::durability, "logged", {}).ok());
  CHECK(shown(settings, "appendonly") == "yes");
  CHECK(shown(settings, "appendfsync") == "everysec");
  CHECK(set(settings, "appendonly", "yes") == "OK");
  CHECK(set(settings, "appendonly", "no") != "OK");
  REQUIRE(settings.assign(Setting::sync_every, "5s", {}).ok());
  CHECK(shown(settings, "appendfsync") == "no");
  REQUIRE(settings.assign(Setting::durability, "synced", {}).ok());
  CHECK(shown(settings, "appendfsync") == "always");
  CHECK(set(settings, "save", "60 1") != "OK");
  REQUIRE(settings.assign(Setting::node_id, "1", {}).ok());
  CHECK(shown(settings, "cluster-enabled") == "yes");
  CHECK(shown(settings, "replicaof").empty());
  CHECK(Settings{}.assign(Setting::replicaof, "No One", {}).ok());

  // The order in which they are given does not count.
  ConfigSources sources;
  CLI::App app{"node"};
  net::register_flags(app, sources);
  const Lines words{"--appendonly", "yes",    "--storage-enabled", "yes",     "--dir", "/d",
                    "--durability", "logged", "--appendfsync",     "everysec"};
  app.parse(Lines{words.rbegin(), words.rend()});
  Settings loaded;
  CHECK(net::load_config(sources, loaded).errors == Lines{});
}

TEST_CASE("promises: a refused word of redis.conf is refused in a file and as a variable",
          "[net][config][once-again-18]") {
  const Directory directory;
  Settings settings;
  const std::string file = written(directory, "f.toml", "loadmodule = \"a.so\"\n");
  const Findings of_file = net::load_config({.file = file}, settings);
  REQUIRE(of_file.errors.size() == 1);
  CHECK(of_file.errors[0].find("there are no modules") != std::string::npos);
  const Findings of_variable =
      net::load_config({.environment = {{"SEMEL_LOADMODULE", "a.so"}}}, settings);
  REQUIRE(of_variable.errors.size() == 1);
  CHECK(of_variable.errors[0] == "SEMEL_LOADMODULE: there are no modules");
  CHECK(net::load_config({.environment = {{"SEMEL_USER", "me"}}}, settings).errors == Lines{});
}

}  // namespace semel::tests
