// table.sort, and a helper for the rest of the library.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// The length (#) of the table at `index`; raises an error if it is not a table.
[[nodiscard]] inline int length_of(lua_State* state, int index) {
  luaL_checktype(state, index, LUA_TTABLE);
  return static_cast<int>(lua_objlen(state, index));
}

/// Sorts into the same order as 5.1, equal elements included, and calls the comparison function
/// with the same arguments.
int table_sort(lua_State* state);

}  // namespace semel::lua
