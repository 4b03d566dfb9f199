// Shared by the parts of the library `cjson`.
#pragma once

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// The settings of one instance of the library; the first upvalue of each of its functions.
struct JsonConfig {
  enum InvalidNumbers { refused, as_they_are, as_null };

  bool converts_sparse = false;  ///< sparse arrays into objects; else they are refused
  int sparse_ratio = 2;
  int sparse_safe = 10;
  int encode_depth_max = 1000;
  int decode_depth_max = 1000;
  int precision = 14;
  bool keeps_buffer = true;  ///< stored for scripts that read it; has no effect
  int encode_invalid = refused;
  int decode_invalid = as_they_are;
};

[[nodiscard]] inline JsonConfig& json_config(lua_State* state) {
  return *static_cast<JsonConfig*>(lua_touserdata(state, lua_upvalueindex(1)));
}

int json_encode(lua_State* state);
int json_decode(lua_State* state);

}  // namespace semel::lua
