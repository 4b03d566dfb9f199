// Replies of commands as values of Lua.
#pragma once

#include <string_view>

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// Pushes what the one reply in `bytes` is to a script, and returns whether it is an error. Bytes
/// that are no whole reply become an error too.
bool push_reply(lua_State* state, std::string_view bytes);

}  // namespace semel::lua
