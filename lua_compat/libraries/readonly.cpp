#include "lua_compat/libraries/readonly.hpp"

#include "base/assert.hpp"

namespace semel::lua {
namespace {

// Keys in the metatable of a proxy. They are addresses, which no script can create.
constexpr char front_mark = 'f';
constexpr char shown_mark = 's';

void push_mark(lua_State* state, const char* mark) {
  lua_pushlightuserdata(state, const_cast<char*>(mark));
}

/// Pushes the field `mark` of a proxy's metatable. False: it is not a proxy, and nothing is pushed.
bool push_marked(lua_State* state, int index, const char* mark) {
  if (lua_type(state, index) != LUA_TTABLE || lua_getmetatable(state, index) == 0) return false;
  push_mark(state, &front_mark);
  lua_rawget(state, -2);
  const bool is_front = lua_isnil(state, -1) == 0;
  if (is_front && mark != &front_mark) {
    lua_pop(state, 1);
    push_mark(state, mark);
    lua_rawget(state, -2);
  }
  if (is_front)
    lua_remove(state, -2);
  else
    lua_pop(state, 2);
  return is_front;
}

int refuse(lua_State* state) {
  return luaL_error(state, "Attempt to modify a readonly table");
}

/// Raises the error without a position, as C functions do.
int refuse_function(lua_State* state) {
  lua_pushliteral(state, "Attempt to modify a readonly table");
  return lua_error(state);
}

int next_of_real(lua_State* state) {
  lua_settop(state, 2);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 2);
  if (lua_next(state, 2) != 0) return 2;
  lua_pushnil(state);
  return 1;
}

/// Calls the C function in upvalue 1, which has no upvalues itself.
int guarded(lua_State* state) {
  check_writable(state, 1);
  return lua_tocfunction(state, lua_upvalueindex(1))(state);
}

}  // namespace

void protect_table(lua_State* state, int shown) {
  SEMEL_ASSERT(lua_istable(state, -1));
  if (shown < 0) shown += lua_gettop(state) + 1;
  lua_createtable(state, 0, 0);
  lua_createtable(state, 0, 4);
  lua_pushvalue(state, -3);
  lua_setfield(state, -2, "__index");
  lua_pushcfunction(state, refuse);
  lua_setfield(state, -2, "__newindex");
  push_mark(state, &front_mark);
  lua_pushvalue(state, -4);
  lua_rawset(state, -3);
  if (shown != 0) {
    push_mark(state, &shown_mark);
    lua_pushvalue(state, shown);
    lua_rawset(state, -3);
  }
  lua_setmetatable(state, -2);
  lua_remove(state, -2);
}

bool is_readonly(lua_State* state, int index) {
  if (!push_marked(state, index, &front_mark)) return false;
  lua_pop(state, 1);
  return true;
}

void check_writable(lua_State* state, int index) {
  if (is_readonly(state, index)) refuse_function(state);
}

bool push_real_table(lua_State* state, int index) {
  return push_marked(state, index, &front_mark);
}

void guard_function(lua_State* state, const char* name) {
  lua_getfield(state, -1, name);
  lua_pushcclosure(state, guarded, 1);
  lua_setfield(state, -2, name);
}

int readonly_pairs(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  if (push_real_table(state, 1)) {
    lua_pushcclosure(state, next_of_real, 1);
  } else {
    lua_pushvalue(state, lua_upvalueindex(1));
  }
  lua_pushvalue(state, 1);
  lua_pushnil(state);
  return 3;
}

int readonly_rawget(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  luaL_checkany(state, 2);
  lua_settop(state, 2);
  if (push_real_table(state, 1)) lua_replace(state, 1);
  lua_rawget(state, 1);
  return 1;
}

int readonly_rawset(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  luaL_checkany(state, 2);
  luaL_checkany(state, 3);
  lua_settop(state, 3);
  check_writable(state, 1);
  lua_rawset(state, 1);
  return 1;
}

int readonly_getmetatable(lua_State* state) {
  luaL_checkany(state, 1);
  if (push_marked(state, 1, &shown_mark)) return 1;
  if (lua_getmetatable(state, 1) == 0) {
    lua_pushnil(state);
    return 1;
  }
  luaL_getmetafield(state, 1, "__metatable");
  return 1;
}

int readonly_setmetatable(lua_State* state) {
  const int type = lua_type(state, 2);
  luaL_checktype(state, 1, LUA_TTABLE);
  luaL_argcheck(state, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
  if (luaL_getmetafield(state, 1, "__metatable") != 0)
    return luaL_error(state, "cannot change a protected metatable");
  check_writable(state, 1);
  lua_settop(state, 2);
  lua_setmetatable(state, 1);
  return 1;
}

}  // namespace semel::lua
