// redis.register_function, with positional and with named arguments.
#include <algorithm>
#include <array>

#include "base/ascii.hpp"
#include "lua_compat/libraries/redis_library.hpp"
#include "lua_compat/runtime/script_error.hpp"

namespace semel::lua {
namespace {

/// The arguments, as views of strings on the stack; 0: not given.
struct Given {
  std::string_view name{};
  std::string_view description{};
  bool has_name = false;
  bool has_description = false;
  int callback = 0;
  int flags = 0;
};

bool same_word(std::string_view one, std::string_view other) noexcept {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return base::to_lower(a) == base::to_lower(b); });
}

/// A number is converted to its text.
bool text_at(lua_State* state, int index, std::string_view& text) {
  if (lua_isstring(state, index) == 0) return false;
  std::size_t bytes = 0;
  const char* const chars = lua_tolstring(state, index, &bytes);
  text = {chars, bytes};
  return true;
}

/// Reads one pair of the table; the key is below the value on top. Returns the error, or null. The
/// value stays on the stack if it is used.
const char* take_field(lua_State* state, Given& given) {
  if (lua_type(state, -2) != LUA_TSTRING)
    return "unknown argument given to redis.register_function";
  std::string_view key;
  text_at(state, -2, key);
  const int value = lua_gettop(state);
  if (same_word(key, "function_name")) {
    given.has_name = text_at(state, value, given.name);
    if (!given.has_name)
      return "function_name argument given to redis.register_function must be a string";
  } else if (same_word(key, "description")) {
    given.has_description = text_at(state, value, given.description);
    if (!given.has_description)
      return "description argument given to redis.register_function must be a string";
  } else if (same_word(key, "callback")) {
    if (!lua_isfunction(state, value))
      return "callback argument given to redis.register_function must be a function";
    given.callback = value;
  } else if (same_word(key, "flags")) {
    if (!lua_istable(state, value))
      return "flags argument to redis.register_function must be a table representing function "
             "flags";
    given.flags = value;
  } else {
    return "unknown argument given to redis.register_function";
  }
  return nullptr;
}

const char* take_table(lua_State* state, Given& given) {
  if (!lua_istable(state, 1))
    return "calling redis.register_function with a single argument is only applicable to Lua "
           "table (representing named arguments).";
  for (lua_pushnil(state); lua_next(state, 1) != 0;) {
    if (const char* const wrong = take_field(state, given)) return wrong;
    // The value stays below the key while its text is in use.
    luaL_checkstack(state, 4, "arguments");
    lua_insert(state, -2);
    if (given.callback == lua_gettop(state)) --given.callback;
    if (given.flags == lua_gettop(state)) --given.flags;
  }
  if (!given.has_name) return "redis.register_function must get a function name argument";
  if (given.callback == 0) return "redis.register_function must get a callback argument";
  return nullptr;
}

const char* take_positions(lua_State* state, Given& given) {
  given.has_name = text_at(state, 1, given.name);
  if (!given.has_name) return "first argument to redis.register_function must be a string";
  if (!lua_isfunction(state, 2))
    return "second argument to redis.register_function must be a function";
  given.callback = 2;
  return nullptr;
}

bool is_name(std::string_view name) noexcept {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return base::is_digit(c) || base::is_letter(c) || c == '_';
  });
}

/// False: one of the flags is unknown.
bool flags_known(lua_State* state, int flags) {
  constexpr std::array<std::string_view, 5> known{"no-writes", "allow-oom", "allow-stale",
                                                  "no-cluster", "allow-cross-slot-keys"};
  for (int index = 1;; ++index) {
    lua_rawgeti(state, flags, index);
    if (lua_isnil(state, -1)) break;
    std::string_view flag;
    const bool is_known = lua_type(state, -1) == LUA_TSTRING && text_at(state, -1, flag) &&
                          std::find_if(known.begin(), known.end(), [&](std::string_view name) {
                            return same_word(name, flag);
                          }) != known.end();
    lua_pop(state, 1);
    if (!is_known) return false;
  }
  lua_pop(state, 1);
  return true;
}

constexpr std::size_t functions_max = 10'000;  // of one library

/// Raises no error: the strings exist already and are pushed by their references.
void keep(lua_State* state, LibraryDraft& library, const Given& given, int callback) {
  RegisteredFunction function;
  function.name = given.name;
  function.description = given.description;
  function.has_description = given.has_description;
  for (int index = 1; given.flags != 0; ++index) {
    lua_rawgeti(state, given.flags, index);
    std::size_t bytes = 0;
    const char* const flag = lua_tolstring(state, -1, &bytes);
    if (flag != nullptr) function.flags.emplace_back(flag, bytes);
    lua_pop(state, 1);
    if (flag == nullptr) break;
  }
  library.functions->push_back(std::move(function));
  library.callbacks.push_back(callback);
}

}  // namespace

int register_function(lua_State* state) {
  LibraryDraft* const library = run_of(state).library;
  if (library == nullptr)
    return raise_error(state,
                       "redis.register_function can only be called on FUNCTION LOAD command");
  const int count = lua_gettop(state);
  if (count < 1 || count > 2)
    return raise_error(state, "wrong number of arguments to redis.register_function");
  Given given;
  const char* wrong = count == 1 ? take_table(state, given) : take_positions(state, given);
  if (wrong == nullptr && given.flags != 0 && !flags_known(state, given.flags))
    wrong = "unknown flag given";
  if (wrong == nullptr && !is_name(given.name))
    wrong =
        "Library names can only contain letters, numbers, or underscores(_) and must be at "
        "least one character long";
  if (wrong != nullptr) return raise_error(state, wrong);
  if (library->functions->size() == functions_max)
    return raise_error(state, "a library has at most 10000 functions");
  if (!library->names.emplace(given.name).second)
    return raise_error(state, "Function already exists in the library");
  luaL_checkstack(state, 2, "flags");
  lua_pushvalue(state, given.callback);
  const int callback = luaL_ref(state, LUA_REGISTRYINDEX);
  keep(state, *library, given, callback);
  return 0;
}

}  // namespace semel::lua
