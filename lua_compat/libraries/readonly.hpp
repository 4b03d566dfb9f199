// Tables that scripts can read but not change. LuaJIT has none, so a script gets a proxy: an empty
// table whose metatable reads from the real one.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// Replaces the table on top of the stack by its proxy. `shown` is the stack index of the value
/// that getmetatable() returns for it; 0: nil.
void protect_table(lua_State* state, int shown = 0);
/// Whether the value at `index` is a proxy. Library functions that write into a table without
/// regard to its metatable must refuse it.
[[nodiscard]] bool is_readonly(lua_State* state, int index);
/// Raises "Attempt to modify a readonly table" if the value at `index` is a proxy.
void check_writable(lua_State* state, int index);
/// If the value at `index` is a proxy, pushes the real table and returns true.
bool push_real_table(lua_State* state, int index);

/// Replaces the C function `name` of the table on top by one that refuses a proxy as its first
/// argument.
void guard_function(lua_State* state, const char* name);

// Global functions that handle proxies.
int readonly_pairs(lua_State* state);  ///< upvalue 1: next
int readonly_rawget(lua_State* state);
int readonly_rawset(lua_State* state);
int readonly_getmetatable(lua_State* state);
int readonly_setmetatable(lua_State* state);

}  // namespace semel::lua
