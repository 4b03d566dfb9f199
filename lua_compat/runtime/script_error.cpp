#include "lua_compat/runtime/script_error.hpp"

#include <array>
#include <cstdio>

#include "base/assert.hpp"

namespace semel::lua {
namespace {

std::string_view without_line_end(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

void push_text(lua_State* state, std::string_view text) {
  lua_pushlstring(state, text.data(), text.size());
}

/// As tostring() would write the value, but without calling any function.
void keep_other(lua_State* state, Run& run) {
  std::array<char, 64> room{};
  switch (lua_type(state, 1)) {
    case LUA_TNIL:
      run.error_text += "nil";
      return;
    case LUA_TBOOLEAN:
      run.error_text += lua_toboolean(state, 1) != 0 ? "true" : "false";
      return;
    case LUA_TNUMBER:
      std::snprintf(room.data(), room.size(), "%.14g", lua_tonumber(state, 1));
      break;
    default:
      std::snprintf(room.data(), room.size(), "%s: %p", luaL_typename(state, 1),
                    lua_topointer(state, 1));
  }
  run.error_text += room.data();
}

/// Records the text of the error, the one value on the stack. redis-server reads it as a C string,
/// which ends at a zero.
void keep_text(lua_State* state, Run& run) {
  run.error_text.clear();
  run.has_error_text = true;
  if (lua_istable(state, 1)) {
    push_word(state, run, Word::err);
    lua_rawget(state, 1);
    const char* const text = lua_tostring(state, -1);
    if (text != nullptr)
      run.error_text = text;
    else
      run.error_text = "ERR unknown error";
    lua_pop(state, 1);
    return;
  }
  run.error_text = "ERR ";
  if (lua_type(state, 1) == LUA_TSTRING) {
    run.error_text += lua_tostring(state, 1);
  } else {
    keep_other(state, run);
  }
}

}  // namespace

void push_error(lua_State* state, std::string_view text) {
  [[maybe_unused]] const int top = lua_gettop(state);
  lua_createtable(state, 0, 1);
  push_word(state, run_of(state), Word::err);
  lua_pushliteral(state, "ERR ");
  push_text(state, text);
  lua_concat(state, 2);
  lua_rawset(state, -3);
  SEMEL_ASSERT(lua_gettop(state) == top + 1);
}

int raise_error(lua_State* state, std::string_view text) {
  push_error(state, text);
  return lua_error(state);
}

void push_error_reply(lua_State* state, std::string_view text) {
  const Run& run = run_of(state);
  [[maybe_unused]] const int top = lua_gettop(state);
  lua_createtable(state, 0, 2);
  push_word(state, run, Word::err);
  push_text(state, text);
  lua_rawset(state, -3);
  push_word(state, run, Word::ignore_error_stats_update);
  lua_pushboolean(state, 1);
  lua_rawset(state, -3);
  SEMEL_ASSERT(lua_gettop(state) == top + 1);
}

void push_error_of(lua_State* state, std::string_view text) {
  const bool is_marked = !text.empty() && text.front() == '-';
  if (is_marked) text.remove_prefix(1);
  text = without_line_end(text);
  if (text.find(' ') == std::string_view::npos) {
    push_error(state, text);
    return;
  }
  lua_createtable(state, 0, 1);
  push_word(state, run_of(state), Word::err);
  push_text(state, text);
  lua_rawset(state, -3);
}

int keep_error(lua_State* state) {
  SEMEL_ASSERT(lua_gettop(state) == 1);  // the error
  Run& run = run_of(state);
  run.error_source.clear();
  run.error_line = 0;
  lua_Debug where{};
  for (int level = 1; level <= 2; ++level) {
    if (lua_getstack(state, level, &where) == 0) break;
    lua_getinfo(state, "Sl", &where);
    run.error_source = where.source;
    run.error_line = where.currentline;
    // Some library functions of LuaJIT are written in Lua, too, but have no lines.
    if (*where.what != 'C' && where.currentline > 0) break;
  }
  keep_text(state, run);
  lua_settop(state, 1);
  return 1;
}

std::string error_text_of(const Run& run, int status) {
  if (run.over != nullptr) return std::string{"ERR "} + run.over;
  if (run.failure != nullptr) return run.failure;
  if (status == LUA_ERRMEM) return "ERR not enough memory";
  // Lua calls keep_error() for every error, unless its stack is full.
  if (status == LUA_ERRERR || !run.has_error_text) return "ERR stack overflow";
  return run.error_text.substr(0, run.reply_bytes_max);
}

std::string error_of(const Run& run, int status, std::string_view name) {
  std::string text = error_text_of(run, status);
  text += " script: ";
  text += name;
  if (!run.error_source.empty() && run.error_line > 0) {
    text += ", on ";
    text += run.error_source;
    text += ':';
    text += std::to_string(run.error_line);
    text += '.';
  }
  return text;
}

}  // namespace semel::lua
