// Bounds what LuaJIT's parser needs more time for than for other text. Everything else costs it at
// most 0.1 us a byte; the constructs below cost 1 us to 20 us a byte, or the square of their
// number. The compiler calls no hook, so nothing ends it once it has begun.
//
// | construct                     | time                                 | at its bound    |
// |-------------------------------|--------------------------------------|-----------------|
// | elseif, and, or, break        | the square of their number           | 0.2 s           |
// | goto, labels                  | number x all locals of the function  | 0.1 s           |
// | names                         | locals of all functions around them  | 0.2 s           |
// | numbers of more than 50 digits| the square of the digits, up to 0.1 ms| 0.1 s          |
//
// tests/scripts/compile_growth.py measures them, and what else the grammar has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace semel::lua {

/// Fed with the tokens of a source, before it is compiled. Counts too much rather than too little.
class CompileCost {
 public:
  static constexpr std::size_t branches_max = 10'000;        ///< elseif, and, or, break
  static constexpr std::size_t jumps_max = 1'000;            ///< goto and labels
  static constexpr std::size_t numbers_max = 1'000;          ///< of more than digits_many
  static constexpr std::size_t digits_many = 50;             ///< digits written, plus the exponent
  static constexpr std::uint64_t lookups_max = 200'000'000;  ///< comparisons with names of locals

  void reset();
  void word(std::string_view name);  ///< a name or a keyword
  void mark(char c);
  void number(std::string_view text);
  /// Why the source is not compiled: the first bound that it exceeds, and the bound. Null: none.
  [[nodiscard]] const char* exceeded() const noexcept { return exceeded_; }

 private:
  /// Where names are declared.
  enum class Declares : std::uint8_t { no, names, comma, function_name, parameters };
  struct Block {
    std::size_t locals;  ///< that were visible where it began
    bool is_function;
  };

  void keyword(std::string_view name);
  void begin(bool is_function);
  void end();
  void declare();
  void check();

  Declares declares_ = Declares::no;
  bool is_for_ = false;          // of the names that are being declared
  bool after_colon_ = false;     // half of a "::"
  std::size_t loop_locals_ = 0;  // of a `for` whose block has not begun
  std::size_t locals_ = 0;       // visible here, of all functions around
  std::size_t functions_ = 0;    // around this place
  std::size_t branches_ = 0;
  std::size_t gotos_ = 0;
  std::size_t colons_ = 0;  // "::", two for a label
  std::size_t numbers_ = 0;
  std::uint64_t lookups_ = 0;
  std::vector<Block> blocks_{};
  const char* exceeded_ = nullptr;
};

}  // namespace semel::lua
