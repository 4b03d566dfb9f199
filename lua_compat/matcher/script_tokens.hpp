// The tokens of a script: Lua 5.1, of which only that is read which PUC Lua 5.1 and LuaJIT read in
// the same way. What they differ in (\x and \z in strings, names of other than ASCII letters,
// nested long brackets, numbers with suffixes, NUL) is not read: such a script is a stranger, and
// the interpreter decides what it means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace semel::lua {

inline constexpr std::size_t script_bytes_max = std::size_t{128} << 10;  ///< of what is looked at

enum class TokenKind : std::uint8_t { name, number, string, symbol, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::uint32_t line = 1;      ///< in which it begins
  std::uint32_t line_end = 1;  ///< in which it ends
  /// Of a symbol or keyword as it is written; of a name; the bytes of a string; of a number the
  /// shortest text of its value.
  std::string text;

  [[nodiscard]] bool is(std::string_view symbol) const noexcept {
    return kind == TokenKind::symbol && text == symbol;
  }
};

/// All of them, the last of kind `end`. None: it cannot be read, or is longer than is looked at.
[[nodiscard]] std::optional<std::vector<Token>> read_tokens(std::string_view script);

/// As redis-server writes a number that a script gives as an argument. None: it is no whole number
/// that a double holds exactly.
[[nodiscard]] std::optional<std::string> whole_number(std::string_view number_text);

}  // namespace semel::lua
