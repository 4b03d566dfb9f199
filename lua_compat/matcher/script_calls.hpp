// Finds the commands that a script names, so that one which the node does not have is refused
// before the script runs.
#pragma once

#include <string_view>
#include <vector>

#include "lua_compat/matcher/script_commands.hpp"
#include "lua_compat/matcher/script_tree.hpp"

namespace semel::lua {

/// The calls of redis.call and redis.pcall in the order of the text. They may go through a local
/// that is declared as one of these functions, or as `redis`, and never assigned to. Any other use
/// of these functions counts as a command without a name.
[[nodiscard]] std::vector<SentCommand> sent_commands(const Tree& tree);

/// The same for a text, with a line end in place of its shebang line. Empty also if the text cannot
/// be parsed or is too long.
[[nodiscard]] std::vector<SentCommand> sent_commands(std::string_view text);

}  // namespace semel::lua
