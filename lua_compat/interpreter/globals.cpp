#include "lua_compat/interpreter/globals.hpp"

#include <array>
#include <string_view>

#include "base/assert.hpp"
#include "lua_compat/libraries/base_library.hpp"
#include "lua_compat/libraries/libraries.hpp"
#include "lua_compat/libraries/readonly.hpp"
#include "lua_compat/libraries/redis_library.hpp"
#include "lua_compat/runtime/script_error.hpp"

namespace semel::lua {
namespace {

using Names = std::string_view;

/// The names of Lua's own that a script sees, each between blanks. All others that LuaJIT has are
/// removed.
constexpr Names base_names =
    " _VERSION assert collectgarbage error gcinfo getmetatable ipairs load loadstring next pairs "
    "pcall rawequal rawget rawset select setmetatable tonumber tostring type unpack xpcall ";
constexpr Names string_names =
    " byte char dump find format gfind gmatch gsub len lower match rep reverse sub upper ";
constexpr Names table_names = " concat foreach foreachi getn insert maxn remove setn sort ";
constexpr Names math_names =
    " abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min "
    "mod modf pi pow rad random randomseed sin sinh sqrt tan tanh ";
constexpr Names coroutine_names = " create resume running status wrap yield ";

bool is_among(Names names, Names name) {
  for (std::size_t at = names.find(name); at != Names::npos; at = names.find(name, at + 1))
    if (names[at - 1] == ' ' && names[at + name.size()] == ' ') return true;
  return false;
}

/// Removes all names from the table on top that are not in `names`.
void keep_only(lua_State* state, Names names) {
  for (lua_pushnil(state); lua_next(state, -2) != 0;) {
    lua_pop(state, 1);
    std::size_t bytes = 0;
    const char* const text =
        lua_type(state, -1) == LUA_TSTRING ? lua_tolstring(state, -1, &bytes) : "";
    if (bytes != 0 && is_among(names, {text, bytes})) continue;
    // Lua allows clearing an existing field during a traversal.
    lua_pushvalue(state, -1);
    lua_pushnil(state);
    lua_rawset(state, -4);
  }
}

void set_function(lua_State* state, const char* name, lua_CFunction function) {
  lua_pushcfunction(state, function);
  lua_setfield(state, -2, name);
}

/// Gives the function `name` of the table on top a second name.
void set_alias(lua_State* state, const char* name, const char* alias) {
  lua_getfield(state, -1, name);
  lua_setfield(state, -2, alias);
}

int setn(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  return luaL_error(state, "'setn' is obsolete");
}

int refuse_unknown(lua_State* state) {
  // As in redis-server, which raises another error if the name is not a string.
  std::size_t bytes = 0;
  const char* const name = luaL_checklstring(state, 2, &bytes);
  return luaL_error(state, "Script attempted to access nonexistent global variable '%s'", name);
}

void open(lua_State* state, lua_CFunction library, const char* name) {
  lua_pushcfunction(state, library);
  lua_pushstring(state, name);
  lua_call(state, 1, 0);
}

/// Opens all libraries in the globals of the state, which no script sees.
void open_libraries(lua_State* state) {
  open(state, luaopen_base, "");
  open(state, luaopen_string, LUA_STRLIBNAME);
  open(state, luaopen_table, LUA_TABLIBNAME);
  open(state, luaopen_math, LUA_MATHLIBNAME);
  bound_string_library(state);
  bound_table_library(state);
  bound_math_library(state);
  open_json_library(state);
  lua_setglobal(state, "cjson");
  open_msgpack_library(state);
  lua_setglobal(state, "cmsgpack");
  open_struct_library(state);
  lua_setglobal(state, "struct");
  open_bit_library(state);
  lua_setglobal(state, "bit");
}

void adjust_libraries(lua_State* state) {
  lua_getglobal(state, "string");
  set_alias(state, "gmatch", "gfind");
  keep_only(state, string_names);
  lua_pop(state, 1);
  lua_getglobal(state, "table");
  set_function(state, "setn", setn);
  guard_function(state, "insert");
  keep_only(state, table_names);
  lua_pop(state, 1);
  lua_getglobal(state, "math");
  set_alias(state, "fmod", "mod");
  keep_only(state, math_names);
  lua_pop(state, 1);
  lua_getglobal(state, "coroutine");
  set_function(state, "create", coroutine_create);
  set_function(state, "resume", coroutine_resume);
  set_function(state, "wrap", coroutine_wrap);
  set_function(state, "yield", coroutine_yield);
  keep_only(state, coroutine_names);
  lua_pop(state, 1);
}

/// Pushes a copy of the globals with our own functions.
void make_base(lua_State* state) {
  [[maybe_unused]] const int top = lua_gettop(state);
  lua_createtable(state, 0, 64);
  for (lua_pushnil(state); lua_next(state, LUA_GLOBALSINDEX) != 0;) {
    lua_pushvalue(state, -2);
    lua_insert(state, -2);
    lua_rawset(state, -4);
  }
  keep_only(state, base_names);
  set_function(state, "assert", base_assert);
  set_function(state, "pcall", base_pcall);
  set_function(state, "xpcall", base_xpcall);
  set_function(state, "load", base_load);
  set_function(state, "loadstring", base_loadstring);
  set_function(state, "collectgarbage", base_collectgarbage);
  set_function(state, "rawget", readonly_rawget);
  set_function(state, "rawset", readonly_rawset);
  set_function(state, "getmetatable", readonly_getmetatable);
  set_function(state, "setmetatable", readonly_setmetatable);
  lua_getglobal(state, "next");
  lua_pushcclosure(state, readonly_pairs, 1);
  lua_setfield(state, -2, "pairs");
  for (const char* const name :
       {"string", "table", "math", "coroutine", "cjson", "cmsgpack", "struct", "bit"}) {
    lua_getglobal(state, name);
    protect_table(state);
    lua_setfield(state, -2, name);
  }
  SEMEL_ASSERT(lua_gettop(state) == top + 1);
}

/// Gives the table on top a metatable that refuses unknown names.
void refuse_unknown_names(lua_State* state) {
  lua_createtable(state, 0, 1);
  set_function(state, "__index", refuse_unknown);
  lua_setmetatable(state, -2);
}

/// Makes the metatable of strings read-only for scripts.
void protect_strings(lua_State* state) {
  lua_pushliteral(state, "");
  lua_getmetatable(state, -1);
  lua_getglobal(state, "string");
  lua_setfield(state, -2, "__index");
  lua_createtable(state, 0, 1);
  lua_getglobal(state, "string");
  protect_table(state);
  lua_setfield(state, -2, "__index");
  protect_table(state);
  lua_setfield(state, -2, "__metatable");
  lua_pop(state, 2);
}

int keep(lua_State* state) {
  SEMEL_ASSERT(lua_isnil(state, -1) == 0);  // all nils would share one reference
  return luaL_ref(state, LUA_REGISTRYINDEX);
}

/// Pops a table of globals and returns the reference of the read-only proxy that scripts see.
int keep_globals(lua_State* state) {
  [[maybe_unused]] const int top = lua_gettop(state);
  refuse_unknown_names(state);
  lua_createtable(state, 0, 1);
  set_function(state, "__index", refuse_unknown);
  protect_table(state);
  lua_insert(state, -2);  // below the globals: what getmetatable(_G) returns
  lua_pushvalue(state, -1);
  protect_table(state, -3);
  lua_pushvalue(state, -1);
  lua_setfield(state, -3, "_G");
  const int kept = keep(state);
  lua_pop(state, 2);
  SEMEL_ASSERT(lua_gettop(state) == top - 1);
  return kept;
}

void open_redis(lua_State* state, Environment environment) {
  open_redis_library(state, environment);
  protect_table(state);
  lua_pushvalue(state, -1);
  lua_setfield(state, -3, "redis");
  lua_setfield(state, -2, "server");
}

/// The error handler of redis-server, which scripts can call there, too.
int error_handler(lua_State* state) {
  if (lua_istable(state, 1)) {
    lua_settop(state, 1);
    return 1;
  }
  lua_settop(state, 1);
  lua_getglobal(state, "tostring");
  lua_insert(state, 1);
  lua_call(state, 1, 1);
  std::size_t bytes = 0;
  const char* const text = lua_tolstring(state, -1, &bytes);
  push_error(state, {text, bytes});
  return 1;
}

void make_script_globals(lua_State* state, Run& run) {
  make_base(state);
  open_redis(state, Environment::scripts);
  set_function(state, "__redis__err__handler", error_handler);
  lua_pushvalue(state, -1);
  run.script_globals = keep(state);
  run.globals[static_cast<std::size_t>(Environment::scripts)] = keep_globals(state);
}

void make_function_globals(lua_State* state, Run& run) {
  open_loading_library(state);
  refuse_unknown_names(state);
  protect_table(state);
  lua_createtable(state, 0, 2);
  lua_pushvalue(state, -2);
  lua_setfield(state, -2, "redis");
  lua_pushvalue(state, -2);
  lua_setfield(state, -2, "server");
  refuse_unknown_names(state);
  run.library_globals = keep(state);
  lua_pop(state, 1);

  make_base(state);
  open_redis(state, Environment::functions);
  lua_pushvalue(state, -1);
  run.function_globals = keep(state);
  const int globals = keep_globals(state);
  run.globals[static_cast<std::size_t>(Environment::functions)] = globals;
  lua_rawgeti(state, LUA_REGISTRYINDEX, globals);
  lua_getmetatable(state, -1);
  run.function_metatable = keep(state);
  lua_pop(state, 1);
}

}  // namespace

void build_globals(lua_State* state, Run& run) {
  constexpr std::array<const char*, static_cast<std::size_t>(Word::count)> words{
      "err",
      "ok",
      "double",
      "map",
      "set",
      "big_number",
      "verbatim_string",
      "string",
      "format",
      "ignore_error_stats_update",
      "KEYS",
      "ARGV",
      "the script ended"};
  luaL_checkstack(state, 20, "globals");
  [[maybe_unused]] const int top = lua_gettop(state);
  for (std::size_t at = 0; at < words.size(); ++at) {
    lua_pushstring(state, words[at]);
    run.words_kept[at] = keep(state);
  }
  open_libraries(state);
  adjust_libraries(state);
  protect_strings(state);
  make_script_globals(state, run);
  make_function_globals(state, run);
  SEMEL_ASSERT(lua_gettop(state) == top);
}

void set_script_arguments(lua_State* state, Run& run) {
  [[maybe_unused]] const int top = lua_gettop(state);
  SEMEL_ASSERT(top >= 2 && lua_istable(state, -1) && lua_istable(state, -2));
  lua_rawgeti(state, LUA_REGISTRYINDEX, run.script_globals);
  push_word(state, run, Word::args);
  lua_pushvalue(state, -3);
  lua_rawset(state, -3);
  push_word(state, run, Word::keys);
  lua_pushvalue(state, -4);
  lua_rawset(state, -3);
  lua_pop(state, 3);
  SEMEL_ASSERT(lua_gettop(state) == top - 2);
}

void select_globals(lua_State* state, const Run& run, Environment environment) {
  lua_rawgeti(state, LUA_REGISTRYINDEX, run.globals[static_cast<std::size_t>(environment)]);
  SEMEL_ASSERT(lua_istable(state, -1));
  lua_replace(state, LUA_GLOBALSINDEX);
}

void show_library_globals(lua_State* state, const Run& run, bool is_loading) {
  lua_rawgeti(state, LUA_REGISTRYINDEX, run.function_metatable);
  SEMEL_ASSERT(lua_istable(state, -1));
  lua_rawgeti(state, LUA_REGISTRYINDEX, is_loading ? run.library_globals : run.function_globals);
  lua_setfield(state, -2, "__index");
  lua_pop(state, 1);
}

}  // namespace semel::lua
