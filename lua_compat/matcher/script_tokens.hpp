// Splits a script into tokens. It accepts only the part of Lua 5.1 that PUC Lua 5.1 and LuaJIT read
// alike. A script with anything in which they differ (\x and \z in strings, names with other than
// ASCII letters, nested long brackets, numbers with suffixes, NUL) is unknown to the matcher, and
// the interpreter decides what it means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace semel::lua {

inline constexpr std::size_t script_bytes_max = std::size_t{128}
                                                << 10;  ///< longer scripts are not analysed

enum class TokenKind : std::uint8_t { name, number, string, symbol, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::uint32_t line = 1;      ///< where it begins
  std::uint32_t line_end = 1;  ///< where it ends
  /// A symbol, keyword or name as it is written; the bytes of a string; the shortest text of the
  /// value of a number.
  std::string text;

  [[nodiscard]] bool is(std::string_view symbol) const noexcept {
    return kind == TokenKind::symbol && text == symbol;
  }
};

/// All tokens; the last is of kind `end`. None: the script cannot be read or is too long.
[[nodiscard]] std::optional<std::vector<Token>> read_tokens(std::string_view script);

/// The text that redis-server writes for a number in the arguments of a command. None: it is no
/// integer that a double represents exactly.
[[nodiscard]] std::optional<std::string> whole_number(std::string_view number_text);

}  // namespace semel::lua
