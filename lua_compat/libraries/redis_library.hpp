// The functions of `redis`, which is also named `server`.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/run.hpp"

namespace semel::lua {

/// Pushes the table for scripts, or for library functions that run.
void open_redis_library(lua_State* state, Environment environment);
/// Pushes the table for a library that is being loaded: register_function and log.
void open_loading_library(lua_State* state);

/// redis.register_function.
int register_function(lua_State* state);

}  // namespace semel::lua
