// What a script can reach: the global tables of one interpreter.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/run.hpp"

namespace semel::lua {

/// Fills a fresh state. May raise errors, of memory.
void build_world(lua_State* state, Run& run);
/// Takes KEYS and ARGV, the two tables on top, off the stack and makes them global for scripts.
void set_script_arguments(lua_State* state, Run& run);
/// The globals of what is compiled, and of coroutines that are made, from now on.
void enter_world(lua_State* state, const Run& run, World world);
/// Whether functions see what a library may use while it is loaded, or what they may use.
void show_library_globals(lua_State* state, const Run& run, bool is_loading);

}  // namespace semel::lua
