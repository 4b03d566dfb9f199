#include "lua_compat/libraries/string_format.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/ascii.hpp"
#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

/// Enough for the longest item: 1e308 with 99 digits behind the point.
constexpr std::size_t item_bytes = 512;
constexpr std::uint64_t steps_an_item = 16;
constexpr std::size_t long_text_bytes = 100;

/// One conversion of a format: the flags, width and precision between % and the letter.
class Spec {
 public:
  /// Reads `format` up to the letter. Raises an error where 5.1 does.
  void read(lua_State* state, std::string_view& format) {
    const std::string_view all = format;
    std::size_t at = 0;
    const auto is = [&](auto test) { return at < all.size() && test(all[at]); };
    while (is([](char c) { return c != '\0' && std::strchr("-+ #0", c) != nullptr; })) ++at;
    if (at >= sizeof("-+ #0")) luaL_error(state, "invalid format (repeated flags)");
    for (int i = 0; i < 2 && is(base::is_digit); ++i) ++at;
    if (is([](char c) { return c == '.'; })) {
      has_precision = true;
      ++at;
      for (int i = 0; i < 2 && is(base::is_digit); ++i) ++at;
    }
    if (is(base::is_digit)) luaL_error(state, "invalid format (width or precision too long)");
    text_[0] = '%';
    std::memcpy(text_ + 1, all.data(), at);
    size_ = at + 1;
    format.remove_prefix(at);
  }
  /// The conversion with its letter, for snprintf.
  [[nodiscard]] const char* with(std::string_view letters) noexcept {
    std::memcpy(text_ + size_, letters.data(), letters.size());
    text_[size_ + letters.size()] = '\0';
    return text_;
  }

  bool has_precision = false;

 private:
  char text_[24];
  std::size_t size_ = 0;
};

template <typename Value>
void add(Builder& result, const char* format, Value value) {
  char* const to = result.room(item_bytes);
  std::snprintf(to, item_bytes, format, value);
  // A zero that %c wrote ends the text.
  result.used(std::strlen(to));
}

void add_integer(lua_State* state, int index, char letter, Spec& spec, Builder& result) {
  const double number = luaL_checknumber(state, index);
  const char letters[] = {'l', 'l', letter};
  const char* const format = spec.with({letters, sizeof(letters)});
  if (letter == 'd' || letter == 'i') {
    add(result, format, static_cast<long long>(to_integer(number)));
  } else {
    add(result, format, static_cast<unsigned long long>(to_unsigned(number)));
  }
}

void add_character(lua_State* state, int index, Spec& spec, Builder& result) {
  const std::int64_t number = integer_argument(state, index);
  const bool fits = number >= INT32_MIN && number <= INT32_MAX;
  add(result, spec.with("c"), fits ? static_cast<int>(number) : 0);
}

void add_quoted(std::string_view text, Builder& result) {
  result.add('"');
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '\n') {
      result.add('\\');
      result.add(c);
    } else if (c == '\r') {
      result.add("\\r");
    } else if (c == '\0') {
      result.add("\\000");
    } else {
      result.add(c);
    }
  }
  result.add('"');
}

void add_item(lua_State* state, int index, std::string_view& format, Builder& result) {
  Spec spec;
  spec.read(state, format);
  const char letter = format.empty() ? '\0' : format.front();
  if (!format.empty()) format.remove_prefix(1);
  switch (letter) {
    case 'c':
      return add_character(state, index, spec, result);
    case 'd':
    case 'i':
    case 'o':
    case 'u':
    case 'x':
    case 'X':
      return add_integer(state, index, letter, spec, result);
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G':
      return add(result, spec.with({&letter, 1}), luaL_checknumber(state, index));
    case 'q': {
      const std::string_view text = text_argument(state, index);
      charge(state, text.size());
      return add_quoted(text, result);
    }
    case 's': {
      const std::string_view text = text_argument(state, index);
      charge(state, text.size() / steps_an_item);
      if (!spec.has_precision && text.size() >= long_text_bytes) return result.add(text);
      return add(result, spec.with("s"), text.data());
    }
    default: {
      const char shown[] = {letter, '\0'};
      luaL_error(state, "invalid option '%%%s' to 'format'", shown);
    }
  }
}

}  // namespace

int string_format(lua_State* state) {
  std::string_view format = text_argument(state, 1);
  const int last = lua_gettop(state);
  Builder result{state};
  int index = 1;
  for (;;) {
    const std::size_t plain = format.find('%');
    result.add(format.substr(0, plain));
    if (plain == std::string_view::npos) break;
    charge(state, steps_an_item);
    format.remove_prefix(plain + 1);
    if (format.starts_with('%')) {
      result.add('%');
      format.remove_prefix(1);
      continue;
    }
    if (++index > last) luaL_argerror(state, index, "no value");
    add_item(state, index, format, result);
  }
  result.push();
  return 1;
}

}  // namespace semel::lua
