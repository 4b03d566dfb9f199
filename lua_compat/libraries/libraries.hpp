// The libraries that we wrote, and those of LuaJIT that get limits. bound_ functions change a
// global table; open_ functions push a new one.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// Replaces the functions of the global table `string` that an instruction hook cannot limit: find,
/// match, gmatch, gfind, gsub, rep, format. Removes dump.
void bound_string_library(lua_State* state);
/// Replaces the functions of `table` that move or join many elements (insert, remove, concat, sort,
/// maxn, getn), and the global unpack.
void bound_table_library(lua_State* state);
/// Replaces math.random and math.randomseed by the generator of redis-server.
void bound_math_library(lua_State* state);
/// Pushes the table of cjson.
void open_json_library(lua_State* state);
void open_msgpack_library(lua_State* state);  ///< that of cmsgpack
void open_struct_library(lua_State* state);   ///< that of struct
void open_bit_library(lua_State* state);      ///< that of bit

}  // namespace semel::lua
