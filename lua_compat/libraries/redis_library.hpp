// The functions of `redis`, which `server` names too.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/run.hpp"

namespace semel::lua {

/// Pushes the table of what scripts, or functions when they run, may do.
void open_redis_library(lua_State* state, World world);
/// Pushes that of a library while it is loaded: register_function and log.
void open_loading_library(lua_State* state);

/// redis.register_function.
int register_function(lua_State* state);

}  // namespace semel::lua
