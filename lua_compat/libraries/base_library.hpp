// Our own versions of the global functions that catch errors, compile sources or collect garbage.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/run.hpp"

namespace semel::lua {

/// Compiles run.source under the name run.source_name and pushes the function or the error message.
/// Returns the status of lua_load.
int compile_source(lua_State* state, Run& run);

int base_assert(lua_State* state);
int base_pcall(lua_State* state);
int base_xpcall(lua_State* state);
int base_load(lua_State* state);
int base_loadstring(lua_State* state);
int base_collectgarbage(lua_State* state);
int coroutine_create(lua_State* state);
int coroutine_resume(lua_State* state);
int coroutine_wrap(lua_State* state);
int coroutine_yield(lua_State* state);

}  // namespace semel::lua
