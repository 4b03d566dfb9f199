// The settings of the library `cjson`. The library is our own: lua-cjson ends the process when
// memory runs out, and allocates memory outside the limits.
#include <climits>
#include <cstring>
#include <new>

#include "lua_compat/libraries/json_config.hpp"
#include "lua_compat/libraries/libraries.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

void expect_arguments(lua_State* state, int count) {
  luaL_argcheck(state, lua_gettop(state) <= count, count + 1, "found too many arguments");
  lua_settop(state, count);
}

/// Sets the value if one is given, within two limits, and pushes the value in effect.
void integer_option(lua_State* state, int index, int& option, int smallest, int largest) {
  if (!lua_isnil(state, index)) {
    const int value = int_argument(state, index);
    if (value < smallest || value > largest) {
      luaL_argerror(
          state, 1,
          lua_pushfstring(state, "expected integer between %d and %d", smallest, largest));
    }
    option = value;
  }
  lua_pushinteger(state, option);
}

/// The same for false and true, their names, or a third name.
void choice_option(lua_State* state, int index, int& option, const char* third) {
  if (lua_isboolean(state, index)) {
    option = lua_toboolean(state, index);
  } else if (!lua_isnil(state, index)) {
    const char* const names[] = {"off", "on", third, nullptr};
    option = luaL_checkoption(state, index, nullptr, names);
  }
  if (option > 1) {
    lua_pushstring(state, third);
  } else {
    lua_pushboolean(state, option);
  }
}

void switch_option(lua_State* state, int index, bool& option) {
  int value = option ? 1 : 0;
  choice_option(state, index, value, nullptr);
  option = value != 0;
}

int encode_max_depth(lua_State* state) {
  expect_arguments(state, 1);
  integer_option(state, 1, json_config(state).encode_depth_max, 1, INT_MAX);
  return 1;
}
int decode_max_depth(lua_State* state) {
  expect_arguments(state, 1);
  integer_option(state, 1, json_config(state).decode_depth_max, 1, INT_MAX);
  return 1;
}
int encode_number_precision(lua_State* state) {
  expect_arguments(state, 1);
  integer_option(state, 1, json_config(state).precision, 1, 14);
  return 1;
}
int encode_sparse_array(lua_State* state) {
  expect_arguments(state, 3);
  JsonConfig& config = json_config(state);
  switch_option(state, 1, config.converts_sparse);
  integer_option(state, 2, config.sparse_ratio, 0, INT_MAX);
  integer_option(state, 3, config.sparse_safe, 0, INT_MAX);
  return 3;
}
int encode_keep_buffer(lua_State* state) {
  expect_arguments(state, 1);
  switch_option(state, 1, json_config(state).keeps_buffer);
  return 1;
}
int encode_invalid_numbers(lua_State* state) {
  expect_arguments(state, 1);
  choice_option(state, 1, json_config(state).encode_invalid, "null");
  return 1;
}
int decode_invalid_numbers(lua_State* state) {
  expect_arguments(state, 1);
  choice_option(state, 1, json_config(state).decode_invalid, nullptr);
  return 1;
}

int json_new(lua_State* state) {
  open_json_library(state);
  return 1;
}

struct Function {
  const char* name;
  lua_CFunction function;
};
constexpr Function functions[] = {
    {"encode", json_encode},
    {"decode", json_decode},
    {"encode_sparse_array", encode_sparse_array},
    {"encode_max_depth", encode_max_depth},
    {"decode_max_depth", decode_max_depth},
    {"encode_number_precision", encode_number_precision},
    {"encode_keep_buffer", encode_keep_buffer},
    {"encode_invalid_numbers", encode_invalid_numbers},
    {"decode_invalid_numbers", decode_invalid_numbers},
    {"new", json_new},
};

}  // namespace

void open_json_library(lua_State* state) {
  luaL_checkstack(state, 4, "");
  lua_createtable(state, 0, 13);
  new (lua_newuserdata(state, sizeof(JsonConfig))) JsonConfig{};
  for (const Function& entry : functions) {
    lua_pushvalue(state, -1);
    lua_pushcclosure(state, entry.function, 1);
    lua_setfield(state, -3, entry.name);
  }
  lua_pop(state, 1);
  lua_pushlightuserdata(state, nullptr);
  lua_setfield(state, -2, "null");
  lua_pushliteral(state, "cjson");
  lua_setfield(state, -2, "_NAME");
  lua_pushliteral(state, "2.1.0");
  lua_setfield(state, -2, "_VERSION");
}

}  // namespace semel::lua
