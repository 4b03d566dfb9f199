#include "lua_compat/libraries/msgpack_unpack.hpp"

#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

/// Reads values without recursion on the C stack, so that nested input cannot exhaust it.
class Reader {
 public:
  Reader(lua_State* state, std::string_view input) : state_(state), rest_(input), open_(state) {}

  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }

  /// Pushes one value.
  void read() {
    begin_value();
    while (open_.size() != 0) {
      Level level = open_.top();
      if (level.left == 0) {
        open_.pop();
        lua_settop(state_, level.table);
        if (open_.size() != 0) store();
        continue;
      }
      begin_value();
    }
  }

 private:
  struct Level {
    std::uint64_t left;  ///< values that are missing; in maps, keys as well
    int table;           ///< stack index
    bool is_map;
  };

  [[noreturn]] void fail(const char* message) {
    luaL_error(state_, "%s", message);
    __builtin_unreachable();
  }
  [[nodiscard]] std::string_view take(std::size_t bytes) {
    if (rest_.size() < bytes) fail("Missing bytes in input.");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  [[nodiscard]] std::uint64_t take_number(std::size_t bytes) {
    std::uint64_t number = 0;
    for (const char byte : take(bytes)) number = number << 8 | static_cast<std::uint8_t>(byte);
    return number;
  }

  /// Pushes a value or opens a table. Stores a complete value in the enclosing table.
  void begin_value() {
    charge(state_, 2);
    const auto tag = static_cast<std::uint8_t>(take(1).front());
    if (read_table(tag)) return;
    if (!read_text(tag)) read_scalar(tag);
    if (open_.size() != 0) store();
  }

  [[nodiscard]] bool read_table(std::uint8_t tag) {
    if (tag >= 0x90 && tag < 0xa0) {
      open(tag & 15, false);
    } else if (tag >= 0x80 && tag < 0x90) {
      open(tag & 15, true);
    } else if (tag == 0xdc || tag == 0xdd) {
      open(take_number(tag == 0xdc ? 2 : 4), false);
    } else if (tag == 0xde || tag == 0xdf) {
      open(take_number(tag == 0xde ? 2 : 4), true);
    } else {
      return false;
    }
    return true;
  }
  void open(std::uint64_t count, bool is_map) {
    luaL_checkstack(
        state_, 3,
        is_map ? "in function mp_decode_to_lua_hash" : "in function mp_decode_to_lua_array");
    lua_newtable(state_);
    const int table = lua_gettop(state_);
    if (is_map) {
      open_.push({count * 2, table, true});
      return;
    }
    // An array has the index of its next element on the stack, where a map has its key.
    lua_pushinteger(state_, 0);
    open_.push({count, table, false});
  }

  [[nodiscard]] bool read_text(std::uint8_t tag) {
    std::size_t size = 0;
    if (tag >= 0xa0 && tag < 0xc0) {
      size = tag & 31;
    } else if (tag == 0xd9 || tag == 0xda || tag == 0xdb) {
      size = take_number(std::size_t{1} << (tag - 0xd9));
    } else {
      return false;
    }
    const std::string_view text = take(size);
    charge(state_, size / 16);
    lua_pushlstring(state_, text.data(), text.size());
    return true;
  }

  void read_scalar(std::uint8_t tag) {
    if (tag < 0x80) return lua_pushinteger(state_, tag);
    if (tag >= 0xe0) return lua_pushinteger(state_, static_cast<std::int8_t>(tag));
    switch (tag) {
      case 0xc0:
        return lua_pushnil(state_);
      case 0xc2:
        return lua_pushboolean(state_, 0);
      case 0xc3:
        return lua_pushboolean(state_, 1);
      case 0xca:
        return lua_pushnumber(state_,
                              std::bit_cast<float>(static_cast<std::uint32_t>(take_number(4))));
      case 0xcb:
        return lua_pushnumber(state_, std::bit_cast<double>(take_number(8)));
      case 0xcc:
        return push_integer(take_number(1));
      case 0xcd:
        return push_integer(take_number(2));
      case 0xce:
        return push_integer(take_number(4));
      // The largest values become negative, as in redis-server.
      case 0xcf:
      case 0xd3:
        return push_integer(take_number(8));
      case 0xd0:
        return lua_pushinteger(state_, static_cast<std::int8_t>(take_number(1)));
      case 0xd1:
        return lua_pushinteger(state_, static_cast<std::int16_t>(take_number(2)));
      case 0xd2:
        return lua_pushinteger(state_, static_cast<std::int32_t>(take_number(4)));
      default:
        fail("Bad data format in input.");
    }
  }
  void push_integer(std::uint64_t bits) {
    lua_pushnumber(state_, static_cast<double>(static_cast<std::int64_t>(bits)));
  }

  /// Handles a complete value on top: stores it in the open table, or leaves it if it is a key.
  void store() {
    Level level = open_.top();
    SEMEL_ASSERT(level.left > 0 && lua_istable(state_, level.table));
    --level.left;
    open_.set_top(level);
    if (!level.is_map) {
      const auto index = static_cast<int>(lua_tointeger(state_, -2)) + 1;
      lua_rawseti(state_, level.table, index);
      lua_pop(state_, 1);
      lua_pushinteger(state_, index);
      return;
    }
    if (level.left % 2 != 0) return;
    if (lua_isnil(state_, -2)) raise(state_, "table index is nil");
    if (lua_type(state_, -2) == LUA_TNUMBER && std::isnan(lua_tonumber(state_, -2))) {
      raise(state_, "table index is NaN");
    }
    lua_rawset(state_, level.table);
  }

  lua_State* state_;
  std::string_view rest_;
  Pile<Level> open_;
};

/// Reads `limit` values from `offset` on. Both 0: reads all, and returns no offset.
int unpack(lua_State* state, std::int64_t limit, std::int64_t offset) {
  const std::string_view input = text_argument(state, 1);
  const auto size = static_cast<std::int64_t>(input.size());
  if (offset < 0 || limit < 0) {
    return luaL_error(state, "Invalid request to unpack with offset of %d and limit of %d.",
                      static_cast<int>(offset), static_cast<int>(size));
  }
  if (offset > size) {
    return luaL_error(state, "Start offset %d greater than input length %d.",
                      static_cast<int>(offset), static_cast<int>(size));
  }
  const bool is_all = limit == 0 && offset == 0;
  if (is_all) limit = INT_MAX;
  lua_settop(state, 1);
  Reader reader{state, input.substr(static_cast<std::size_t>(offset))};
  int results = 0;
  if (!is_all) {
    lua_pushnil(state);
    ++results;
  }
  const int first = lua_gettop(state);
  for (std::int64_t i = 0; i < limit && reader.left() > 0; ++i) {
    luaL_checkstack(state, 1,
                    "too many return values at once; use unpack_one or unpack_limit instead.");
    reader.read();
    ++results;
  }
  if (!is_all) {
    const std::size_t left = reader.left();
    lua_pushinteger(state, left == 0 ? -1 : static_cast<lua_Integer>(input.size() - left));
    lua_replace(state, first);
  }
  return results;
}

}  // namespace

int msgpack_unpack(lua_State* state) {
  return unpack(state, 0, 0);
}
int msgpack_unpack_one(lua_State* state) {
  return unpack(state, 1, integer_argument_or(state, 2, 0));
}
int msgpack_unpack_limit(lua_State* state) {
  const std::int64_t limit = integer_argument(state, 2);
  return unpack(state, limit, integer_argument_or(state, 3, 0));
}

}  // namespace semel::lua
