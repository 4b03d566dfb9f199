// table.sort, and what it shares with the rest of the library.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// As # of the table at `index`; raises an error for anything else.
[[nodiscard]] inline int length_of(lua_State* state, int index) {
  luaL_checktype(state, index, LUA_TTABLE);
  return static_cast<int>(lua_objlen(state, index));
}

/// Puts the elements into the same order as 5.1, also those that are equal, and asks the function
/// the same questions.
int table_sort(lua_State* state);

}  // namespace semel::lua
