// The library `struct`: packs values as C types.
#include <algorithm>
#include <bit>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/ascii.hpp"
#include "lua_compat/libraries/libraries.hpp"
#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int integer_bytes_max = 32;

/// A format, read item by item.
class Format {
 public:
  Format(lua_State* state, std::string_view text)
      : state_(state), rest_(text.substr(0, text.find('\0'))) {}

  /// Reads the next item and its `size`, which is 0 for items without one.
  [[nodiscard]] bool next() {
    if (rest_.empty()) return false;
    charge(state_, 2);
    letter = rest_.front();
    rest_.remove_prefix(1);
    switch (letter) {
      case 'b':
      case 'B':
      case 'x':
        size = 1;
        break;
      case 'h':
      case 'H':
        size = 2;
        break;
      case 'f':
        size = 4;
        break;
      case 'l':
      case 'L':
      case 'T':
      case 'd':
        size = 8;
        break;
      case 'c':
        size = static_cast<std::size_t>(number_or(1));
        break;
      case 'i':
      case 'I': {
        const int bytes = number_or(4);
        if (bytes > integer_bytes_max) {
          luaL_error(state_, "integral size %d is larger than limit of %d", bytes,
                     integer_bytes_max);
        }
        size = static_cast<std::size_t>(bytes);
        break;
      }
      default:
        size = 0;
    }
    return true;
  }

  /// The padding in front of an item at `place`.
  [[nodiscard]] std::size_t padding(std::size_t place) const noexcept {
    if (size == 0 || letter == 'c') return 0;
    const std::size_t unit = std::min(size, alignment_);
    return (unit - (place & (unit - 1))) & (unit - 1);
  }

  /// Applies an option that changes the items behind it.
  void control() {
    switch (letter) {
      case ' ':
        return;
      case '>':
        is_big = true;
        return;
      case '<':
        is_big = false;
        return;
      case '!': {
        const int bytes = number_or(8);
        if (bytes <= 0 || (bytes & (bytes - 1)) != 0) {
          luaL_error(state_, "alignment %d is not a power of 2", bytes);
        }
        alignment_ = static_cast<std::size_t>(bytes);
        return;
      }
      default: {
        const char shown[] = {letter, '\0'};
        luaL_argerror(state_, 1, lua_pushfstring(state_, "invalid format option '%s'", shown));
      }
    }
  }

  char letter = '\0';
  std::size_t size = 0;
  bool is_big = false;

 private:
  [[nodiscard]] int number_or(int otherwise) {
    if (rest_.empty() || !base::is_digit(rest_.front())) return otherwise;
    int number = 0;
    while (!rest_.empty() && base::is_digit(rest_.front())) {
      const int digit = rest_.front() - '0';
      if (number > (INT_MAX - digit) / 10) luaL_error(state_, "integral size overflow");
      number = number * 10 + digit;
      rest_.remove_prefix(1);
    }
    return number;
  }

  lua_State* state_;
  std::string_view rest_;
  std::size_t alignment_ = 1;
};

void add_bytes(Builder& result, char* bytes, std::size_t size, bool is_big) {
  if (is_big) std::reverse(bytes, bytes + size);
  result.add({bytes, size});
}

void add_integer(lua_State* state, int index, const Format& format, Builder& result) {
  const double number = luaL_checknumber(state, index);
  const std::uint64_t bits =
      number < 0 ? static_cast<std::uint64_t>(to_integer(number)) : to_unsigned(number);
  char bytes[integer_bytes_max] = {};
  std::memcpy(bytes, &bits, sizeof(bits));
  add_bytes(result, bytes, format.size, format.is_big);
}

template <typename Float>
void add_float(lua_State* state, int index, const Format& format, Builder& result) {
  const auto number = static_cast<Float>(luaL_checknumber(state, index));
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  add_bytes(result, bytes, sizeof(number), format.is_big);
}

void add_text(lua_State* state, int index, const Format& format, Builder& result) {
  const std::string_view text = text_argument(state, index);
  const std::size_t size = format.size == 0 ? text.size() : format.size;
  luaL_argcheck(state, text.size() >= size, index + 1, "string too short");
  result.add(text.substr(0, size));
  if (format.letter == 's') result.add('\0');
}

int struct_pack(lua_State* state) {
  Format format{state, text_argument(state, 1)};
  const int last = lua_gettop(state);
  Builder result{state};
  int index = 2;
  while (format.next()) {
    for (std::size_t i = format.padding(result.size()); i > 0; --i) result.add('\0');
    // The first missing value reads as nil.
    const int value = std::min(index, last + 1);
    switch (format.letter) {
      case 'x':
        result.add('\0');
        continue;
      case 'f':
        add_float<float>(state, value, format, result);
        break;
      case 'd':
        add_float<double>(state, value, format, result);
        break;
      case 'c':
      case 's':
        add_text(state, value, format, result);
        break;
      case 'b':
      case 'B':
      case 'h':
      case 'H':
      case 'l':
      case 'L':
      case 'T':
      case 'i':
      case 'I':
        add_integer(state, value, format, result);
        break;
      default:
        format.control();
        continue;
    }
    ++index;
  }
  result.push();
  return 1;
}

int struct_size(lua_State* state) {
  Format format{state, text_argument(state, 1)};
  std::size_t bytes = 0;
  while (format.next()) {
    bytes += format.padding(bytes);
    if (format.letter == 's') luaL_argerror(state, 1, "option 's' has no fixed size");
    if (format.letter == 'c' && format.size == 0) {
      luaL_argerror(state, 1, "option 'c0' has no fixed size");
    }
    if (!base::is_letter(format.letter) && !base::is_digit(format.letter)) format.control();
    bytes += format.size;
  }
  lua_pushinteger(state, static_cast<lua_Integer>(bytes));
  return 1;
}

double read_integer(const char* from, const Format& format) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < format.size; ++i) {
    const char byte = from[format.is_big ? i : format.size - 1 - i];
    bits = bits << 8 | static_cast<std::uint8_t>(byte);
  }
  const bool is_signed = format.letter >= 'a';
  if (!is_signed) return static_cast<double>(bits);
  // Sizes beyond 8 wrap, as shifts do on x86-64.
  const std::uint64_t sign = ~std::uint64_t{0} << ((format.size * 8 - 1) & 63);
  if ((bits & sign) != 0) bits |= sign;
  return static_cast<double>(static_cast<std::int64_t>(bits));
}

template <typename Float>
double read_float(const char* from, const Format& format) {
  char bytes[sizeof(Float)];
  std::memcpy(bytes, from, sizeof(Float));
  if (format.is_big) std::reverse(bytes, bytes + sizeof(Float));
  Float number;
  std::memcpy(&number, bytes, sizeof(Float));
  return number;
}

/// The input of struct.unpack and the offset in it.
struct Reading {
  lua_State* state;
  std::string_view data;
  std::size_t place;
  int results = 0;

  void need(std::size_t bytes) const {
    luaL_argcheck(state, bytes <= data.size() && place <= data.size() - bytes, 2,
                  "data string too short");
  }
  [[nodiscard]] const char* here() const noexcept { return data.data() + place; }

  void push_text(Format& format) {
    if (format.size == 0) {
      if (results == 0 || lua_isnumber(state, -1) == 0) {
        luaL_error(state, "format 'c0' needs a previous size");
      }
      format.size = static_cast<std::size_t>(to_unsigned(lua_tonumber(state, -1)));
      lua_pop(state, 1);
      --results;
      need(format.size);
    }
    lua_pushlstring(state, here(), format.size);
    ++results;
  }
  void push_terminated(Format& format) {
    const std::size_t size = data.substr(place).find('\0');
    if (size == std::string_view::npos) luaL_error(state, "unfinished string in data");
    lua_pushlstring(state, here(), size);
    format.size = size + 1;
    ++results;
  }
  void push_number(double number) {
    // A NaN may have any bits, and LuaJIT uses some of them for other types; lua_pushnumber() makes
    // it canonical.
    lua_pushnumber(state, number);
    ++results;
  }
  void read_item(Format& format) {
    place += format.padding(place);
    need(format.size);
    luaL_checkstack(state, 3, "too many results");
    switch (format.letter) {
      case 'x':
        break;
      case 'f':
        push_number(read_float<float>(here(), format));
        break;
      case 'd':
        push_number(read_float<double>(here(), format));
        break;
      case 'c':
        push_text(format);
        break;
      case 's':
        push_terminated(format);
        break;
      case 'b':
      case 'B':
      case 'h':
      case 'H':
      case 'l':
      case 'L':
      case 'T':
      case 'i':
      case 'I':
        push_number(read_integer(here(), format));
        break;
      default:
        format.control();
    }
    charge(state, format.size / 16);
    place += format.size;
  }
};

int struct_unpack(lua_State* state) {
  Format format{state, text_argument(state, 1)};
  Reading reading{state, text_argument(state, 2), 0};
  const std::int64_t from = integer_argument_or(state, 3, 1);
  luaL_argcheck(state, from != 0, 3, "offset must be 1 or greater");
  lua_settop(state, 2);
  // A negative offset lies far behind the end, where only items without bytes can be read.
  reading.place = static_cast<std::size_t>(from) - 1;
  while (format.next()) reading.read_item(format);
  lua_pushinteger(state, static_cast<lua_Integer>(reading.place + 1));
  return reading.results + 1;
}

}  // namespace

void open_struct_library(lua_State* state) {
  lua_createtable(state, 0, 3);
  set_function(state, "pack", struct_pack);
  set_function(state, "unpack", struct_unpack);
  set_function(state, "size", struct_size);
}

}  // namespace semel::lua
