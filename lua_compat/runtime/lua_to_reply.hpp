// Converts the value that a script returns into a reply.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/run.hpp"

namespace semel::lua {

/// Pops the value on top of the stack and appends it to the reply of the run, in the dialect of the
/// client. If a limit of replies is exceeded, nothing is appended, and `failure` of the run says
/// why. May raise errors.
void write_value(lua_State* state, Run& run);

}  // namespace semel::lua
