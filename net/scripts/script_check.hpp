// Reasons in its text to refuse a script or library.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lua_compat/matcher/known_scripts.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Under the setting `scripts` a text that is not in the catalogue.
inline constexpr std::string_view not_known_error =
    "ERR this script is none of those that the node knows by their text, and others do not run "
    "here, by the setting 'scripts' ('known', or 'auto' on an address that others reach): 'any' "
    "lets all scripts run";

/// Refuses a text that may write and, where no error is caught, sends a command that this node does
/// not have or lets no script run: it would stop there with a part of its work done. The detail of
/// the error is the whole reply; it names the command and its line. `what`: "script", "library".
[[nodiscard]] Status check_commands(std::string_view what, std::span<const lua::SentCommand> sent);

}  // namespace semel::net
