// The library `table` and unpack; each element costs a step.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lua_compat/libraries/libraries.hpp"
#include "lua_compat/libraries/table_sort.hpp"
#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

int table_getn(lua_State* state) {
  lua_pushinteger(state, length_of(state, 1));
  return 1;
}

int table_setn(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  return luaL_error(state, "'setn' is obsolete");
}

int table_maxn(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  double largest = 0;
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    charge(state, 1);
    lua_pop(state, 1);
    if (lua_type(state, -1) == LUA_TNUMBER) largest = std::max(largest, lua_tonumber(state, -1));
  }
  lua_pushnumber(state, largest);
  return 1;
}

int table_insert(lua_State* state) {
  const std::int64_t end = std::int64_t{length_of(state, 1)} + 1;
  std::int64_t place = end;
  switch (lua_gettop(state)) {
    case 2:
      break;
    case 3: {
      place = int_argument(state, 2);
      for (std::int64_t i = end; i > place; --i) {
        charge(state, 2);
        lua_rawgeti(state, 1, static_cast<int>(i - 1));
        lua_rawseti(state, 1, static_cast<int>(i));
      }
      break;
    }
    default:
      return luaL_error(state, "wrong number of arguments to 'insert'");
  }
  lua_rawseti(state, 1, static_cast<int>(place));
  return 0;
}

int table_remove(lua_State* state) {
  const int end = length_of(state, 1);
  const int place = int_argument_or(state, 2, end);
  if (place < 1 || place > end) return 0;
  lua_rawgeti(state, 1, place);
  for (int i = place; i < end; ++i) {
    charge(state, 2);
    lua_rawgeti(state, 1, i + 1);
    lua_rawseti(state, 1, i);
  }
  lua_pushnil(state);
  lua_rawseti(state, 1, end);
  return 1;
}

void add_element(lua_State* state, int index, Builder& result) {
  charge(state, 2);
  lua_rawgeti(state, 1, index);
  if (lua_isstring(state, -1) == 0) {
    luaL_error(state, "invalid value (%s) at index %d in table for 'concat'",
               luaL_typename(state, -1), index);
  }
  result.add(text_at(state, lua_gettop(state)));
  lua_pop(state, 1);
}

int table_concat(lua_State* state) {
  const bool has_separator = !lua_isnoneornil(state, 2);
  const std::string_view separator = has_separator ? text_argument(state, 2) : std::string_view{""};
  luaL_checktype(state, 1, LUA_TTABLE);
  const int first = int_argument_or(state, 3, 1);
  const int last = lua_isnoneornil(state, 4) ? length_of(state, 1) : int_argument(state, 4);
  Builder result{state};
  for (std::int64_t i = first; i <= last; ++i) {
    add_element(state, static_cast<int>(i), result);
    if (i < last) result.add(separator);
  }
  result.push();
  return 1;
}

int table_foreach(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  luaL_checktype(state, 2, LUA_TFUNCTION);
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    charge(state, 1);
    lua_pushvalue(state, 2);
    lua_pushvalue(state, -3);
    lua_pushvalue(state, -3);
    call(state, 2, 1);
    if (!lua_isnil(state, -1)) return 1;
    lua_pop(state, 2);
  }
  return 0;
}

int table_foreachi(lua_State* state) {
  const int last = length_of(state, 1);
  luaL_checktype(state, 2, LUA_TFUNCTION);
  for (int i = 1; i <= last; ++i) {
    charge(state, 1);
    lua_pushvalue(state, 2);
    lua_pushinteger(state, i);
    lua_rawgeti(state, 1, i);
    call(state, 2, 1);
    if (!lua_isnil(state, -1)) return 1;
    lua_pop(state, 1);
  }
  return 0;
}

int unpack(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  const std::int64_t first = int_argument_or(state, 2, 1);
  const std::int64_t last =
      lua_isnoneornil(state, 3) ? length_of(state, 1) : int_argument(state, 3);
  if (first > last) return 0;
  const std::int64_t count = last - first + 1;
  if (count > INT32_MAX || lua_checkstack(state, static_cast<int>(count)) == 0) {
    return luaL_error(state, "too many results to unpack");
  }
  charge(state, static_cast<std::uint64_t>(count));
  for (std::int64_t i = first; i <= last; ++i) lua_rawgeti(state, 1, static_cast<int>(i));
  return static_cast<int>(count);
}

}  // namespace

void bound_table_library(lua_State* state) {
  lua_getglobal(state, LUA_TABLIBNAME);
  set_function(state, "concat", table_concat);
  set_function(state, "foreach", table_foreach);
  set_function(state, "foreachi", table_foreachi);
  set_function(state, "getn", table_getn);
  set_function(state, "insert", table_insert);
  set_function(state, "maxn", table_maxn);
  set_function(state, "remove", table_remove);
  set_function(state, "setn", table_setn);
  set_function(state, "sort", table_sort);
  // Remove what LuaJIT adds to 5.1.
  for (const char* const name : {"move", "pack", "unpack", "new", "clear"}) {
    lua_pushnil(state);
    lua_setfield(state, -2, name);
  }
  lua_pop(state, 1);
  lua_pushcfunction(state, unpack);
  lua_setglobal(state, "unpack");
}

}  // namespace semel::lua
