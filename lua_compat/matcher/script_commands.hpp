// Commands as they appear in the text of a script.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace semel::lua {

struct KeyPositions {
  int first = 0;
  int last = 0;  ///< negative: from the end
  int step = 1;
};
/// The positions of the keys among the arguments of a command, by its name in lower case. None: the
/// command has no keys, is unknown, or its keys are found in another way.
using KeysOf = std::optional<KeyPositions> (*)(std::string_view command);

/// One call of a command in a text.
struct SentCommand {
  std::string name{};        ///< in lower case
  std::string subcommand{};  ///< its second argument, if that is a constant, too
  std::uint32_t line = 1;    ///< as errors name it
  /// Its name is a constant. If not, nothing is known about it.
  bool is_named = false;
  bool has_subcommand = false;
  /// Its errors are caught by redis.pcall, or by pcall or xpcall around it. Scripts probe in this
  /// way what a server supports.
  bool is_caught = false;
};

}  // namespace semel::lua
