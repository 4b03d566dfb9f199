#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "lua_compat/libraries/json_config.hpp"
#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

constexpr std::size_t number_bytes = 32;

/// The letter behind the backslash; u: written as a code; 0: written as it is.
constexpr std::array<char, 256> escapes_of_bytes() noexcept {
  std::array<char, 256> escapes{};
  for (std::size_t i = 0; i < ' '; ++i) escapes[i] = 'u';
  escapes[127] = 'u';
  escapes['\b'] = 'b';
  escapes['\t'] = 't';
  escapes['\n'] = 'n';
  escapes['\f'] = 'f';
  escapes['\r'] = 'r';
  escapes['"'] = '"';
  escapes['/'] = '/';
  escapes['\\'] = '\\';
  return escapes;
}
constexpr std::array<char, 256> escapes = escapes_of_bytes();

/// Writes one value without recursion on the C stack.
class Encoder {
 public:
  Encoder(lua_State* state, const JsonConfig& config)
      : state_(state), config_(config), open_(state), result_(state) {}

  /// Replaces the value on top of the stack by its text.
  void encode() {
    write_value();
    while (open_.size() != 0) {
      Level level = open_.top();
      if (level.length > 0 ? next_element(level) : next_pair(level)) {
        write_value();
      } else {
        result_.add(level.length > 0 ? ']' : '}');
        open_.pop();
        lua_pop(state_, 1);
      }
    }
    result_.push();
  }

 private:
  struct Level {
    int length;  ///< of an array; 0: an object
    int done;
  };

  /// Writes the value on top of the stack and pops it; a table stays and is opened.
  void write_value() {
    charge(state_, 2);
    switch (lua_type(state_, -1)) {
      case LUA_TSTRING:
        write_text();
        break;
      case LUA_TNUMBER:
        write_number(-1);
        break;
      case LUA_TBOOLEAN:
        result_.add(lua_toboolean(state_, -1) != 0 ? "true" : "false");
        break;
      case LUA_TNIL:
        result_.add("null");
        break;
      case LUA_TTABLE:
        return open_table();
      case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(state_, -1) == nullptr) {
          result_.add("null");
          break;
        }
        [[fallthrough]];
      default:
        refuse(-1, "type not supported");
    }
    lua_pop(state_, 1);
  }

  void refuse(int index, const char* reason) {
    luaL_error(state_, "Cannot serialise %s: %s", luaL_typename(state_, index), reason);
  }

  void write_text() {
    const std::string_view text = text_at(state_, lua_gettop(state_));
    charge(state_, text.size() / 2);
    result_.add('"');
    std::size_t written = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(text[i]);
      const char escape = escapes[byte];
      if (escape == '\0') continue;
      result_.add(text.substr(written, i - written));
      written = i + 1;
      result_.add('\\');
      result_.add(escape);
      if (escape != 'u') continue;
      constexpr std::string_view digits = "0123456789abcdef";
      result_.add("00");
      result_.add(digits[byte >> 4]);
      result_.add(digits[byte & 15]);
    }
    result_.add(text.substr(written));
    result_.add('"');
  }

  void write_number(int index) {
    const double number = lua_tonumber(state_, index);
    if (!std::isfinite(number)) {
      if (config_.encode_invalid == JsonConfig::refused) {
        refuse(index, "must not be NaN or Inf");
      }
      if (config_.encode_invalid == JsonConfig::as_null) return result_.add("null");
      if (std::isnan(number)) return result_.add("nan");
    }
    char* const to = result_.room(number_bytes);
    const int bytes = std::snprintf(to, number_bytes, "%.*g", config_.precision, number);
    result_.used(static_cast<std::size_t>(bytes));
  }

  void open_table() {
    const int depth = static_cast<int>(open_.size()) + 1;
    if (depth > config_.encode_depth_max || lua_checkstack(state_, 8) == 0) {
      luaL_error(state_, "Cannot serialise, excessive nesting (%d)", depth);
    }
    const int length = array_length();
    result_.add(length > 0 ? '[' : '{');
    if (length <= 0) lua_pushnil(state_);
    open_.push({std::max(length, 0), 0});
  }

  /// The length of the array on top of the stack; 0 or less: it is an object.
  [[nodiscard]] int array_length() {
    int largest = 0;
    std::int64_t count = 0;
    lua_pushnil(state_);
    while (lua_next(state_, -2) != 0) {
      charge(state_, 1);
      lua_pop(state_, 1);
      const double key = lua_type(state_, -1) == LUA_TNUMBER ? lua_tonumber(state_, -1) : 0;
      if (!(key >= 1) || std::floor(key) != key) {
        lua_pop(state_, 1);
        return 0;
      }
      // There, a number that does not fit an int becomes the smallest int.
      const int index = key <= INT32_MAX ? static_cast<int>(key) : INT32_MIN;
      if (key > largest) largest = index;
      ++count;
    }
    if (config_.sparse_ratio > 0 && largest > config_.sparse_safe &&
        largest > static_cast<std::int32_t>(count * config_.sparse_ratio)) {
      if (!config_.converts_sparse) refuse(-1, "excessively sparse array");
      return 0;
    }
    return largest;
  }

  [[nodiscard]] bool next_element(Level level) {
    if (level.done == level.length) return false;
    if (level.done++ > 0) result_.add(',');
    open_.set_top(level);
    lua_rawgeti(state_, -1, level.done);
    return true;
  }

  [[nodiscard]] bool next_pair(Level level) {
    if (lua_next(state_, -2) == 0) return false;
    if (level.done == 0) {
      level.done = 1;
      open_.set_top(level);
    } else {
      result_.add(',');
    }
    const int type = lua_type(state_, -2);
    if (type == LUA_TNUMBER) {
      result_.add('"');
      write_number(-2);
      result_.add('"');
    } else if (type == LUA_TSTRING) {
      lua_pushvalue(state_, -2);
      write_text();
      lua_pop(state_, 1);
    } else {
      refuse(-2, "table key must be a number or string");
    }
    result_.add(':');
    return true;
  }

  lua_State* state_;
  const JsonConfig& config_;
  Pile<Level> open_;
  Builder result_;
};

}  // namespace

int json_encode(lua_State* state) {
  luaL_argcheck(state, lua_gettop(state) == 1, 1, "expected 1 argument");
  Encoder encoder{state, json_config(state)};
  lua_pushvalue(state, 1);
  encoder.encode();
  return 1;
}

}  // namespace semel::lua
