// Tables that scripts can read and not change. LuaJIT knows none, so what a script gets hold of is
// an empty table in front of the real one.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// Takes the table on top of the stack and leaves what stands in front of it. `shown`: what
/// getmetatable() tells of it, an index of the stack; 0: nil.
void protect_table(lua_State* state, int shown = 0);
/// Whether the value at `index` is such a front. The functions of Lua's libraries that write into a
/// table without asking its metatable must refuse it.
[[nodiscard]] bool is_readonly(lua_State* state, int index);
/// Raises "Attempt to modify a readonly table" if it is one.
void check_writable(lua_State* state, int index);
/// If the value at `index` is a front, pushes the real table and returns true.
bool push_real_table(lua_State* state, int index);

/// Replaces the C function `name` of the table on top by one that refuses a front as its first
/// argument.
void guard_function(lua_State* state, const char* name);

// Of the global functions, those that fronts concern.
int readonly_pairs(lua_State* state);  ///< upvalue 1: next
int readonly_rawget(lua_State* state);
int readonly_rawset(lua_State* state);
int readonly_getmetatable(lua_State* state);
int readonly_setmetatable(lua_State* state);

}  // namespace semel::lua
