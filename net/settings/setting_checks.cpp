// What settings say of each other. Of the start and of CONFIG SET, so that what one takes the other
// takes as well: CONFIG REWRITE never writes a file with which the node does not start.
#include <string>
#include <vector>

#include "net/settings/memory_plan.hpp"
#include "net/settings/settings.hpp"

namespace semel::net {
namespace {

/// "port is 6379 (semel.toml:3)"
std::string shown(const Settings& settings, Setting setting) {
  return std::string{row_of(setting).name} + " is " +
         write_setting(row_of(setting), settings.value(setting)) + " (" +
         settings.origin(setting).text() + ")";
}

void check_listening(const Settings& settings, std::vector<std::string>& errors) {
  const std::int64_t port = settings.integer(Setting::port);
  const std::int64_t tls_port = settings.integer(Setting::tls_port);
  const std::int64_t admin_port = settings.integer(Setting::admin_port);
  const bool listens = port >= 0 || tls_port >= 0;
  if (!listens && settings.text(Setting::unix_socket).empty()) {
    errors.push_back("nothing to listen on: " + shown(settings, Setting::port) +
                     ", tls-port is -1, and there is no unix-socket");
  }
  if (listens && settings.list(Setting::bind).empty()) {
    errors.push_back(shown(settings, Setting::port) + ", but bind names no address");
  }
  if (admin_port >= 0 && settings.list(Setting::admin_bind).empty()) {
    errors.push_back(shown(settings, Setting::admin_port) + ", but admin-bind names no address");
  }
  if (port > 0 && port == tls_port) {
    errors.push_back(shown(settings, Setting::tls_port) + ", and so is port");
  }
  if (admin_port > 0 && (admin_port == port || admin_port == tls_port)) {
    errors.push_back(shown(settings, Setting::admin_port) + ", and so is " +
                     (admin_port == port ? "port" : "tls-port"));
  }
}

void check_tls(const Settings& settings, std::vector<std::string>& errors) {
  if (settings.integer(Setting::tls_port) < 0) return;
  for (const Setting needed : {Setting::tls_cert_file, Setting::tls_key_file}) {
    if (!settings.text(needed).empty()) continue;
    errors.push_back(shown(settings, Setting::tls_port) + ", but there is no " +
                     std::string{row_of(needed).name});
  }
  if (settings.text(Setting::tls_auth_clients) != "no" &&
      settings.text(Setting::tls_ca_cert_file).empty() &&
      settings.text(Setting::tls_ca_cert_dir).empty()) {
    errors.push_back(shown(settings, Setting::tls_auth_clients) +
                     ", but there is neither tls-ca-cert-file nor tls-ca-cert-dir");
  }
}

void check_users(const Settings& settings, std::vector<std::string>& errors) {
  if (settings.text(Setting::requirepass).empty() ||
      settings.text(Setting::requirepass_file).empty()) {
    return;
  }
  errors.push_back(shown(settings, Setting::requirepass_file) + ", and so is requirepass set (" +
                   settings.origin(Setting::requirepass).text() + ")");
}

void check_storage(const Settings& settings, std::vector<std::string>& errors) {
  const bool is_enabled = settings.boolean(Setting::storage_enabled);
  if (is_enabled && settings.text(Setting::dir).empty()) {
    errors.push_back(shown(settings, Setting::storage_enabled) + ", but there is no dir");
  }
  if (!is_enabled && settings.integer(Setting::durability) != 0) {
    errors.push_back(shown(settings, Setting::durability) + ", but storage-enabled is no");
  }
  // Every redis.conf has a dir. In our file it means that the operator expects persistence.
  const bool is_undecided =
      settings.origin(Setting::storage_enabled).kind == Origin::Kind::builtin &&
      settings.integer(Setting::node_id) == 0;
  const Origin::Kind from = settings.origin(Setting::dir).kind;
  if (is_undecided && !settings.text(Setting::dir).empty() && from != Origin::Kind::redis_conf) {
    errors.push_back(shown(settings, Setting::dir) +
                     ", but nothing is kept there unless storage-enabled is yes; say no to run in "
                     "memory");
  }
}

/// Three nodes that serve alone because of one word that is missing would grant one key three
/// times.
void check_group(const Settings& settings, std::vector<std::string>& errors) {
  if (settings.integer(Setting::node_id) != 0) {
    if (settings.text(Setting::replicaof).empty()) return;
    errors.push_back(shown(settings, Setting::replicaof) +
                     ", but a node of a group follows the group's log: remove it, or node-id");
    return;
  }
  for (std::size_t i = 0; i < setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    const SettingRow& row = row_of(setting);
    if (row.section != "cluster" || settings.text(setting) == row.default_text) continue;
    errors.push_back(shown(settings, setting) +
                     ", but there is no node-id: the node would belong to no group");
  }
}

void check_backups(const Settings& settings, std::vector<std::string>& errors) {
  if (settings.text(Setting::backup_dir).empty() || settings.boolean(Setting::storage_enabled)) {
    return;
  }
  errors.push_back(shown(settings, Setting::backup_dir) +
                   (settings.integer(Setting::node_id) != 0
                        ? ", but a node of a group has no storage, and makes no backups"
                        : ", but there is no storage to back up: set storage-enabled, dir and "
                          "durability"));
}

void check_memory(const Settings& settings, std::vector<std::string>& errors) {
  const bool evicts = memory_policy_of(settings) != MemoryPolicy::noeviction;
  const bool has_caches = !settings.text(Setting::cache_databases).empty();
  if (evicts && !has_caches) {
    errors.push_back(shown(settings, Setting::maxmemory_policy) +
                     ", but cache-databases names no database: nothing would be evicted; set it "
                     "to the databases whose keys may go, or to all; or set noeviction");
  }
  if (settings.integer(Setting::node_id) == 0) return;
  if (evicts || has_caches) {
    errors.push_back(shown(settings, Setting::cache_databases) +
                     ", but a node of a group evicts nothing: every node has to hold the same "
                     "records; leave it empty, and maxmemory-policy at noeviction");
  } else if (memory_plan_of(settings).counts) {
    errors.push_back(shown(settings, Setting::maxmemory) +
                     ", but a node of a group needs 4 MiB or more");
  }
}

}  // namespace

std::vector<std::string> check_together(const Settings& settings) {
  std::vector<std::string> errors;
  check_listening(settings, errors);
  check_tls(settings, errors);
  check_users(settings, errors);
  check_storage(settings, errors);
  check_group(settings, errors);
  check_memory(settings, errors);
  check_backups(settings, errors);
  return errors;
}

std::string true_text(const Settings& settings, Setting setting) {
  constexpr std::int64_t logged = 1;
  constexpr std::int64_t synced = 2;
  constexpr std::int64_t second_ms = 1'000;
  const bool in_group = settings.integer(Setting::node_id) != 0;
  const std::int64_t durability = settings.integer(Setting::durability);
  const bool stores = settings.integer(Setting::storage_enabled) != 0 && durability >= logged;
  if (setting == Setting::cluster_enabled && in_group) return "yes";
  if (setting == Setting::appendonly && (in_group || stores)) return "yes";
  if (setting == Setting::appendfsync && (in_group || stores)) {
    if (in_group || durability == synced) return "always";
    return settings.integer(Setting::sync_every) <= second_ms ? "everysec" : "no";
  }
  return std::string{row_of(setting).default_text};
}

namespace {

/// What redis-server does to its process, or at its end: no answer depends on it.
bool is_of_process(Setting setting) {
  return setting == Setting::oom_score_adj || setting == Setting::oom_score_adj_values ||
         setting == Setting::shutdown_on_sigint || setting == Setting::shutdown_on_sigterm;
}

}  // namespace

bool shows_any_value(const Settings& settings, Setting setting) {
  const SettingRow& row = row_of(setting);
  if (!row.has_one_value()) return true;
  const bool is_harmless =
      row.loss() == Loss::speed || row.loss() == Loss::disk || is_of_process(setting);
  return is_harmless && settings.boolean(Setting::stand_in);
}

Status check_promise(const Settings& settings, Setting setting, const SettingValue& value) {
  const SettingRow& row = row_of(setting);
  if (!row.has_one_value()) return Done{};
  const std::string truth = true_text(settings, setting);
  if (show_setting(row, value) == truth) return Done{};
  return Error{ErrorCode::bad_option,
               "cannot be kept: " + std::string{row.doc} + "; only '" + truth + "' is true here"};
}

}  // namespace semel::net
