// The arguments and files of redis-server, for a node that stands in for it where programs are
// tested (`semel redis-server`).
//
// settings.def is the table: the row of a directive says whether it has an effect here. Unlike
// load_config(), which is for operators, this goes on where redis-server would do more than a node
// does, and reports it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/settings/settings.hpp"

namespace semel::net {

/// A line `rename-command from to`; an empty `to`: the command has no name any more.
struct CommandRename {
  std::string where{};
  std::string from{};
  std::string to{};
};

/// How a node that stands in for redis-server starts, beside its settings.
struct RedisStart {
  std::string file{};       ///< the redis.conf, an absolute path; empty: none
  std::string directory{};  ///< to change to before anything else; empty: none
  std::string pidfile{};    ///< as it was given, or redis-server's own if it daemonizes
  bool daemonizes = false;
  std::vector<CommandRename> renames{};       ///< in their order, not looked at yet
  std::vector<std::string> errors{};          ///< a line each; the program does not start with any
  std::vector<std::string> warnings{};        ///< ignored directives, a line each
  std::vector<std::string> without_effect{};  ///< names that are known and do nothing
};

/// Reads `arguments`, those behind the name of the program, with all that they name, and changes
/// `settings`, which are at their defaults. Precedence: arguments, standard input (`-`), the file.
/// `read_input` is called at most once, for all of standard input. With `--strict` what would be
/// ignored is an error.
[[nodiscard]] RedisStart read_redis_start(std::span<const std::string_view> arguments,
                                          const std::function<std::string()>& read_input,
                                          Settings& settings);

}  // namespace semel::net
