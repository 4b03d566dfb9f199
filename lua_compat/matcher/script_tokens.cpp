#include "lua_compat/matcher/script_tokens.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/ascii.hpp"

namespace semel::lua {
namespace {

constexpr std::array<std::string_view, 21> keywords = {
    "and", "break", "do", "else",   "elseif", "end",  "false", "for",   "function", "if",   "in",
    "nil", "not",   "or", "repeat", "return", "then", "true",  "local", "until",    "while"};
constexpr std::array<std::string_view, 25> symbols = {
    "...", "..", "==", "~=", "<=", ">=", "+", "-", "*", "/", "%", "^", "#",
    "<",   ">",  "=",  "(",  ")",  "{",  "}", "[", "]", ";", ":", ","};

bool begins_name(char c) noexcept {
  return base::is_letter(c) || c == '_';
}
bool goes_on_name(char c) noexcept {
  return begins_name(c) || base::is_digit(c);
}
bool ends_line(char c) noexcept {
  return c == '\n' || c == '\r';
}

class Lexer {
 public:
  explicit Lexer(std::string_view script) noexcept : rest_(script) {}

  std::optional<std::vector<Token>> run() {
    std::vector<Token> tokens;
    while (skip_blanks()) {
      Token token;
      token.line = line_;
      if (!rest_.empty() && !read(token)) return std::nullopt;
      token.line_end = line_;
      const bool is_end = token.kind == TokenKind::end;
      tokens.push_back(std::move(token));
      if (is_end) return tokens;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] char at(std::size_t place) const noexcept {
    return place < rest_.size() ? rest_[place] : '\0';
  }
  void drop(std::size_t bytes) noexcept { rest_.remove_prefix(bytes); }

  /// Takes one line end; CR LF and LF CR count as one.
  void drop_line() noexcept {
    const bool is_pair = ends_line(at(1)) && at(1) != at(0) && rest_.size() > 1;
    drop(is_pair ? 2 : 1);
    ++line_;
  }

  /// Skips blanks and comments. False: a comment has no end.
  bool skip_blanks() {
    while (!rest_.empty()) {
      const char c = at(0);
      if (ends_line(c)) {
        drop_line();
      } else if (c == ' ' || c == '\t' || c == '\v' || c == '\f') {
        drop(1);
      } else if (c == '-' && at(1) == '-') {
        drop(2);
        if (!skip_comment()) return false;
      } else {
        break;
      }
    }
    return true;
  }

  bool skip_comment() {
    if (at(0) == '[' && level()) {
      std::string unused;
      return read_long(unused);
    }
    while (!rest_.empty() && !ends_line(at(0))) drop(1);
    return true;
  }

  /// The number of `=` in the long bracket that opens here. None: none does.
  [[nodiscard]] std::optional<std::size_t> level() const noexcept {
    std::size_t count = 0;
    while (at(1 + count) == '=') ++count;
    return at(1 + count) == '[' ? std::optional{count} : std::nullopt;
  }

  bool read_long(std::string& text) {
    const std::size_t count = level().value_or(0);
    drop(count + 2);
    if (!rest_.empty() && ends_line(at(0))) drop_line();
    const std::string closing = "]" + std::string(count, '=') + "]";
    while (!rest_.empty()) {
      if (rest_.starts_with(closing)) {
        drop(closing.size());
        return true;
      }
      const char c = at(0);
      if (c == '\0' || (count == 0 && c == '[' && at(1) == '[')) return false;
      if (ends_line(c)) {
        text += '\n';
        drop_line();
      } else {
        text += c;
        drop(1);
      }
    }
    return false;
  }

  bool read(Token& token) {
    const char c = at(0);
    if (begins_name(c)) return read_name(token);
    if (base::is_digit(c) || (c == '.' && base::is_digit(at(1)))) return read_number(token);
    if (c == '"' || c == '\'') return read_string(token);
    if (c == '[' && level()) {
      token.kind = TokenKind::string;
      return read_long(token.text);
    }
    return read_symbol(token);
  }

  bool read_name(Token& token) {
    std::size_t size = 1;
    while (goes_on_name(at(size))) ++size;
    token.text = rest_.substr(0, size);
    drop(size);
    const bool is_keyword = std::ranges::find(keywords, token.text) != keywords.end();
    token.kind = is_keyword ? TokenKind::symbol : TokenKind::name;
    return true;
  }

  /// Takes all characters that a number can have; together they must be one.
  bool read_number(Token& token) {
    std::size_t size = 1;
    while (base::is_digit(at(size)) || at(size) == '.') ++size;
    if (at(size) == 'e' || at(size) == 'E') {
      ++size;
      if (at(size) == '+' || at(size) == '-') ++size;
    }
    while (goes_on_name(at(size)) || at(size) == '.') ++size;
    const std::optional<double> value = value_of(rest_.substr(0, size));
    if (!value) return false;
    std::array<char, 32> text{};
    const auto written = std::to_chars(text.data(), text.data() + text.size(), *value);
    token.kind = TokenKind::number;
    token.text.assign(text.data(), written.ptr);
    drop(size);
    return true;
  }

  static std::optional<double> value_of(std::string_view text) noexcept {
    if (text.starts_with("0x") || text.starts_with("0X")) {
      text.remove_prefix(2);
      std::uint64_t number = 0;
      constexpr std::size_t exact_digits = 13;  // 52 bits
      if (text.empty() || text.size() > exact_digits) return std::nullopt;
      const auto read = std::from_chars(text.data(), text.data() + text.size(), number, 16);
      if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
      return static_cast<double>(number);
    }
    double number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
    return number;
  }

  bool read_string(Token& token) {
    token.kind = TokenKind::string;
    const char quote = at(0);
    drop(1);
    while (!rest_.empty()) {
      const char c = at(0);
      if (c == quote) {
        drop(1);
        return true;
      }
      if (ends_line(c) || c == '\0') return false;
      if (c == '\\') {
        drop(1);
        if (!read_escape(token.text)) return false;
      } else {
        token.text += c;
        drop(1);
      }
    }
    return false;
  }

  /// Reads an escape, behind its backslash.
  bool read_escape(std::string& text) {
    constexpr std::string_view letters = "abfnrtv\\\"'";
    constexpr std::string_view meant = "\a\b\f\n\r\t\v\\\"'";
    if (rest_.empty()) return false;
    const char c = at(0);
    if (ends_line(c)) {
      text += '\n';
      drop_line();
      return true;
    }
    if (base::is_digit(c)) {
      int number = 0;
      for (int digits = 0; digits < 3 && base::is_digit(at(0)); ++digits) {
        number = number * 10 + (at(0) - '0');
        drop(1);
      }
      if (number > 255) return false;
      text += static_cast<char>(static_cast<unsigned char>(number));
      return true;
    }
    const std::size_t place = letters.find(c);
    if (place == std::string_view::npos) return false;
    text += meant[place];
    drop(1);
    return true;
  }

  bool read_symbol(Token& token) {
    token.kind = TokenKind::symbol;
    const auto found = std::ranges::find_if(
        symbols, [this](std::string_view symbol) { return rest_.starts_with(symbol); });
    if (found != symbols.end()) {
      token.text = *found;
    } else if (at(0) == '.') {
      token.text = ".";
    } else {
      return false;
    }
    // An incomplete long bracket, which both implementations refuse.
    if (token.text == "[" && at(1) == '=') return false;
    drop(token.text.size());
    return true;
  }

  std::string_view rest_;
  std::uint32_t line_ = 1;
};

}  // namespace

std::optional<std::vector<Token>> read_tokens(std::string_view script) {
  if (script.size() > script_bytes_max) return std::nullopt;
  return Lexer{script}.run();
}

std::optional<std::string> whole_number(std::string_view number_text) {
  constexpr double exact = 9007199254740992;  // 2^53
  double number = 0;
  const auto read =
      std::from_chars(number_text.data(), number_text.data() + number_text.size(), number);
  const bool is_whole = read.ec == std::errc{} && std::fabs(number) < exact &&
                        std::trunc(number) == number && !(number == 0 && std::signbit(number));
  if (!is_whole) return std::nullopt;
  return std::to_string(static_cast<std::int64_t>(number));
}

}  // namespace semel::lua
