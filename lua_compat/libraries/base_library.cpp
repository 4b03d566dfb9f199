#include "lua_compat/libraries/base_library.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace semel::lua {
namespace {

// The instruction hook does not see the cost of a full collection.
constexpr std::size_t collected_bytes_a_step = 32;
constexpr std::size_t source_bytes_a_step = 4;

// Small, as the compiler may need 20 us for a byte.
constexpr std::size_t piece_bytes = 1024;

/// Gives the compiler a text in pieces, and its script a pause before each: the compiler calls no
/// hook. Where the script must stop, the text ends.
const char* read_piece(lua_State* state, void* data, std::size_t* bytes) {
  auto& rest = *static_cast<std::string_view*>(data);
  Budget& own = budget_of(state);
  if (own.over == nullptr && own.on_pause != nullptr) own.on_pause(own);
  *bytes = own.over != nullptr ? 0 : std::min(rest.size(), piece_bytes);
  if (*bytes == 0) return nullptr;
  const char* const text = rest.data();
  rest.remove_prefix(*bytes);
  return text;
}

int load(lua_State* state, std::string_view text, const char* name) {
  const int status = lua_loadx(state, read_piece, &text, name, "t");
  return must_end(state) ? raise_end(state) : status;
}

/// Pushes "NAME:LINE: WHAT near 'TEXT'", NAME as the compiler would write it.
void push_malformed(lua_State* state, const Run& run, const SourceForm::Malformed& malformed) {
  lua_Debug where{};
  const std::string_view nothing;
  if (load(state, nothing, run.source_name) != 0) return;
  lua_getinfo(state, ">S", &where);
  lua_pushfstring(state, "%s:%d: %s near '", where.short_src, malformed.line, malformed.what);
  lua_pushlstring(state, malformed.near.data(), malformed.near.size());
  lua_pushliteral(state, "'");
  lua_concat(state, 3);
}

/// Returns the compiled function on top, or nil and the message on top.
int compiled(lua_State* state, int status) {
  if (must_end(state)) return raise_end(state);
  if (status == 0) return 1;
  lua_pushnil(state);
  lua_insert(state, -2);
  return 2;
}

/// Returns from pcall or xpcall; the results, or the error, are above index `base`.
int caught(lua_State* state, int status, int base) {
  if (must_end(state)) return raise_end(state);
  SEMEL_ASSERT(lua_gettop(state) >= base);
  lua_pushboolean(state, status == 0 ? 1 : 0);
  lua_insert(state, base + 1);
  return lua_gettop(state) - base;
}

/// Calls the error handler of a script, upvalue 1; but not after the hook has stopped the script:
/// LuaJIT calls no hook until that error is caught, so a handler that loops would never end.
int handle_error(lua_State* state) {
  if (must_end(state)) return 1;
  check_c_stack(state);
  lua_settop(state, 1);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, 1, 1);
  return 1;
}

/// The result of coroutine.status, such as "suspended".
const char* status_of(lua_State* state, lua_State* other) {
  if (state == other) return "running";
  lua_Debug frame{};
  switch (lua_status(other)) {
    case LUA_YIELD:
      return "suspended";
    case 0:
      if (lua_getstack(other, 0, &frame) > 0) return "normal";
      return lua_gettop(other) == 0 ? "dead" : "suspended";
    default:
      return "dead";
  }
}

/// Resumes `other` with the `count` values on top. Returns how many results are on top, or -1 if
/// the error is.
int resume(lua_State* state, lua_State* other, int count) {
  check_c_stack(state);
  const char* const status = status_of(state, other);
  if (*status != 's') {
    lua_pushfstring(state, "cannot resume %s coroutine", *status == 'd' ? "dead" : status);
    return -1;
  }
  if (lua_checkstack(other, count) == 0) luaL_error(state, "too many arguments to resume");
  lua_xmove(state, other, count);
  const int result = lua_resume(other, count);
  if (must_end(state)) return raise_end(state);
  SEMEL_ASSERT(lua_gettop(other) > 0 || result == 0 || result == LUA_YIELD);
  if (result != 0 && result != LUA_YIELD) {
    lua_xmove(other, state, 1);
    return -1;
  }
  const int results = lua_gettop(other);
  if (lua_checkstack(state, results + 1) == 0) luaL_error(state, "too many results to resume");
  lua_xmove(other, state, results);
  return results;
}

int resume_wrapped(lua_State* state) {
  lua_State* const other = lua_tothread(state, lua_upvalueindex(1));
  const int results = resume(state, other, lua_gettop(state));
  if (results >= 0) return results;
  if (lua_type(state, -1) == LUA_TSTRING) {
    luaL_where(state, 1);
    lua_insert(state, -2);
    lua_concat(state, 2);
  }
  return lua_error(state);
}

}  // namespace

int compile_source(lua_State* state, Run& run) {
  SEMEL_ASSERT(run.source_name != nullptr);
  charge(state, run.source.size() / source_bytes_a_step);
  check_c_stack(state);
  const SourceForm::Main main =
      run.source_is_script ? SourceForm::Main::first_result : SourceForm::Main::all_results;
  std::string_view form = run.form.of(run.source, main);
  const SourceForm::Malformed malformed = run.form.malformed();
  if (malformed.what != nullptr) {
    push_malformed(state, run, malformed);
    return LUA_ERRSYNTAX;
  }
  const int status = load(state, form, run.source_name);
  if (status != LUA_ERRSYNTAX) return status;
  // Compile the original, so that the message does not mention the parentheses that we added.
  lua_pop(state, 1);
  form = run.form.of(run.source, SourceForm::Main::as_it_is);
  return load(state, form, run.source_name);
}

int base_assert(lua_State* state) {
  luaL_checkany(state, 1);
  if (lua_toboolean(state, 1) == 0)
    return luaL_error(state, "%s", luaL_optstring(state, 2, "assertion failed!"));
  return lua_gettop(state);
}

int base_pcall(lua_State* state) {
  check_c_stack(state);
  const int count = lua_gettop(state);
  if (count == 0) {
    lua_pushboolean(state, 0);
    lua_pushliteral(state, "attempt to call a boolean value");
    return 2;
  }
  const int status = lua_pcall(state, count - 1, LUA_MULTRET, 0);
  // An error of redis.call or redis.error_reply is caught as its text.
  if (status != 0 && lua_istable(state, -1)) {
    push_word(state, run_of(state), Word::err);
    lua_rawget(state, -2);
    lua_remove(state, lua_isstring(state, -1) != 0 ? -2 : -1);
  }
  return caught(state, status, 0);
}

int base_xpcall(lua_State* state) {
  luaL_checkany(state, 2);
  check_c_stack(state);
  lua_settop(state, 2);
  lua_pushcclosure(state, handle_error, 1);
  lua_insert(state, 1);
  const int status = lua_pcall(state, 0, LUA_MULTRET, 1);
  return caught(state, status, 1);
}

int base_load(lua_State* state) {
  luaL_checktype(state, 1, LUA_TFUNCTION);
  const char* const name = luaL_optstring(state, 2, "=(load)");
  lua_settop(state, 2);
  lua_createtable(state, 0, 0);
  int pieces = 0;
  for (;;) {
    check_c_stack(state);
    lua_pushvalue(state, 1);
    const int status = lua_pcall(state, 0, 1, 0);
    if (must_end(state)) return raise_end(state);
    if (status != 0) return compiled(state, status);
    if (lua_isnil(state, -1)) break;
    if (lua_isstring(state, -1) == 0) {
      lua_pushliteral(state, "reader function must return a string");
      return compiled(state, LUA_ERRRUN);
    }
    std::size_t bytes = 0;
    static_cast<void>(lua_tolstring(state, -1, &bytes));
    charge(state, 1 + bytes / source_bytes_a_step);
    if (bytes == 0) break;
    lua_rawseti(state, 3, ++pieces);
  }
  Run& run = run_of(state);
  run.pieces.clear();
  for (int index = 1; index <= pieces; ++index) {
    lua_rawgeti(state, 3, index);
    std::size_t bytes = 0;
    const char* const text = lua_tolstring(state, -1, &bytes);
    run.pieces.append(text, bytes);
    lua_pop(state, 1);
  }
  run.source = run.pieces;
  run.source_name = name;
  run.source_is_script = false;
  return compiled(state, compile_source(state, run));
}

int base_loadstring(lua_State* state) {
  std::size_t bytes = 0;
  const char* const text = luaL_checklstring(state, 1, &bytes);
  Run& run = run_of(state);
  run.source = {text, bytes};
  run.source_name = luaL_optstring(state, 2, text);
  run.source_is_script = false;
  return compiled(state, compile_source(state, run));
}

int base_collectgarbage(lua_State* state) {
  constexpr const char* options[] = {"stop", "restart",  "collect",    "count",
                                     "step", "setpause", "setstepmul", nullptr};
  const int option = luaL_checkoption(state, 1, "collect", options);
  static_cast<void>(luaL_optinteger(state, 2, 0));
  constexpr int collect = 2;
  constexpr int count = 3;
  constexpr int step = 4;
  constexpr int usual_tempo = 200;
  const std::size_t bytes = budget_of(state).memory_used;
  if (option == collect) {
    charge(state, bytes / collected_bytes_a_step);
    lua_gc(state, LUA_GCCOLLECT, 0);
  }
  // Scripts share the collector, so they cannot change how it works.
  if (option == count)
    lua_pushnumber(state, static_cast<double>(bytes) / 1024);
  else if (option == step)
    lua_pushboolean(state, 0);
  else
    lua_pushnumber(state, option > step ? usual_tempo : 0);
  return 1;
}

int coroutine_resume(lua_State* state) {
  lua_State* const other = lua_tothread(state, 1);
  luaL_argcheck(state, other != nullptr, 1, "coroutine expected");
  const int results = resume(state, other, lua_gettop(state) - 1);
  lua_pushboolean(state, results < 0 ? 0 : 1);
  const int count = results < 0 ? 1 : results;
  lua_insert(state, -(count + 1));
  return count + 1;
}

int coroutine_create(lua_State* state) {
  luaL_argcheck(state, lua_isfunction(state, 1) && lua_iscfunction(state, 1) == 0, 1,
                "Lua function expected");
  lua_State* const other = lua_newthread(state);
  lua_pushvalue(state, 1);
  lua_xmove(state, other, 1);
  return 1;
}

int coroutine_wrap(lua_State* state) {
  coroutine_create(state);
  lua_pushcclosure(state, resume_wrapped, 1);
  return 1;
}

int coroutine_yield(lua_State* state) {
  if (lua_isyieldable(state) != 0) return lua_yield(state, lua_gettop(state));
  lua_pushliteral(state, "attempt to yield across metamethod/C-call boundary");
  return lua_error(state);
}

}  // namespace semel::lua
