// The library `cmsgpack`: encoding. msgpack_unpack.cpp decodes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lua_compat/libraries/libraries.hpp"
#include "lua_compat/libraries/msgpack_unpack.hpp"
#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

/// Tables deeper than this are written as nil.
constexpr int depth_max = 16;

/// Writes each value in its shortest form.
class Writer {
 public:
  explicit Writer(lua_State* state) : state_(state), result_(state) {}

  /// Writes the value at the absolute `index`, which is nested in `depth` tables.
  void write(int index, int depth) {
    charge(state_, 2);
    switch (lua_type(state_, index)) {
      case LUA_TSTRING:
        return write_text(text_at(state_, index));
      case LUA_TBOOLEAN:
        return byte(lua_toboolean(state_, index) != 0 ? 0xc3 : 0xc2);
      case LUA_TNUMBER:
        return write_number(lua_tonumber(state_, index));
      case LUA_TTABLE:
        if (depth == depth_max) break;
        luaL_checkstack(state_, 3, "in function mp_encode_lua_table");
        return write_table(index, depth);
      default:
        break;
    }
    byte(0xc0);
  }
  void push() { result_.push(); }

 private:
  void byte(unsigned value) { result_.add(static_cast<char>(value)); }
  /// Writes a type byte and the lower `bytes` bytes of a number, big-endian.
  void tagged(unsigned tag, std::uint64_t number, int bytes) {
    byte(tag);
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) byte(number >> shift & 0xff);
  }

  void write_text(std::string_view text) {
    const std::size_t size = text.size();
    if (size < 32) {
      byte(static_cast<unsigned>(0xa0 | size));
    } else if (size <= UINT8_MAX) {
      tagged(0xd9, size, 1);
    } else if (size <= UINT16_MAX) {
      tagged(0xda, size, 2);
    } else {
      tagged(0xdb, size, 4);
    }
    result_.add(text);
  }

  void write_number(double number) {
    if (!std::isinf(number) && static_cast<double>(to_integer(number)) == number) {
      return write_integer(to_integer(number));
    }
    const auto narrow = static_cast<float>(number);
    if (static_cast<double>(narrow) == number) {
      tagged(0xca, std::bit_cast<std::uint32_t>(narrow), 4);
    } else {
      tagged(0xcb, std::bit_cast<std::uint64_t>(number), 8);
    }
  }
  void write_integer(std::int64_t number) {
    const auto bits = static_cast<std::uint64_t>(number);
    if (number >= 0) {
      if (number < 128) return byte(static_cast<unsigned>(number));
      if (number <= UINT8_MAX) return tagged(0xcc, bits, 1);
      if (number <= UINT16_MAX) return tagged(0xcd, bits, 2);
      if (number <= UINT32_MAX) return tagged(0xce, bits, 4);
      return tagged(0xcf, bits, 8);
    }
    if (number >= -32) return byte(bits & 0xff);
    if (number >= INT8_MIN) return tagged(0xd0, bits, 1);
    if (number >= INT16_MIN) return tagged(0xd1, bits, 2);
    if (number >= INT32_MIN) return tagged(0xd2, bits, 4);
    return tagged(0xd3, bits, 8);
  }

  void write_count(std::size_t count, unsigned small_tag, unsigned tag) {
    if (count < 16) {
      byte(static_cast<unsigned>(small_tag | count));
    } else if (count <= UINT16_MAX) {
      tagged(tag, count, 2);
    } else {
      tagged(tag + 1, count, 4);
    }
  }

  /// The number of elements if the keys are 1..n; else the number of pairs.
  struct Shape {
    bool is_array;
    std::size_t count;
  };
  [[nodiscard]] Shape shape_of(int table) {
    Shape shape{true, 0};
    double largest = 0;
    lua_pushnil(state_);
    while (lua_next(state_, table) != 0) {
      charge(state_, 1);
      lua_pop(state_, 1);
      ++shape.count;
      if (!shape.is_array) continue;
      const double key = lua_type(state_, -1) == LUA_TNUMBER ? lua_tonumber(state_, -1) : 0;
      shape.is_array = key > 0 && key <= INT32_MAX && std::trunc(key) == key;
      largest = std::max(largest, key);
    }
    shape.is_array = shape.is_array && largest == static_cast<double>(shape.count);
    return shape;
  }

  void write_table(int table, int depth) {
    const Shape shape = shape_of(table);
    const int top = lua_gettop(state_);
    if (shape.is_array) {
      write_count(shape.count, 0x90, 0xdc);
      for (std::size_t i = 1; i <= shape.count; ++i) {
        lua_rawgeti(state_, table, static_cast<int>(i));
        write(top + 1, depth + 1);
        lua_pop(state_, 1);
      }
      return;
    }
    write_count(shape.count, 0x80, 0xde);
    lua_pushnil(state_);
    while (lua_next(state_, table) != 0) {
      // Convert a copy: lua_next needs the key unchanged.
      lua_pushvalue(state_, -2);
      write(top + 3, depth + 1);
      lua_pop(state_, 1);
      write(top + 2, depth + 1);
      lua_pop(state_, 1);
    }
  }

  lua_State* state_;
  Builder result_;
};

int msgpack_pack(lua_State* state) {
  const int count = lua_gettop(state);
  if (count == 0) return luaL_argerror(state, 0, "MessagePack pack needs input.");
  Writer writer{state};
  for (int i = 1; i <= count; ++i) writer.write(i, 0);
  writer.push();
  return 1;
}

void set_text(lua_State* state, const char* name, const char* text) {
  lua_pushstring(state, text);
  lua_setfield(state, -2, name);
}

}  // namespace

void open_msgpack_library(lua_State* state) {
  lua_createtable(state, 0, 8);
  set_function(state, "pack", msgpack_pack);
  set_function(state, "unpack", msgpack_unpack);
  set_function(state, "unpack_one", msgpack_unpack_one);
  set_function(state, "unpack_limit", msgpack_unpack_limit);
  // Fields that scripts see there.
  set_text(state, "_NAME", "cmsgpack");
  set_text(state, "_VERSION", "lua-cmsgpack 0.4.0");
  set_text(state, "_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo");
  set_text(state, "_DESCRIPTION", "MessagePack C implementation for Lua");
}

}  // namespace semel::lua
