#include "lua_compat/runtime/reply_to_lua.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/assert.hpp"
#include "lua_compat/runtime/script_error.hpp"

namespace semel::lua {
namespace {

struct Reader {
  lua_State* state;
  const Run& run;
  std::string_view rest;
  std::size_t depth = 0;
};

constexpr std::uint64_t bytes_a_step = 32;

/// Takes the line behind the marker; false: it has no end.
bool take_line(Reader& reader, std::string_view& line) {
  const std::size_t end = reader.rest.find("\r\n");
  if (end == std::string_view::npos) return false;
  line = reader.rest.substr(0, end);
  reader.rest.remove_prefix(end + 2);
  return true;
}

bool number_of(std::string_view line, std::int64_t& number) {
  const auto result = std::from_chars(line.data(), line.data() + line.size(), number);
  return result.ec == std::errc{} && result.ptr == line.data() + line.size();
}

double double_of(std::string_view line) {
  if (line == "inf" || line == "+inf") return std::numeric_limits<double>::infinity();
  if (line == "-inf") return -std::numeric_limits<double>::infinity();
  double number = std::numeric_limits<double>::quiet_NaN();
  std::from_chars(line.data(), line.data() + line.size(), number);
  return number;
}

bool take_bytes(Reader& reader, std::string_view line, std::string_view& bytes) {
  std::int64_t count = 0;
  if (!number_of(line, count) || count < 0) return false;
  const auto size = static_cast<std::size_t>(count);
  if (reader.rest.size() < size + 2) return false;
  bytes = reader.rest.substr(0, size);
  reader.rest.remove_prefix(size + 2);
  return true;
}

void push(const Reader& reader, std::string_view text) {
  lua_pushlstring(reader.state, text.data(), text.size());
}

/// Pushes a table with one field `word`, whose value is pushed by `value`.
template <typename Value>
void push_single(const Reader& reader, Word word, Value&& value) {
  lua_createtable(reader.state, 0, 1);
  push_word(reader.state, reader.run, word);
  value();
  lua_rawset(reader.state, -3);
}

bool take(Reader& reader);

bool take_array(Reader& reader, std::int64_t count) {
  lua_createtable(reader.state, static_cast<int>(count), 0);
  for (int index = 1; index <= count; ++index) {
    if (!take(reader)) return false;
    lua_rawseti(reader.state, -2, index);
  }
  return true;
}

bool take_pairs(Reader& reader, std::int64_t count, bool is_set) {
  lua_createtable(reader.state, 0, 1);
  push_word(reader.state, reader.run, is_set ? Word::set : Word::map);
  lua_createtable(reader.state, 0, static_cast<int>(count));
  for (std::int64_t index = 0; index < count; ++index) {
    if (!take(reader)) return false;
    if (is_set)
      lua_pushboolean(reader.state, 1);
    else if (!take(reader))
      return false;
    // Neither nil nor NaN can be the key of a table.
    const bool is_key =
        !lua_isnil(reader.state, -2) &&
        (lua_type(reader.state, -2) != LUA_TNUMBER || !std::isnan(lua_tonumber(reader.state, -2)));
    if (is_key)
      lua_rawset(reader.state, -3);
    else
      lua_pop(reader.state, 2);
  }
  lua_rawset(reader.state, -3);
  return true;
}

bool take_verbatim(Reader& reader, std::string_view line) {
  std::string_view bytes;
  if (!take_bytes(reader, line, bytes) || bytes.size() < 4) return false;
  push_single(reader, Word::verbatim_string, [&] {
    lua_createtable(reader.state, 0, 2);
    push_word(reader.state, reader.run, Word::format);
    push(reader, bytes.substr(0, 3));
    lua_rawset(reader.state, -3);
    push_word(reader.state, reader.run, Word::string);
    push(reader, bytes.substr(4));
    lua_rawset(reader.state, -3);
  });
  return true;
}

bool take_many(Reader& reader, char mark, std::string_view line) {
  std::int64_t count = 0;
  if (!number_of(line, count)) return false;
  if (count < 0) {
    lua_pushboolean(reader.state, 0);
    return true;
  }
  // Each element has at least one byte, so the input limits the size of the new table.
  if (static_cast<std::size_t>(count) > reader.rest.size()) return false;
  if (++reader.depth > reader.run.reply_depth_max) return false;
  luaL_checkstack(reader.state, 12, "reply");
  charge(reader.state, static_cast<std::uint64_t>(count));
  const bool taken = mark == '*' || mark == '>' ? take_array(reader, count)
                                                : take_pairs(reader, count, mark == '~');
  --reader.depth;
  return taken;
}

/// Scripts see nothing of an attribute, as in redis-server: what it is about follows it.
bool take_attribute(Reader& reader, std::string_view line) {
  std::int64_t count = 0;
  if (!number_of(line, count) || count < 0) return false;
  if (!take_many(reader, '%', line)) return false;
  lua_pop(reader.state, 1);
  return take(reader);
}

bool take_bulk(Reader& reader, std::string_view line) {
  std::string_view bytes;
  if (line.front() == '-') {
    lua_pushboolean(reader.state, 0);
    return true;
  }
  if (!take_bytes(reader, line, bytes)) return false;
  push(reader, bytes);
  return true;
}

bool take(Reader& reader) {
  std::string_view line;
  if (reader.rest.empty()) return false;
  const char mark = reader.rest.front();
  reader.rest.remove_prefix(1);
  if (!take_line(reader, line)) return false;
  if (line.empty() && mark != '_' && mark != '+' && mark != '-') return false;
  std::int64_t number = 0;
  switch (mark) {
    case '+':
      push_single(reader, Word::ok, [&] { push(reader, line); });
      return true;
    case '-':
      push_error_reply(reader.state, line);
      return true;
    case ':':
      if (!number_of(line, number)) return false;
      lua_pushnumber(reader.state, static_cast<double>(number));
      return true;
    case '$':
      return take_bulk(reader, line);
    case '*':
    case '>':
    case '%':
    case '~':
      return take_many(reader, mark, line);
    case '|':
      return take_attribute(reader, line);
    case '_':
      lua_pushnil(reader.state);
      return true;
    case '#':
      lua_pushboolean(reader.state, line == "t" ? 1 : 0);
      return true;
    case ',':
      push_single(reader, Word::double_, [&] { lua_pushnumber(reader.state, double_of(line)); });
      return true;
    case '(':
      push_single(reader, Word::big_number, [&] { push(reader, line); });
      return true;
    case '=':
      return take_verbatim(reader, line);
    default:
      return false;
  }
}

}  // namespace

bool push_reply(lua_State* state, std::string_view bytes) {
  Reader reader{.state = state, .run = run_of(state), .rest = bytes};
  const int top = lua_gettop(state);
  charge(state, bytes.size() / bytes_a_step);
  if (take(reader) && reader.rest.empty()) {
    SEMEL_ASSERT(lua_gettop(state) == top + 1 && reader.depth == 0);
    return bytes.front() == '-';
  }
  lua_settop(state, top);
  push_error(state, "The reply of a command cannot be converted for a script");
  SEMEL_ASSERT(lua_gettop(state) == top + 1);
  return true;
}

}  // namespace semel::lua
