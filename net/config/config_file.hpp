// From what a node is started with to its Settings: flag before environment before file before
// redis.conf before default. Everything that is wrong is told at once, and then nothing is taken.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/config/namespaces.hpp"
#include "net/settings/settings.hpp"

namespace semel::net {

/// A value on its way into Settings.
struct Assignment {
  Setting setting{};
  std::string text{};
  Origin origin{};
};

/// What there is to say to the person who started the node, one line each; and what the file says
/// that is no setting.
struct Findings {
  std::vector<std::string> errors{};
  std::vector<std::string> warnings{};
  std::vector<DeclaredNamespace> namespaces{};
};

/// A configuration file may have so many bytes.
inline constexpr std::size_t config_bytes_max = std::size_t{1} << 20;

struct ConfigSources {
  std::string file{};                                              ///< TOML; empty: none
  std::string redis_conf{};                                        ///< a redis.conf; empty: none
  std::vector<std::pair<std::string, std::string>> environment{};  ///< names with SEMEL_
  std::vector<Assignment> flags{};
};

/// Those variables of `environment` (as in environ, ended by a null) that begin with SEMEL_, and
/// the files that SEMEL_CONFIG and SEMEL_REDIS_CONF name where no flag did.
void add_environment(ConfigSources& sources, const char* const* environment);

/// Reads everything and changes `settings`; with errors, `settings` is as before.
[[nodiscard]] Findings load_config(const ConfigSources& sources, Settings& settings);

/// What does not go together. Part of load_config().
[[nodiscard]] std::vector<std::string> check_config(const Settings& settings);

/// "semel.toml:3:8: port = '99999': argument must be between -1 and 65535 inclusive"; a secret's
/// value is not told, and of a long one only the beginning.
[[nodiscard]] std::string value_error(std::string_view where, Setting setting,
                                      std::string_view text, std::string_view why);

// The two kinds of files. `path` is for messages and origins.
void read_toml(std::string_view content, const std::string& path, std::vector<Assignment>& out,
               Findings& findings);
/// `keeps_data`: lines that ask for data to be there after a restart.
void read_redis_conf(std::string_view content, const std::string& path,
                     std::vector<Assignment>& out, std::vector<std::string>& keeps_data,
                     Findings& findings);

/// The whole of a file of at most config_bytes_max; or why not, in a few words.
struct FileContent {
  std::string bytes{};
  std::string error{};
};
[[nodiscard]] FileContent read_config_bytes(const std::string& path);

}  // namespace semel::net
