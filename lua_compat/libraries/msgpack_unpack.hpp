// The decoding functions of cmsgpack.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// Returns all values of a string.
int msgpack_unpack(lua_State* state);
/// Returns the offset of the next value, or -1, and the value at an offset.
int msgpack_unpack_one(lua_State* state);
/// The same for several values.
int msgpack_unpack_limit(lua_State* state);

}  // namespace semel::lua
