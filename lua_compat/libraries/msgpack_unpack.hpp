// What cmsgpack reads.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// All values of a string.
int msgpack_unpack(lua_State* state);
/// The value at an offset, behind the offset of the next one: -1 if there is none.
int msgpack_unpack_one(lua_State* state);
/// The same of several values.
int msgpack_unpack_limit(lua_State* state);

}  // namespace semel::lua
