#include "lua_compat/libraries.hpp"
extern "C" int luaopen_cjson(lua_State*);
namespace semel::lua {
__attribute__((weak)) void bound_string_library(lua_State*) {}
__attribute__((weak)) void bound_table_library(lua_State*) {}
__attribute__((weak)) void bound_math_library(lua_State*) {}
__attribute__((weak)) void open_json_library(lua_State* s) {
  lua_pushcfunction(s, luaopen_cjson);
  lua_call(s, 0, 1);
}
__attribute__((weak)) void open_msgpack_library(lua_State* s) {
  lua_newtable(s);
}
__attribute__((weak)) void open_struct_library(lua_State* s) {
  lua_newtable(s);
}
__attribute__((weak)) void open_bit_library(lua_State* s) {
  lua_pushcfunction(s, luaopen_bit);
  lua_pushstring(s, "bit");
  lua_call(s, 1, 0);
  lua_getglobal(s, "bit");
}
}  // namespace semel::lua
