#include "net/config/config_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/ascii.hpp"

namespace semel::net {
namespace {

constexpr std::string_view environment_prefix = "SEMEL_";

/// SEMEL_TCP_BACKLOG for tcp-backlog.
std::string environment_name(const SettingRow& row) {
  std::string name{environment_prefix};
  for (const char c : row.name) {
    name += c == '-' ? '_' : base::to_upper(c);
  }
  return name;
}

void read_environment(const ConfigSources& sources, std::vector<Assignment>& out,
                      Findings& findings) {
  const auto rows = all_settings();
  std::vector<std::string> names;
  for (const SettingRow& row : rows) names.push_back(environment_name(row));
  for (const auto& [name, text] : sources.environment) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at != names.end()) {
      const auto setting = static_cast<Setting>(at - names.begin());
      out.push_back({setting, text, {Origin::Kind::environment, name}});
      continue;
    }
    // Other programs of ours have variables, too: name only about names close to a setting.
    std::string small;
    for (const char c : std::string_view{name}.substr(environment_prefix.size())) {
      small += c == '_' ? '-' : base::to_lower(c);
    }
    // SEMEL_USER and SEMEL_INCLUDE may be of another program.
    const bool is_plain = small == "user" || small == "include";
    if (const std::string_view reason = reason_against(small); !reason.empty() && !is_plain) {
      findings.errors.push_back(name + ": " + std::string{reason});
      continue;
    }
    const std::string_view nearest = nearest_setting(small);
    if (nearest.empty() || small == "config" || small == "redis-conf") continue;
    findings.warnings.push_back(name + ": no setting has this name, did you mean " +
                                environment_name(row_of(find_setting(nearest)->setting)) + "?");
  }
}

void read_file(const std::string& path, std::vector<Assignment>& out, Findings& findings) {
  const Result<std::string> content = read_config_bytes(path);
  if (!content.ok()) {
    findings.errors.push_back(path + ": " + content.error().detail);
  } else {
    read_toml(*content, path, out, findings);
  }
}

void read_redis_file(const std::string& path, std::vector<Assignment>& out, Findings& findings) {
  const Result<std::string> content = read_config_bytes(path);
  if (!content.ok()) {
    findings.errors.push_back(path + ": " + content.error().detail);
  } else {
    read_redis_conf(*content, path, out, findings);
  }
}

/// The line about a value that was refused.
std::string problem(const Assignment& one, const Status& refused) {
  return value_error(one.origin.text(), one.setting, one.text, refused.error().detail);
}

/// Checks values of Redis' settings that have one value, after those that this depends on. A
/// redis.conf was written for another server: for its values a loss of speed is only a warning, and
/// so is a loss of durability if storage-enabled is set. Everything else is an error.
void check_promises(Settings& trial, std::span<const Assignment> assignments, Findings& findings) {
  const bool is_decided = trial.origin(Setting::storage_enabled).kind != Origin::Kind::builtin;
  for (const Assignment& one : assignments) {
    const SettingRow& row = row_of(one.setting);
    if (!row.has_one_value()) continue;
    const Status kept = trial.assign(one.setting, one.text, one.origin);
    if (kept) continue;
    const bool is_understood = parse_setting(row, one.text, {}).ok();
    const bool may_go_on = is_understood && one.origin.kind == Origin::Kind::redis_conf &&
                           (row.loss() == Loss::speed || (row.loss() == Loss::disk && is_decided));
    std::string line = problem(one, kept);
    if (may_go_on) {
      findings.warnings.push_back(std::move(line) + "; ignored");
    } else if (row.loss() == Loss::disk && is_understood &&
               one.origin.kind == Origin::Kind::redis_conf) {
      findings.errors.push_back(std::move(line) + "; or set storage-enabled no");
    } else {
      findings.errors.push_back(std::move(line));
    }
  }
}

/// Both limits hold, and redis-server takes them: no reason not to start.
void check_buffers(const Settings& settings, std::vector<std::string>& warnings) {
  const SettingRow& row = row_of(Setting::proto_max_bulk_len);
  if (settings.integer(Setting::proto_max_bulk_len) <=
      settings.integer(Setting::client_query_buffer_limit)) {
    return;
  }
  warnings.push_back(std::string{row.name} + " is " +
                     write_setting(row, settings.value(Setting::proto_max_bulk_len)) + " (" +
                     settings.origin(Setting::proto_max_bulk_len).text() +
                     "), which can never come: client-query-buffer-limit is " +
                     settings.text(Setting::client_query_buffer_limit));
}

}  // namespace

Result<std::string> read_config_bytes(const std::string& path) {
  const auto failed = [](int error) {
    return Error{ErrorCode::bad_option, std::error_code{error, std::generic_category()}.message()};
  };
  errno = 0;
  std::ifstream file{path, std::ios::binary};
  if (!file) return failed(errno);
  std::string bytes(config_bytes_max + 1, '\0');
  errno = 0;
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad() || errno == EISDIR) return failed(errno);
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  if (bytes.size() > config_bytes_max) {
    return Error{ErrorCode::bad_option,
                 "larger than " + std::to_string(config_bytes_max) + " bytes"};
  }
  return bytes;
}

std::string value_error(std::string_view where, Setting setting, std::string_view text,
                        std::string_view why) {
  const SettingRow& row = row_of(setting);
  return std::string{where} + ": " + std::string{row.name} + " = " + shown_value(row, text) + ": " +
         std::string{why};
}

void add_environment(ConfigSources& sources, const char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view line{*environment};
    const std::size_t equals = line.find('=');
    if (!line.starts_with(environment_prefix) || equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals);
    const std::string_view text = line.substr(equals + 1);
    if (name == "SEMEL_CONFIG" && sources.file.empty()) sources.file = text;
    if (name == "SEMEL_REDIS_CONF" && sources.redis_conf.empty()) sources.redis_conf = text;
    sources.environment.emplace_back(name, text);
  }
}

Findings load_config(const ConfigSources& sources, Settings& settings) {
  Findings findings;
  std::vector<Assignment> assignments;  // later ones win
  if (!sources.redis_conf.empty()) read_redis_file(sources.redis_conf, assignments, findings);
  if (!sources.file.empty()) read_file(sources.file, assignments, findings);
  read_environment(sources, assignments, findings);
  assignments.insert(assignments.end(), sources.flags.begin(), sources.flags.end());
  findings.errors.insert(findings.errors.end(), sources.errors.begin(), sources.errors.end());

  // Overridden values are checked, too: they would fail when the override is removed.
  Settings trial;
  for (const Assignment& one : assignments) {
    if (row_of(one.setting).has_one_value()) continue;
    const Status assigned = trial.assign(one.setting, one.text, one.origin);
    if (!assigned) findings.errors.push_back(problem(one, assigned));
  }
  check_promises(trial, assignments, findings);
  // Contradictions are checked only if each value is valid by itself.
  if (findings.errors.empty()) findings.errors = check_together(trial);
  if (!findings.errors.empty()) return findings;
  check_buffers(trial, findings.warnings);
  for (Assignment& one : assignments) {
    if (row_of(one.setting).has_one_value()) continue;
    static_cast<void>(settings.assign(one.setting, one.text, std::move(one.origin)));  // see trial
  }
  return findings;
}

}  // namespace semel::net
