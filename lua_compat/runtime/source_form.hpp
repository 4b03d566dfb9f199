// Texts of Lua 5.1 that LuaJIT would read otherwise, made such that it reads them as 5.1 does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace semel::lua {

/// Keeps its memory from one text to the next.
///
/// - An escape that 5.1 does not know stands for the character itself: "\." is ".", "\x" is "x".
/// - 1LL, 2i and 0b1 are no numbers; they would bring LuaJIT's foreign types into the world. A
///   hexadecimal number has no fraction.
/// - A text that begins with ESC, '#' or a byte order mark is no precompiled one and no exception.
/// - `return redis.call(..)` is put into parentheses: LuaJIT forgets the function that makes a tail
///   call of a C function, and with it the line for the text of an error. That is done where it
///   cannot be told apart: for calls that have one result, and where only the first is asked for,
///   as in a function that is written where it is registered.
/// - More than branches_max of elseif, and, or: LuaJIT takes the square of their number of steps.
class SourceForm {
 public:
  struct Malformed {
    const char* what = nullptr;  ///< null: nothing is
    std::string_view near{};
    int line = 0;
  };

  /// Which values matter of those that the main part returns; or no parentheses at all.
  enum class Main : std::uint8_t { first_result, all_results, as_it_is };

  /// The text to compile: `source` itself, or what is valid until the next call.
  [[nodiscard]] std::string_view of(std::string_view source, Main main);
  static constexpr std::size_t branches_max = 20'000;
  /// The first one of the last text.
  [[nodiscard]] Malformed malformed() const noexcept { return malformed_; }

 private:
  enum class Block : std::uint8_t { callback, function, other };
  struct Edit {
    std::size_t at;
    char insert;  ///< 0: the byte that stands there is left out
  };
  /// How far a call is read that registers a function which is written in its place.
  enum class Registering : std::uint8_t { no, library, dot, name, call, text, comma, table, key };
  struct Return {
    std::size_t begin;  ///< of its first token
    std::size_t blocks;
    std::size_t brackets;
    std::size_t words = 0;     ///< tokens of `name.name` seen
    std::size_t call_end = 0;  ///< where the bracket of that call closes
    std::string_view root{};
    std::string_view name{};
    bool is_call = false;
    bool has_comma = false;
    bool is_empty = true;
  };

  void reset(std::string_view source, Main main);
  [[nodiscard]] bool step();  ///< false: the end, or what cannot be read
  void skip_line();
  [[nodiscard]] bool skip_long(std::size_t level);
  [[nodiscard]] bool long_bracket(std::size_t& level) const;
  [[nodiscard]] bool skip_text(char quote);
  void skip_number();
  void skip_name();
  void skip_mark();
  void word(std::string_view name, std::size_t begin);
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
  std::size_t branches_ = 0;
  Registering registering_ = Registering::no;
  std::size_t registering_table_ = 0;  ///< within so many brackets
  bool after_local_ = false;
  bool renames_library_ = false;
  Malformed malformed_{};
  std::vector<Block> blocks_{};
  std::vector<Return> returns_{};
  std::vector<Return> nested_{};  ///< those that wait for the whole text to be seen
  std::vector<Edit> edits_{};
  std::string out_{};
};

}  // namespace semel::lua
