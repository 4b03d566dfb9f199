// string.format as 5.1 has it.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

int string_format(lua_State* state);

}  // namespace semel::lua
