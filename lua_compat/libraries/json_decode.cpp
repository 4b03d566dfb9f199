#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "lua_compat/libraries/json_config.hpp"
#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

bool begins_with(const char* text, std::string_view word) noexcept {
  for (const char c : word) {
    if (base::to_lower(*text++) != c) return false;
  }
  return true;
}

/// Numbers that strtod reads but JSON does not allow: signs, leading zeros, hexadecimals, inf, nan.
bool is_invalid_number(const char* text) noexcept {
  if (*text == '+') return true;
  if (*text == '-') ++text;
  if (*text == '0') return base::to_lower(text[1]) == 'x' || base::is_digit(text[1]);
  return begins_with(text, "inf") || begins_with(text, "nan");
}

/// Four hexadecimal digits, or -1.
int code_unit(const char* text) noexcept {
  int code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = base::to_lower(text[i]);
    const bool is_letter = c >= 'a' && c <= 'f';
    if (!base::is_digit(c) && !is_letter) return -1;
    code = code << 4 | (is_letter ? c - 'a' + 10 : c - '0');
  }
  return code;
}

struct Token {
  enum Type {
    object_begin,
    object_end,
    array_begin,
    array_end,
    string,
    number,
    boolean,
    null,
    colon,
    comma,
    end,
    error,
  };
  Type type = error;
  std::size_t place = 0;
  const char* error_text = nullptr;
  double value = 0;  ///< of a number or boolean
};

/// Their names in errors of lua-cjson.
constexpr const char* token_names[] = {"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END",
                                       "T_STRING",    "T_NUMBER",  "T_BOOLEAN",   "T_NULL",
                                       "T_COLON",     "T_COMMA",   "T_END"};

/// Reads the tokens of a Lua string, which ends with a zero. Leaves the bytes of a string in
/// `text`.
class Scanner {
 public:
  Scanner(lua_State* state, std::string_view input, const JsonConfig& config)
      : text(state), begin_(input.data()), at_(input.data()), config_(config) {}

  [[nodiscard]] Token next() {
    while (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r') ++at_;
    Token token;
    token.place = place();
    switch (*at_) {
      case '{':
        return mark(token, Token::object_begin);
      case '}':
        return mark(token, Token::object_end);
      case '[':
        return mark(token, Token::array_begin);
      case ']':
        return mark(token, Token::array_end);
      case ':':
        return mark(token, Token::colon);
      case ',':
        return mark(token, Token::comma);
      case '"':
        return read_string(token);
      case '\0':
        token.type = Token::end;
        return token;
      default:
        return read_word(token);
    }
  }
  /// Offset of the next byte.
  [[nodiscard]] std::size_t place() const noexcept {
    return static_cast<std::size_t>(at_ - begin_);
  }

  Builder text;

 private:
  Token mark(Token token, Token::Type type) {
    ++at_;
    token.type = type;
    return token;
  }
  Token fail(Token token, const char* error) const {
    token.type = Token::error;
    token.error_text = error;
    return token;
  }

  Token fail_here(Token token, const char* error) const {
    token.place = place();
    return fail(token, error);
  }

  Token read_word(Token token) {
    const bool is_number = *at_ == '-' || base::is_digit(*at_);
    if (is_number) {
      if (config_.decode_invalid == JsonConfig::refused && is_invalid_number(at_)) {
        return fail(token, "invalid number");
      }
      return read_number(token);
    }
    if (std::strncmp(at_, "true", 4) == 0) return skip(token, Token::boolean, 4, 1);
    if (std::strncmp(at_, "false", 5) == 0) return skip(token, Token::boolean, 5, 0);
    if (std::strncmp(at_, "null", 4) == 0) return skip(token, Token::null, 4, 0);
    if (config_.decode_invalid != JsonConfig::refused && is_invalid_number(at_)) {
      return read_number(token);
    }
    return fail(token, "invalid token");
  }
  Token skip(Token token, Token::Type type, std::size_t bytes, double value) {
    at_ += bytes;
    token.type = type;
    token.value = value;
    return token;
  }
  Token read_number(Token token) {
    char* end = nullptr;
    token.value = std::strtod(at_, &end);
    if (end == at_) return fail(token, "invalid number");
    token.type = Token::number;
    at_ = end;
    return token;
  }

  Token read_string(Token token) {
    text.clear();
    ++at_;
    for (;;) {
      const std::size_t plain = std::strcspn(at_, "\"\\");
      text.add({at_, plain});
      at_ += plain;
      if (*at_ == '"') break;
      if (*at_ == '\0') return fail_here(token, "unexpected end of string");
      if (at_[1] == 'u') {
        if (!read_unicode()) return fail_here(token, "invalid unicode escape code");
        continue;
      }
      const char byte = escaped(at_[1]);
      if (byte == '\0') return fail_here(token, "invalid escape code");
      text.add(byte);
      at_ += 2;
    }
    ++at_;
    token.type = Token::string;
    return token;
  }
  [[nodiscard]] static char escaped(char letter) noexcept {
    switch (letter) {
      case '"':
      case '\\':
      case '/':
        return letter;
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      default:
        return '\0';
    }
  }
  /// Decodes one \u0000, or a surrogate pair of two, to UTF-8.
  [[nodiscard]] bool read_unicode() {
    int code = code_unit(at_ + 2);
    if (code < 0) return false;
    std::size_t bytes = 6;
    if ((code & 0xf800) == 0xd800) {
      if ((code & 0x400) != 0 || at_[6] != '\\' || at_[7] != 'u') return false;
      const int low = code_unit(at_ + 8);
      if (low < 0 || (low & 0xfc00) != 0xdc00) return false;
      code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
      bytes = 12;
    }
    at_ += bytes;
    const auto add = [this](int byte) { text.add(static_cast<char>(byte)); };
    if (code < 0x80) {
      add(code);
      return true;
    }
    if (code < 0x800) {
      add(0xc0 | code >> 6);
    } else {
      if (code < 0x10000) {
        add(0xe0 | code >> 12);
      } else {
        add(0xf0 | code >> 18);
        add(0x80 | (code >> 12 & 0x3f));
      }
      add(0x80 | (code >> 6 & 0x3f));
    }
    add(0x80 | (code & 0x3f));
    return true;
  }

  const char* begin_;
  const char* at_;
  const JsonConfig& config_;
};

/// Reads one value without recursion on the C stack. The tables that are open are on the Lua stack;
/// an object has the key of its next value above it.
class Decoder {
 public:
  Decoder(lua_State* state, std::string_view input, const JsonConfig& config)
      : state_(state), config_(config), scanner_(state, input, config), open_(state) {}

  void decode() {
    Token token = next();
    for (;;) {
      if (begin_value(token)) {
        token = next();
        // The first value of an array was read already, unless the array is empty.
        if (open_.top() == object ? token.type != Token::object_end
                                  : token.type != Token::array_end) {
          if (open_.top() == object) token = read_key(token);
          continue;
        }
        open_.pop();
      }
      if (!end_value(token)) return;
    }
  }

 private:
  static constexpr int object = -1;

  /// Charges for the bytes that were read.
  [[nodiscard]] Token next() {
    const Token token = scanner_.next();
    const std::size_t place = scanner_.place();
    SEMEL_ASSERT(place >= charged_);
    charge(state_, 6 + (place - charged_) / 2);
    charged_ = place;
    return token;
  }
  void refuse(const char* expected, const Token& token) {
    luaL_error(state_, "Expected %s but found %s at character %d", expected,
               token.type == Token::error ? token.error_text : token_names[token.type],
               static_cast<int>(token.place + 1));
  }

  /// Pushes a value. True: it is a table, which is open now.
  [[nodiscard]] bool begin_value(const Token& token) {
    switch (token.type) {
      case Token::string:
        push_text();
        break;
      case Token::number:
        lua_pushnumber(state_, token.value);
        break;
      case Token::boolean:
        lua_pushboolean(state_, token.value != 0 ? 1 : 0);
        break;
      case Token::null:
        lua_pushlightuserdata(state_, nullptr);
        break;
      case Token::object_begin:
        open(object);
        return true;
      case Token::array_begin:
        open(0);
        return true;
      default:
        refuse("value", token);
    }
    return false;
  }
  void push_text() { lua_pushlstring(state_, scanner_.text.bytes().data(), scanner_.text.size()); }
  void open(int count) {
    const int depth = static_cast<int>(open_.size()) + 1;
    if (depth > config_.decode_depth_max || lua_checkstack(state_, 8) == 0) {
      luaL_error(state_, "Found too many nested data structures (%d) at character %d", depth,
                 static_cast<int>(scanner_.place()));
    }
    lua_newtable(state_);
    open_.push(count);
  }

  /// Reads a key and the colon; returns the token behind them.
  [[nodiscard]] Token read_key(const Token& token) {
    if (token.type != Token::string) refuse("object key string", token);
    push_text();
    const Token colon = next();
    if (colon.type != Token::colon) refuse("colon", colon);
    return next();
  }

  /// Stores the complete value on top of the stack in the open table. False: no table is open, so
  /// the whole text was read; else `token` becomes the first token of the next value.
  [[nodiscard]] bool end_value(Token& token) {
    for (;;) {
      token = next();
      if (open_.size() == 0) {
        if (token.type != Token::end) refuse("the end", token);
        return false;
      }
      const int count = open_.top();
      if (count == object) {
        lua_rawset(state_, -3);
        if (token.type == Token::comma) {
          token = read_key(next());
          return true;
        }
        if (token.type != Token::object_end) refuse("comma or object end", token);
      } else {
        lua_rawseti(state_, -2, count + 1);
        open_.set_top(count + 1);
        if (token.type == Token::comma) {
          token = next();
          return true;
        }
        if (token.type != Token::array_end) refuse("comma or array end", token);
      }
      open_.pop();
    }
  }

  lua_State* state_;
  const JsonConfig& config_;
  Scanner scanner_;
  Pile<int> open_;
  std::size_t charged_ = 0;
};

}  // namespace

int json_decode(lua_State* state) {
  luaL_argcheck(state, lua_gettop(state) == 1, 1, "expected 1 argument");
  const std::string_view input = text_argument(state, 1);
  if (input.size() >= 2 && (input[0] == '\0' || input[1] == '\0')) {
    return luaL_error(state, "JSON parser does not support UTF-16 or UTF-32");
  }
  Decoder decoder{state, input, json_config(state)};
  decoder.decode();
  SEMEL_ASSERT(lua_gettop(state) > 1);
  return 1;
}

}  // namespace semel::lua
