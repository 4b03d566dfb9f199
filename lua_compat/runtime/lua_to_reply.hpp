// What a script returns, as a reply.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/run.hpp"

namespace semel::lua {

/// Takes the value on top of the stack off it and appends it to the run's reply, in the client's
/// dialect. Keeps to the bounds of the run's replies: beyond them nothing is appended, and the
/// run's `failure` says why. May raise errors.
void write_value(lua_State* state, Run& run);

}  // namespace semel::lua
