#include "lua_compat/runtime/lua_to_reply.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "base/assert.hpp"

namespace semel::lua {
namespace {

// Stands where the table would, as in redis-server; the reply around it stays.
constexpr const char* too_deep = "ERR reached lua stack limit";
constexpr const char* too_large = "ERR the reply of the script is too large";

struct Writer {
  lua_State* state;
  Run& run;
  net::RespWriter out;
  std::size_t begin;
  std::size_t depth = 0;
};

// All of these pop the value on top of the stack. False: a limit was exceeded, and the stack may be
// higher than before.
bool write(Writer& writer);

std::string_view text_on_top(lua_State* state) {
  std::size_t bytes = 0;
  const char* const text = lua_tolstring(state, -1, &bytes);
  return {text, bytes};
}

/// Truncated towards zero; a number that does not fit becomes the smallest integer, as in
/// redis-server on x86-64.
std::int64_t integer_of(double number) noexcept {
  constexpr double bound = 9223372036854775808.0;
  if (!(number > -bound && number < bound)) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(number);
}

/// redis-server reads the text of a status or an error as a C string.
std::string_view until_zero(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

/// Replaces line ends, which would end a line of the protocol. Calls no function of Lua, so it may
/// return an object with a destructor.
std::string one_line(std::string_view text) {
  std::string line{text};
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return line;
}

void write_big_number(Writer& writer, std::string_view text) {
  if (writer.out.dialect() == net::Resp::two) {
    writer.out.bulk(one_line(text));
    return;
  }
  writer.out.prepared("(");
  writer.out.prepared(one_line(text));
  writer.out.prepared("\r\n");
}

/// Pushes the field of the table on top if it has the type. False: nothing is pushed.
bool field(const Writer& writer, Word word, int type) {
  push_word(writer.state, writer.run, word);
  lua_rawget(writer.state, -2);
  if (lua_type(writer.state, -1) == type) return true;
  lua_pop(writer.state, 1);
  return false;
}

bool write_verbatim(Writer& writer) {
  if (!field(writer, Word::format, LUA_TSTRING)) return false;
  const std::string_view format = text_on_top(writer.state);
  lua_insert(writer.state, -2);
  if (!field(writer, Word::string, LUA_TSTRING)) {
    lua_insert(writer.state, -2);
    lua_pop(writer.state, 1);
    return false;
  }
  std::array<char, 3> letters{' ', ' ', ' '};
  for (std::size_t at = 0; at < std::min(format.size(), letters.size()); ++at)
    letters[at] = format[at] == '\r' || format[at] == '\n' ? ' ' : format[at];
  writer.out.verbatim(text_on_top(writer.state), {letters.data(), letters.size()});
  lua_pop(writer.state, 2);  // the caller pops the table itself
  return true;
}

/// Writes the table on top as a map or a set, and pops it.
bool write_pairs(Writer& writer, bool is_map) {
  std::size_t count = 0;
  for (lua_pushnil(writer.state); lua_next(writer.state, -2) != 0; lua_pop(writer.state, 1))
    ++count;
  charge(writer.state, 2 * count);
  if (is_map)
    writer.out.map(count);
  else
    writer.out.set(count);
  for (lua_pushnil(writer.state); lua_next(writer.state, -2) != 0;) {
    if (!is_map) lua_pop(writer.state, 1);
    lua_pushvalue(writer.state, is_map ? -2 : -1);
    if (!write(writer)) return false;
    if (is_map && !write(writer)) return false;
  }
  lua_pop(writer.state, 1);
  return true;
}

bool write_array(Writer& writer) {
  // The array ends at the first nil; lua_objlen may find another border.
  int count = 0;
  for (;; ++count) {
    lua_rawgeti(writer.state, -1, count + 1);
    const bool is_end = lua_isnil(writer.state, -1);
    lua_pop(writer.state, 1);
    if (is_end) break;
  }
  charge(writer.state, static_cast<std::uint64_t>(count));
  writer.out.array(static_cast<std::size_t>(count));
  for (int index = 1; index <= count; ++index) {
    lua_rawgeti(writer.state, -1, index);
    if (!write(writer)) return false;
  }
  lua_pop(writer.state, 1);
  return true;
}

enum class Special : std::uint8_t { no, written, failed };

/// Writes a table that has a field for its form, such as `err` or `map`. The table stays on the
/// stack unless this failed.
Special write_special(Writer& writer) {
  lua_State* const state = writer.state;
  if (field(writer, Word::err, LUA_TSTRING)) {
    writer.out.error(until_zero(text_on_top(state)));
  } else if (field(writer, Word::ok, LUA_TSTRING)) {
    writer.out.simple(one_line(until_zero(text_on_top(state))));
  } else if (field(writer, Word::double_, LUA_TNUMBER)) {
    writer.out.number(lua_tonumber(state, -1));
  } else if (field(writer, Word::map, LUA_TTABLE)) {
    return write_pairs(writer, true) ? Special::written : Special::failed;
  } else if (field(writer, Word::set, LUA_TTABLE)) {
    return write_pairs(writer, false) ? Special::written : Special::failed;
  } else if (field(writer, Word::big_number, LUA_TSTRING)) {
    write_big_number(writer, text_on_top(state));
  } else if (field(writer, Word::verbatim_string, LUA_TTABLE)) {
    const bool written = write_verbatim(writer);
    lua_pop(state, 1);
    return written ? Special::written : Special::no;
  } else {
    return Special::no;
  }
  lua_pop(state, 1);
  return Special::written;
}

bool write_table(Writer& writer) {
  if (writer.depth >= writer.run.reply_depth_max || lua_checkstack(writer.state, 8) == 0) {
    writer.out.error(too_deep);
    lua_pop(writer.state, 1);
    return true;
  }
  ++writer.depth;
  switch (write_special(writer)) {
    case Special::failed:
      return false;
    case Special::written:
      lua_pop(writer.state, 1);
      break;
    case Special::no:
      if (!write_array(writer)) return false;
  }
  SEMEL_ASSERT(writer.depth > 0);
  --writer.depth;
  return true;
}

void write_boolean(Writer& writer, bool value) {
  if (writer.run.dialect == net::Resp::three)
    writer.out.boolean(value);
  else if (value)
    writer.out.integer(1);
  else
    writer.out.null();
}

bool is_within_bounds(Writer& writer) {
  if (writer.out.size() - writer.begin <= writer.run.reply_bytes_max) return true;
  writer.run.failure = too_large;
  return false;
}

bool write(Writer& writer) {
  lua_State* const state = writer.state;
  [[maybe_unused]] const int top = lua_gettop(state);
  SEMEL_ASSERT(top > 0);
  switch (lua_type(state, -1)) {
    case LUA_TTABLE: {
      if (!write_table(writer)) return false;
      SEMEL_ASSERT(lua_gettop(state) == top - 1);
      return is_within_bounds(writer);
    }
    case LUA_TSTRING:
      writer.out.bulk(text_on_top(state));
      break;
    case LUA_TNUMBER:
      writer.out.integer(integer_of(lua_tonumber(state, -1)));
      break;
    case LUA_TBOOLEAN:
      write_boolean(writer, lua_toboolean(state, -1) != 0);
      break;
    default:
      writer.out.null();
  }
  lua_pop(state, 1);
  return is_within_bounds(writer);
}

}  // namespace

void write_value(lua_State* state, Run& run) {
  SEMEL_ASSERT(run.reply != nullptr && run.invocation != nullptr);
  const std::size_t begin = run.reply->size();
  Writer writer{.state = state,
                .run = run,
                .out = net::RespWriter{*run.reply, run.invocation->dialect},
                .begin = begin};
  if (!write(writer)) run.reply->resize(begin);
}

}  // namespace semel::lua
