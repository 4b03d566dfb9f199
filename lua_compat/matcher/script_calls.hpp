// Which commands a script's text names, so that one the node does not have is found before anything
// of the script has run.
#pragma once

#include <string_view>
#include <vector>

#include "lua_compat/matcher/script_commands.hpp"
#include "lua_compat/matcher/script_tree.hpp"

namespace semel::lua {

/// In the order of the text. Calls by redis.call and redis.pcall, also by way of a local that is
/// declared as one of them, or as `redis`, and never assigned to; a sender of commands that is used
/// in another way is a command without a name.
[[nodiscard]] std::vector<SentCommand> sent_commands(const Tree& tree);

/// The same of a text that begins with an end of line in place of its shebang. Empty also if the
/// text cannot be read, or is longer than is looked at.
[[nodiscard]] std::vector<SentCommand> sent_commands(std::string_view text);

}  // namespace semel::lua
