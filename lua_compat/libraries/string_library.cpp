// The functions of `string` that an instruction hook cannot limit: patterns and repetition.
#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "lua_compat/libraries/libraries.hpp"
#include "lua_compat/libraries/lua_pattern.hpp"
#include "lua_compat/libraries/string_format.hpp"
#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

constexpr std::size_t bytes_a_step = 16;

/// The offset at which a search begins.
std::size_t beginning(lua_State* state, std::size_t size) {
  std::int64_t from = integer_argument_or(state, 3, 1);
  const auto all = static_cast<std::int64_t>(size);
  if (from < 0) from += all + 1;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(from - (from > 0 ? 1 : 0), 0, all));
}

bool is_plain(std::string_view pattern) noexcept {
  return pattern.substr(0, pattern.find('\0')).find_first_of("^$*+?.([%-") ==
         std::string_view::npos;
}

int find_plain(lua_State* state, std::string_view subject, std::string_view text,
               std::size_t from) {
  charge(state, 1 + (subject.size() - from) / 4);
  const char* const begin = subject.data() + from;
  // memmem needs linear time; std::string_view::find may need quadratic time.
  const void* const found =
      text.empty() ? begin : memmem(begin, subject.size() - from, text.data(), text.size());
  if (found == nullptr) {
    lua_pushnil(state);
    return 1;
  }
  const auto at = static_cast<const char*>(found) - subject.data();
  lua_pushinteger(state, at + 1);
  lua_pushinteger(state, at + static_cast<std::ptrdiff_t>(text.size()));
  return 2;
}

/// Memory for the items of a pattern of usual length, on the stack. Used only by functions that
/// call nothing back.
struct PatternMemory {
  static constexpr std::size_t small_bytes = 1536;
  alignas(PatternItem) std::byte small[small_bytes];

  void* of(lua_State* state, std::string_view pattern) {
    const std::size_t bytes = Matcher::memory_bytes(pattern);
    return bytes <= sizeof(small) ? small : lua_newuserdata(state, bytes);
  }
};

int find_or_match(lua_State* state, bool is_find) {
  const std::string_view subject = text_argument(state, 1);
  std::string_view pattern = text_argument(state, 2);
  const std::size_t from = beginning(state, subject.size());
  if (is_find && (lua_toboolean(state, 4) != 0 || is_plain(pattern))) {
    return find_plain(state, subject, pattern, from);
  }
  const bool is_anchored = pattern.starts_with('^');
  if (is_anchored) pattern.remove_prefix(1);
  PatternMemory memory;
  Matcher matcher;
  matcher.prepare(state, subject, pattern, memory.of(state, pattern));
  const char* begin = subject.data() + from;
  const char* const end = is_anchored ? matcher.match(begin) : matcher.search(begin);
  matcher.pay();
  if (end == nullptr) {
    lua_pushnil(state);
    return 1;
  }
  if (!is_find) {
    matcher.push_captures(begin, end);
    return matcher.values();
  }
  lua_pushinteger(state, begin - subject.data() + 1);
  lua_pushinteger(state, end - subject.data());
  if (!matcher.has_captures()) return 2;
  matcher.push_captures(begin, end);
  return matcher.values() + 2;
}

int string_find(lua_State* state) {
  return find_or_match(state, true);
}
int string_match(lua_State* state) {
  return find_or_match(state, false);
}

/// A userdata: the matcher, followed by its items.
struct KeptMatcher {
  Matcher matcher;
  const char* next;  ///< where the next search begins; null: at the end

  static KeptMatcher& make(lua_State* state, std::string_view subject, std::string_view pattern) {
    void* const memory =
        lua_newuserdata(state, sizeof(KeptMatcher) + Matcher::memory_bytes(pattern));
    KeptMatcher& kept = *new (memory) KeptMatcher{};
    kept.next = subject.data();
    kept.matcher.prepare(state, subject, pattern, &kept + 1);
    return kept;
  }
};
static_assert(alignof(PatternItem) <= alignof(KeptMatcher));

int next_match(lua_State* state) {
  KeptMatcher& kept = *static_cast<KeptMatcher*>(lua_touserdata(state, lua_upvalueindex(3)));
  if (kept.next == nullptr) return 0;
  kept.matcher.set_state(state);
  const char* begin = kept.next;
  const char* const end = kept.matcher.search(begin);
  kept.matcher.pay();
  if (end == nullptr) return 0;
  kept.next = end != begin ? end : end < kept.matcher.end() ? end + 1 : nullptr;
  kept.matcher.push_captures(begin, end);
  return kept.matcher.values();
}

int string_gmatch(lua_State* state) {
  const std::string_view subject = text_argument(state, 1);
  const std::string_view pattern = text_argument(state, 2);
  lua_settop(state, 2);
  KeptMatcher::make(state, subject, pattern);
  lua_pushcclosure(state, next_match, 3);
  return 1;
}

/// Appends the replacement text, with its %0 to %9 filled in.
void add_expanded(lua_State* state, const Matcher& matcher, std::string_view text,
                  const char* begin, const char* end, Builder& result) {
  charge(state, 1 + text.size() / bytes_a_step);
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find('%'), text.size());
    result.add(text.substr(0, plain));
    if (plain == text.size()) return;
    // A Lua string ends with a zero, which 5.1 copies if % is the last byte.
    const char c = plain + 1 < text.size() ? text[plain + 1] : '\0';
    text.remove_prefix(std::min(plain + 2, text.size()));
    if (c < '0' || c > '9') {
      result.add(c);
    } else if (c == '0') {
      result.add({begin, static_cast<std::size_t>(end - begin)});
    } else {
      matcher.push_capture(c - '1', begin, end);
      result.add(text_at(state, lua_gettop(state)));
      lua_pop(state, 1);
    }
  }
}

/// Called with a table and a key; returns the value, with regard to the metatable.
int get_by_metatable(lua_State* state) {
  lua_gettable(state, 1);
  return 1;
}

/// Appends the replacement that a table or a function gives for a match.
void add_answer(lua_State* state, const Matcher& matcher, const char* begin, const char* end,
                Builder& result) {
  if (lua_istable(state, 3)) {
    if (lua_getmetatable(state, 3) == 0) {
      matcher.push_capture(0, begin, end);
      lua_rawget(state, 3);
    } else {
      lua_pop(state, 1);
      lua_pushcfunction(state, get_by_metatable);
      lua_pushvalue(state, 3);
      matcher.push_capture(0, begin, end);
      call(state, 2, 1);
    }
  } else {
    lua_pushvalue(state, 3);
    matcher.push_captures(begin, end);
    call(state, matcher.values(), 1);
  }
  if (lua_toboolean(state, -1) == 0) {
    result.add({begin, static_cast<std::size_t>(end - begin)});
  } else if (lua_isstring(state, -1) == 0) {
    luaL_error(state, "invalid replacement value (a %s)", luaL_typename(state, -1));
  } else {
    result.add(text_at(state, lua_gettop(state)));
  }
  lua_pop(state, 1);
}

/// The frame must be small: the function that it calls may call it again, up to 200 times.
int string_gsub(lua_State* state) {
  const std::string_view subject = text_argument(state, 1);
  std::string_view pattern = text_argument(state, 2);
  const int type = lua_type(state, 3);
  const std::int64_t times_max =
      lua_isnoneornil(state, 4) ? static_cast<int>(static_cast<std::uint32_t>(subject.size() + 1))
                                : int_argument(state, 4);
  luaL_argcheck(
      state,
      type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TTABLE || type == LUA_TFUNCTION, 3,
      "string/function/table expected");
  lua_settop(state, 4);
  const bool is_anchored = pattern.starts_with('^');
  if (is_anchored) pattern.remove_prefix(1);
  KeptMatcher& kept = KeptMatcher::make(state, subject, pattern);
  Builder result{state};
  std::int64_t times = 0;
  const char* at = kept.next;
  while (times < times_max) {
    const char* begin = at;
    const char* const end = is_anchored ? kept.matcher.match(begin) : kept.matcher.search(begin);
    if (end == nullptr) break;
    charge(state, 1);
    result.add({at, static_cast<std::size_t>(begin - at)});
    ++times;
    if (type == LUA_TNUMBER || type == LUA_TSTRING) {
      add_expanded(state, kept.matcher, text_at(state, 3), begin, end, result);
    } else {
      add_answer(state, kept.matcher, begin, end, result);
    }
    at = end;
    if (end == begin) {
      if (at == kept.matcher.end()) break;
      result.add(*at++);
    }
    if (is_anchored) break;
  }
  kept.matcher.pay();
  result.add({at, static_cast<std::size_t>(kept.matcher.end() - at)});
  result.push();
  lua_pushinteger(state, times);
  return 2;
}

int string_rep(lua_State* state) {
  const std::string_view text = text_argument(state, 1);
  const int times = int_argument(state, 2);
  if (times <= 0 || text.empty()) {
    lua_pushliteral(state, "");
    return 1;
  }
  const auto count = static_cast<std::size_t>(times);
  if (text.size() > budget_of(state).memory_max / count) return raise(state, "not enough memory");
  const std::size_t bytes = text.size() * count;
  charge(state, 1 + bytes / bytes_a_step);
  Builder result{state};
  char* const to = result.room(bytes);
  std::memcpy(to, text.data(), text.size());
  for (std::size_t done = text.size(); done < bytes;) {
    const std::size_t more = std::min(done, bytes - done);
    std::memcpy(to + done, to, more);
    done += more;
  }
  result.used(bytes);
  result.push();
  return 1;
}

}  // namespace

void bound_string_library(lua_State* state) {
  lua_getglobal(state, LUA_STRLIBNAME);
  set_function(state, "find", string_find);
  set_function(state, "match", string_match);
  set_function(state, "gmatch", string_gmatch);
  set_function(state, "gfind", string_gmatch);
  set_function(state, "gsub", string_gsub);
  set_function(state, "rep", string_rep);
  set_function(state, "format", string_format);
  lua_pushnil(state);
  lua_setfield(state, -2, "dump");
  lua_pop(state, 1);
}

}  // namespace semel::lua
