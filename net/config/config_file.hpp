// Loads the Settings of a node. The precedence is: flag, environment, file, redis.conf, default.
// All errors are reported together; with an error, no setting changes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/config/namespaces.hpp"
#include "net/settings/settings.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// A value for Settings.
struct Assignment {
  Setting setting{};
  std::string text{};
  Origin origin{};
};

/// Messages for the operator, one line each, and the parts of the file that are not settings.
struct Findings {
  std::vector<std::string> errors{};
  std::vector<std::string> warnings{};
  std::vector<DeclaredNamespace> namespaces{};
};

/// The largest size of a configuration file.
inline constexpr std::size_t config_bytes_max = std::size_t{1} << 20;

struct ConfigSources {
  std::string file{};                                              ///< TOML; empty: none
  std::string redis_conf{};                                        ///< a redis.conf; empty: none
  std::vector<std::pair<std::string, std::string>> environment{};  ///< names begin with SEMEL_
  std::vector<Assignment> flags{};
  std::vector<std::string> errors{};  ///< of flags that are refused by their name
};

/// Adds the variables of `environment` (as in environ, ended by a null) that begin with SEMEL_, and
/// the files that SEMEL_CONFIG and SEMEL_REDIS_CONF name unless a flag did.
void add_environment(ConfigSources& sources, const char* const* environment);

/// Reads all sources and changes `settings`; with errors, `settings` stays unchanged.
[[nodiscard]] Findings load_config(const ConfigSources& sources, Settings& settings);

/// "semel.toml:3:8: port = '99999': argument must be between -1 and 65535 inclusive"; the
/// value of a secret is hidden, and a long value is cut.
[[nodiscard]] std::string value_error(std::string_view where, Setting setting,
                                      std::string_view text, std::string_view why);

// Read the two kinds of files. `path` is used in messages and origins.
void read_toml(std::string_view content, const std::string& path, std::vector<Assignment>& out,
               Findings& findings);
void read_redis_conf(std::string_view content, const std::string& path,
                     std::vector<Assignment>& out, Findings& findings);

/// The words of one line of a redis.conf, without their quotes, which are those of an inline
/// command. Empty: a comment or a blank line. None: quotes that do not close.
[[nodiscard]] std::optional<std::vector<std::string>> words_of_redis_line(std::string_view line);

/// The content of a file of at most config_bytes_max bytes. The detail of the error is a short
/// reason without the path.
[[nodiscard]] Result<std::string> read_config_bytes(const std::string& path);

}  // namespace semel::net
