#include "lua_compat/libraries/redis_library.hpp"

#include <openssl/evp.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/assert.hpp"
#include "lua_compat/runtime/reply_to_lua.hpp"
#include "lua_compat/runtime/script_error.hpp"

namespace semel::lua {
namespace {

constexpr const char* version = "7.2.4";
constexpr int version_number = 0x00070204;
constexpr std::size_t digits_max = 32;

/// A number as an argument of a command: "%.17g" of C.
std::string_view digits_of(double number, char* room) {
  constexpr double exact = 1e15;
  const bool is_integer = std::abs(number) < exact && std::trunc(number) == number;
  if (is_integer && !(number == 0 && std::signbit(number))) {
    const auto end = std::to_chars(room, room + digits_max, static_cast<std::int64_t>(number)).ptr;
    return {room, static_cast<std::size_t>(end - room)};
  }
  const int bytes = std::snprintf(room, digits_max, "%.17g", number);
  return {room, static_cast<std::size_t>(bytes)};
}

/// Reads the Lua arguments into run.words. Returns the error, or null.
const char* take_words(lua_State* state, Run& run) {
  const int count = lua_gettop(state);
  if (count == 0) return "Please specify at least one argument for this redis lib call";
  const auto size = static_cast<std::size_t>(count);
  run.words.resize(size);
  if (run.digits.size() < size * digits_max) run.digits.resize(size * digits_max);
  for (int index = 1; index <= count; ++index) {
    const auto at = static_cast<std::size_t>(index - 1);
    const int type = lua_type(state, index);
    if (type == LUA_TSTRING) {
      std::size_t bytes = 0;
      const char* const text = lua_tolstring(state, index, &bytes);
      run.words[at] = {text, bytes};
    } else if (type == LUA_TNUMBER) {
      run.words[at] = digits_of(lua_tonumber(state, index), run.digits.data() + at * digits_max);
    } else {
      return "Lua redis lib command arguments must be strings or integers";
    }
  }
  return nullptr;
}

/// Calls the command and pushes its reply; true: it is an error.
bool call_command(lua_State* state) {
  Run& run = run_of(state);
  if (const char* const wrong = take_words(state, run)) {
    push_error(state, wrong);
    return true;
  }
  if (!run.has_commands) {
    push_error(state, "redis.call can only be called from a script or a function that runs");
    return true;
  }
  SEMEL_ASSERT(run.host != nullptr && !run.words.empty());
  run.answer.clear();
  charge(state, 10 + run.words.size());
  run.host->call(run.words, run.dialect, run.answer);
  // The instruction hook does not see the time of a command, which grows with its reply.
  constexpr std::size_t answer_bytes_a_step = 16;
  charge(state, run.answer.size() / answer_bytes_a_step);
  const bool failed = push_reply(state, run.answer);
  // Free the memory of a large reply; the interpreter would hold it for its whole life.
  constexpr std::size_t kept_max = std::size_t{1} << 20;
  if (run.answer.capacity() > kept_max) run.answer = std::string{};
  pause_if_due(run);
  if (run.over != nullptr) raise_end(state);
  return failed;
}

int call(lua_State* state) {
  return call_command(state) ? lua_error(state) : 1;
}

int protected_call(lua_State* state) {
  call_command(state);
  return 1;
}

int single_text(lua_State* state, bool is_error) {
  if (lua_gettop(state) != 1 || lua_type(state, 1) != LUA_TSTRING) {
    push_error(state, "wrong number or type of arguments");
    return 1;
  }
  std::size_t bytes = 0;
  const char* const text = lua_tolstring(state, 1, &bytes);
  if (is_error) {
    push_error_of(state, {text, bytes});
    return 1;
  }
  lua_createtable(state, 0, 1);
  push_word(state, run_of(state), Word::ok);
  lua_pushvalue(state, 1);
  lua_rawset(state, -3);
  return 1;
}

int error_reply(lua_State* state) {
  return single_text(state, true);
}

int status_reply(lua_State* state) {
  return single_text(state, false);
}

int sha1hex(lua_State* state) {
  if (lua_gettop(state) != 1) return raise_error(state, "wrong number of arguments");
  std::size_t bytes = 0;
  const char* const text =
      lua_tolstring(state, 1, &bytes);  // a value without a text counts as the empty one
  charge(state, bytes / 8);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(text == nullptr ? "" : text, bytes, digest.data(), &size, EVP_sha1(), nullptr) !=
      1)
    return raise_error(state, "SHA-1 is not available");
  constexpr std::string_view hex = "0123456789abcdef";
  std::array<char, std::size_t{2} * EVP_MAX_MD_SIZE> digits{};
  for (std::size_t at = 0; at < size; ++at) {
    digits[2 * at] = hex[digest[at] >> 4];
    digits[2 * at + 1] = hex[digest[at] & 0xf];
  }
  lua_pushlstring(state, digits.data(), std::size_t{2} * size);
  return 1;
}

int log(lua_State* state) {
  const int count = lua_gettop(state);
  if (count < 2) return raise_error(state, "redis.log() requires two arguments or more.");
  if (lua_isnumber(state, 1) == 0)
    return raise_error(state, "First argument must be a number (log level).");
  const double level = lua_tonumber(state, 1);
  if (!(level > -1 && level < 4)) return raise_error(state, "Invalid debug level.");
  Run& run = run_of(state);
  run.answer.clear();
  for (int index = 2; index <= count; ++index) {
    std::size_t bytes = 0;
    const char* const text = lua_tolstring(state, index, &bytes);
    if (text == nullptr) continue;
    if (index > 2) run.answer += ' ';
    run.answer.append(text, bytes);
  }
  charge(state, 10 + run.answer.size());
  if (run.host != nullptr) run.host->log(static_cast<LogLevel>(level), run.answer);
  return 0;
}

int setresp(lua_State* state) {
  if (lua_gettop(state) != 1) return raise_error(state, "redis.setresp() requires one argument.");
  const double number = std::trunc(lua_tonumber(state, 1));
  if (number != 2 && number != 3) return raise_error(state, "RESP version must be 2 or 3.");
  run_of(state).dialect = number == 3 ? net::Resp::three : net::Resp::two;
  return 0;
}

int set_repl(lua_State* state) {
  if (lua_gettop(state) != 1) return raise_error(state, "redis.set_repl() requires two arguments.");
  const double flags = lua_tonumber(state, 1);
  if (!(flags > -1 && flags < 4))
    return raise_error(state,
                       "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or "
                       "REPL_NONE.");
  return 0;
}

int replicate_commands(lua_State* state) {
  lua_pushboolean(state, 1);
  return 1;
}

int breakpoint(lua_State* state) {
  lua_pushboolean(state, 0);
  return 1;
}

int debug(lua_State*) {
  return 0;
}

int acl_check_cmd(lua_State* state) {
  Run& run = run_of(state);
  if (const char* const wrong = take_words(state, run)) return raise_error(state, wrong);
  if (!run.has_commands) return raise_error(state, "redis.acl_check_cmd() needs a client");
  const std::optional<bool> may = run.host->may_call(run.words);
  if (!may) return raise_error(state, "Invalid command passed to redis.acl_check_cmd()");
  lua_pushboolean(state, *may ? 1 : 0);
  return 1;
}

struct Function {
  const char* name;
  lua_CFunction function;
};
struct Number {
  const char* name;
  int value;
};

void set_function(lua_State* state, const Function& function) {
  lua_pushcfunction(state, function.function);
  lua_setfield(state, -2, function.name);
}

void set_number(lua_State* state, const Number& number) {
  lua_pushnumber(state, number.value);
  lua_setfield(state, -2, number.name);
}

constexpr Number log_levels[] = {
    {"LOG_DEBUG", 0}, {"LOG_VERBOSE", 1}, {"LOG_NOTICE", 2}, {"LOG_WARNING", 3}};

void set_version(lua_State* state) {
  set_number(state, {"REDIS_VERSION_NUM", version_number});
  lua_pushstring(state, version);
  lua_setfield(state, -2, "REDIS_VERSION");
}

}  // namespace

void open_redis_library(lua_State* state, Environment environment) {
  constexpr Function functions[] = {
      {"call", call},
      {"pcall", protected_call},
      {"error_reply", error_reply},
      {"status_reply", status_reply},
      {"sha1hex", sha1hex},
      {"log", log},
      {"setresp", setresp},
      {"set_repl", set_repl},
      {"acl_check_cmd", acl_check_cmd},
  };
  constexpr Function of_scripts[] = {
      {"replicate_commands", replicate_commands}, {"breakpoint", breakpoint}, {"debug", debug}};
  constexpr Number replication[] = {
      {"REPL_NONE", 0}, {"REPL_AOF", 1}, {"REPL_SLAVE", 2}, {"REPL_REPLICA", 2}, {"REPL_ALL", 3}};
  lua_createtable(state, 0, 32);
  for (const Function& function : functions) set_function(state, function);
  if (environment == Environment::scripts)
    for (const Function& function : of_scripts) set_function(state, function);
  for (const Number& number : replication) set_number(state, number);
  for (const Number& number : log_levels) set_number(state, number);
  set_version(state);
}

void open_loading_library(lua_State* state) {
  lua_createtable(state, 0, 8);
  set_function(state, {"register_function", register_function});
  set_function(state, {"log", log});
  for (const Number& number : log_levels) set_number(state, number);
  set_version(state);
}

}  // namespace semel::lua
