// What a known script is run with.
#pragma once

#include <string>
#include <string_view>

#include "lua_compat/interpreter/interpreter.hpp"
#include "lua_compat/matcher/known_scripts.hpp"

namespace semel::net {

struct NativeCall {
  const lua::ScriptShape& shape;
  std::string_view sha;
  const lua::Invocation& invocation;
  lua::Host& host;
  std::string& reply;
};

}  // namespace semel::net
