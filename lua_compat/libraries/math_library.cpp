// The random numbers of redis-server, so that scripts which depend on them behave the same.
#include <cmath>
#include <cstdint>
#include <new>

#include "lua_compat/libraries/libraries.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

/// The 48-bit linear congruential generator of the drand48 family of POSIX; a result is its upper
/// 31 bits. Each interpreter has its own, while redis-server has one for all scripts.
class Generator {
 public:
  void seed(std::uint32_t value) noexcept { state_ = std::uint64_t{value} << 16 | 0x330E; }
  /// From 0 to below 1.
  [[nodiscard]] double next() noexcept {
    constexpr std::uint64_t mask = (std::uint64_t{1} << 48) - 1;
    constexpr std::uint64_t results = 2147483647;
    state_ = (state_ * 0x5DEECE66D + 0xB) & mask;
    return static_cast<double>((state_ >> 17) % results) / static_cast<double>(results);
  }

 private:
  std::uint64_t state_ = 0x1234ABCD330E;
};

Generator& generator_of(lua_State* state) {
  return *static_cast<Generator*>(lua_touserdata(state, lua_upvalueindex(1)));
}

int math_random(lua_State* state) {
  const double part = generator_of(state).next();
  int first = 1;
  int last = 1;
  switch (lua_gettop(state)) {
    case 0:
      lua_pushnumber(state, part);
      return 1;
    case 1:
      last = int_argument(state, 1);
      luaL_argcheck(state, 1 <= last, 1, "interval is empty");
      lua_pushnumber(state, std::floor(part * last) + 1);
      return 1;
    case 2:
      first = int_argument(state, 1);
      last = int_argument(state, 2);
      luaL_argcheck(state, first <= last, 2, "interval is empty");
      break;
    default:
      return luaL_error(state, "wrong number of arguments");
  }
  // An interval of more than 2^31 - 1 numbers wraps, as there.
  const auto numbers = static_cast<std::int32_t>(static_cast<std::uint32_t>(last) -
                                                 static_cast<std::uint32_t>(first) + 1);
  lua_pushnumber(state, std::floor(part * numbers) + first);
  return 1;
}

int math_randomseed(lua_State* state) {
  generator_of(state).seed(static_cast<std::uint32_t>(int_argument(state, 1)));
  return 0;
}

/// math.log of LuaJIT also takes a base.
int math_log(lua_State* state) {
  lua_pushnumber(state, std::log(luaL_checknumber(state, 1)));
  return 1;
}

int math_fmod(lua_State* state) {
  // 5.1 checks the second argument first.
  const double divisor = luaL_checknumber(state, 2);
  lua_pushnumber(state, std::fmod(luaL_checknumber(state, 1), divisor));
  return 1;
}

}  // namespace

void bound_math_library(lua_State* state) {
  lua_getglobal(state, LUA_MATHLIBNAME);
  new (lua_newuserdata(state, sizeof(Generator))) Generator{};
  lua_pushvalue(state, -1);
  lua_pushcclosure(state, math_random, 1);
  lua_setfield(state, -3, "random");
  lua_pushcclosure(state, math_randomseed, 1);
  lua_setfield(state, -2, "randomseed");
  set_function(state, "log", math_log);
  set_function(state, "fmod", math_fmod);
  set_function(state, "mod", math_fmod);
  lua_pop(state, 1);
}

}  // namespace semel::lua
