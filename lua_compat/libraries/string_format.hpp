// string.format of 5.1.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

int string_format(lua_State* state);

}  // namespace semel::lua
