// The libraries of a script's world that are our own or are bounded by us. Each puts its functions
// into the table on top of the stack, or makes it: see the function.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// Replaces in the global table `string` what a hook cannot bound: find, match, gmatch, gfind,
/// gsub, rep, format, and takes dump out.
void bound_string_library(lua_State* state);
/// Replaces in `table` what moves or joins many elements (insert, remove, concat, sort, maxn,
/// getn), and the global unpack.
void bound_table_library(lua_State* state);
/// Replaces math.random and math.randomseed by redis-server's own generator.
void bound_math_library(lua_State* state);
/// Leaves the table of cjson on the stack.
void open_json_library(lua_State* state);
void open_msgpack_library(lua_State* state);  ///< the same of cmsgpack
void open_struct_library(lua_State* state);   ///< of struct
void open_bit_library(lua_State* state);      ///< of bit

}  // namespace semel::lua
