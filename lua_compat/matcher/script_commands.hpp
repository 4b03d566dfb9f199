// Commands as a script's text shows them.
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
/// The positions of a command's keys among its words, by its name in small letters. None: it has
/// none, is not known, or its keys are found in another way.
using KeysOf = std::optional<KeyPositions> (*)(std::string_view command);

/// One place in a text where a command is sent.
struct SentCommand {
  std::string name{};        ///< in small letters
  std::string subcommand{};  ///< its second word, if that is a constant as well
  std::uint32_t line = 1;    ///< as errors tell it
  /// Its name is a constant. If not, nothing is said of it.
  bool is_named = false;
  bool has_subcommand = false;
  /// An error of it is caught: by redis.pcall, or by pcall or xpcall around it. Scripts find out
  /// in this way what a server has.
  bool is_caught = false;
};

}  // namespace semel::lua
