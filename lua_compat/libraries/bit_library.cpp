// Operations on 32-bit integers, as in Lua BitOp 1.0.2.
#include <bit>
#include <cstdint>

#include "lua_compat/libraries/libraries.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

/// The number modulo 2^32, rounded to even. Beyond 2^51 the result is the lower half of the double
/// after rounding, as there.
std::uint32_t bits_argument(lua_State* state, int index) {
  constexpr double two_to_52_and_51 = 6755399441055744.0;
  const double number = luaL_checknumber(state, index);
  return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(number + two_to_52_and_51));
}

int push_bits(lua_State* state, std::uint32_t bits) {
  lua_pushinteger(state, static_cast<std::int32_t>(bits));
  return 1;
}

int bit_tobit(lua_State* state) {
  return push_bits(state, bits_argument(state, 1));
}
int bit_bnot(lua_State* state) {
  return push_bits(state, ~bits_argument(state, 1));
}
int bit_bswap(lua_State* state) {
  return push_bits(state, __builtin_bswap32(bits_argument(state, 1)));
}

template <typename Operation>
int combine(lua_State* state, Operation operation) {
  std::uint32_t bits = bits_argument(state, 1);
  for (int i = lua_gettop(state); i > 1; --i) bits = operation(bits, bits_argument(state, i));
  return push_bits(state, bits);
}
int bit_band(lua_State* state) {
  return combine(state, [](std::uint32_t a, std::uint32_t b) { return a & b; });
}
int bit_bor(lua_State* state) {
  return combine(state, [](std::uint32_t a, std::uint32_t b) { return a | b; });
}
int bit_bxor(lua_State* state) {
  return combine(state, [](std::uint32_t a, std::uint32_t b) { return a ^ b; });
}

template <typename Operation>
int shift(lua_State* state, Operation operation) {
  const std::uint32_t bits = bits_argument(state, 1);
  return push_bits(state, operation(bits, static_cast<int>(bits_argument(state, 2) & 31)));
}
int bit_lshift(lua_State* state) {
  return shift(state, [](std::uint32_t bits, int by) { return bits << by; });
}
int bit_rshift(lua_State* state) {
  return shift(state, [](std::uint32_t bits, int by) { return bits >> by; });
}
int bit_arshift(lua_State* state) {
  return shift(state, [](std::uint32_t bits, int by) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(bits) >> by);
  });
}
int bit_rol(lua_State* state) {
  return shift(state, [](std::uint32_t bits, int by) { return std::rotl(bits, by); });
}
int bit_ror(lua_State* state) {
  return shift(state, [](std::uint32_t bits, int by) { return std::rotr(bits, by); });
}

int bit_tohex(lua_State* state) {
  constexpr int digits_max = 8;
  std::uint32_t bits = bits_argument(state, 1);
  const std::int64_t wanted =
      lua_isnone(state, 2) ? digits_max : static_cast<std::int32_t>(bits_argument(state, 2));
  const char* const letters = wanted < 0 ? "0123456789ABCDEF" : "0123456789abcdef";
  const std::int64_t size = wanted < 0 ? -wanted : wanted;
  const int digits = size > digits_max ? digits_max : static_cast<int>(size);
  char text[digits_max];
  for (int i = digits; i-- > 0; bits >>= 4) text[i] = letters[bits & 15];
  lua_pushlstring(state, text, static_cast<std::size_t>(digits));
  return 1;
}

}  // namespace

void open_bit_library(lua_State* state) {
  lua_createtable(state, 0, 12);
  set_function(state, "tobit", bit_tobit);
  set_function(state, "tohex", bit_tohex);
  set_function(state, "bnot", bit_bnot);
  set_function(state, "band", bit_band);
  set_function(state, "bor", bit_bor);
  set_function(state, "bxor", bit_bxor);
  set_function(state, "lshift", bit_lshift);
  set_function(state, "rshift", bit_rshift);
  set_function(state, "arshift", bit_arshift);
  set_function(state, "rol", bit_rol);
  set_function(state, "ror", bit_ror);
  set_function(state, "bswap", bit_bswap);
}

}  // namespace semel::lua
