// The global tables of one interpreter: everything that a script can reach.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/run.hpp"

namespace semel::lua {

/// Builds both sets of globals in a fresh state. May raise out-of-memory errors.
void build_globals(lua_State* state, Run& run);
/// Pops KEYS and ARGV, the two tables on top, and sets them as globals of scripts.
void set_script_arguments(lua_State* state, Run& run);
/// Selects the globals of functions that are compiled, and of coroutines that are created, from now
/// on.
void select_globals(lua_State* state, const Run& run, Environment environment);
/// Whether functions see the globals of a library that is being loaded, or those of a running one.
void show_library_globals(lua_State* state, const Run& run, bool is_loading);

}  // namespace semel::lua
