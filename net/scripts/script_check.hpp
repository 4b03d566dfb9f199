// What the text of a script or library says against taking it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lua_compat/matcher/known_scripts.hpp"

namespace semel::net {

/// Under the setting `scripts` a text that is not in the catalogue.
inline constexpr std::string_view not_known_error =
    "ERR this script is none of those that the node knows by their text, and others do not run "
    "here, by the setting 'scripts' ('known', or 'auto' on an address that others reach): 'any' "
    "lets all scripts run";

/// Of a text that may write and, where no error is caught, sends a command that this node does not
/// have or lets no script run: the error, which names the command and its line. Such a text would
/// stop there with a part of its work done. `what`: "script", "library".
[[nodiscard]] std::optional<std::string> missing_command(std::string_view what,
                                                         std::span<const lua::SentCommand> sent);

}  // namespace semel::net
