// Converts replies of commands into Lua values.
#pragma once

#include <string_view>

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// Pushes the Lua value of the one reply in `bytes`. Returns whether it is an error; bytes that are
/// not exactly one reply become an error, too.
bool push_reply(lua_State* state, std::string_view bytes);

}  // namespace semel::lua
