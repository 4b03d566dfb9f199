// What MONITOR shows of a command.
#pragma once

#include <string_view>

#include "net/commands/command.hpp"

namespace semel::net {

/// As the source of a call: it is one that runs a script, which is shown before it runs.
inline constexpr std::string_view script_begins = "script";

/// Shows `call`, which has been carried out, to all monitors, without passwords. `source`: its
/// sender, if it is not the client itself but, say, "lua".
void show_to_monitors(Call& call, std::string_view source = {});

}  // namespace semel::net
