// Rewrites the parts of a Lua 5.1 source that LuaJIT would read differently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lua_compat/runtime/compile_cost.hpp"

namespace semel::lua {

/// Keeps its memory from one source to the next.
///
/// - An unknown escape stands for the character itself in 5.1: "\." is ".", "\x" is "x".
/// - 1LL, 2i and 0b1 are malformed numbers; LuaJIT would create values of its FFI types. A
///   hexadecimal number has no fraction.
/// - A source that begins with ESC is not treated as bytecode; a '#' or a byte order mark at its
///   begin is not skipped.
/// - `return redis.call(..)` gets parentheses: at a tail call of a C function LuaJIT drops the
///   calling frame, and with it the line for the error text. This is done only where it makes no
///   difference: for calls with one result, and where only the first result is used, as in a
///   function that is written where it is registered.
/// - A source that LuaJIT would need too much time for is refused: see CompileCost.
class SourceForm {
 public:
  struct Malformed {
    const char* what = nullptr;  ///< null: nothing is malformed
    std::string_view near{};
    int line = 0;
  };

  /// Which results of the main chunk are used; as_it_is: add no parentheses anywhere.
  enum class Main : std::uint8_t { first_result, all_results, as_it_is };

  /// The text to compile: `source` itself, or a text that is valid until the next call.
  [[nodiscard]] std::string_view of(std::string_view source, Main main);
  /// The first malformed token of the last source.
  [[nodiscard]] Malformed malformed() const noexcept { return malformed_; }

 private:
  struct Block {
    bool is_function;
    bool is_in_callback;  ///< the innermost function, this block's or one around it, is a callback
  };
  struct Edit {
    std::size_t at;
    char insert;  ///< 0: the byte at this offset is removed
  };
  /// How much of a redis.register_function call with an inline function was read.
  enum class Registering : std::uint8_t { no, library, dot, name, call, text, comma, table, key };
  struct Return {
    std::size_t begin;  ///< of its first token
    std::size_t blocks;
    std::size_t brackets;
    std::size_t words = 0;     ///< how many tokens of `name.name` were read
    std::size_t call_end = 0;  ///< offset of the closing bracket of that call
    std::string_view root{};
    std::string_view name{};
    bool is_call = false;
    bool has_comma = false;
    bool is_empty = true;
  };

  void reset(std::string_view source, Main main);
  [[nodiscard]] bool step();  ///< false: at the end, or at text that cannot be read
  void skip_line();
  [[nodiscard]] bool skip_long(std::size_t level);
  [[nodiscard]] bool long_bracket(std::size_t& level) const;
  [[nodiscard]] bool skip_text(char quote);
  void skip_number();
  void skip_name();
  void skip_mark();
  void word(std::string_view name, std::size_t begin);
  void check_cost(std::string_view near);
  void token(std::string_view text, std::size_t begin);
  void end_return(std::size_t blocks);
  void close_block();
  void follow_registering(std::string_view text);
  [[nodiscard]] bool is_in_callback() const;
  [[nodiscard]] bool has_one_result(const Return& back) const;
  [[nodiscard]] std::string_view edited();
  [[nodiscard]] char at(std::size_t index) const noexcept {
    return index < source_.size() ? source_[index] : '\0';
  }

  std::string_view source_{};
  Main main_ = Main::as_it_is;
  std::size_t here_ = 0;
  int line_ = 1;
  std::size_t token_end_ = 0;
  std::size_t brackets_ = 0;
  std::size_t functions_ = 0;
  Registering registering_ = Registering::no;
  std::size_t registering_table_ = 0;  ///< depth of brackets of its table; 0: none
  bool after_local_ = false;
  bool renames_library_ = false;
  Malformed malformed_{};
  CompileCost cost_{};
  std::vector<Block> blocks_{};
  std::vector<Return> returns_{};
  std::vector<Return> nested_{};  ///< decided when the whole source was read
  std::vector<Edit> edits_{};
  std::string out_{};
};

}  // namespace semel::lua
