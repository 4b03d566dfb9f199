// Lua 5.1's patterns, matched in steps that are counted and in memory that does not grow.
//
// A pattern is a row of items; only single bytes repeat. So each item keeps by itself how often it
// is repeated at present, and giving up means to go back to the last repeated item before: there
// is no stack. What is malformed becomes an item that raises its error when it is reached, as 5.1
// does not look at a pattern before it gets there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

using ByteSet = std::array<std::uint64_t, 4>;

struct PatternItem {
  enum class Kind : std::uint8_t {
    end,             ///< all of the pattern has matched
    end_of_subject,  ///< $
    byte,            ///< `first`
    any,             ///< .
    set,
    capture_begin,     ///< of capture `first`
    capture_position,  ///< the same of ()
    capture_end,
    back_reference,
    balance,   ///< %b with `first` and `second`
    frontier,  ///< %f with `set`
    error,
  };
  enum class Repeat : std::uint8_t { once, greedy, lazy };

  Kind kind = Kind::end;
  Repeat repeat = Repeat::once;
  std::uint8_t first = 0;
  std::uint8_t second = 0;
  /// For greedy ones: at least so often.
  bool needed = false;
  /// At most once (?).
  bool single = false;
  /// The nearest repeated item before, counted from 1.
  std::uint32_t previous = 0;
  union {
    const ByteSet* set = nullptr;
    const char* error;
  };
  /// While matching: where the repeated bytes, after the needed one, begin or for lazy ones end.
  const char* at = nullptr;
  std::size_t count = 0;  ///< of greedy ones: how many they are
};

/// One pattern on one subject.
class Matcher {
 public:
  static constexpr int captures_max = 32;

  /// Bytes of memory that a pattern's items take; aligned as a PatternItem.
  [[nodiscard]] static std::size_t memory_bytes(std::string_view pattern) noexcept;

  /// Reads the pattern into `memory`. It and the texts must outlive this. A Lua error may leave it.
  void prepare(lua_State* state, std::string_view subject, std::string_view pattern, void* memory);

  /// Where the match that begins at `from` ends, or null. Raises an error for what is malformed.
  [[nodiscard]] const char* match(const char* from);
  /// The first match that begins at `from` or later; moves `from` there.
  [[nodiscard]] const char* search(const char*& from);

  [[nodiscard]] const char* begin() const noexcept { return begin_; }
  [[nodiscard]] const char* end() const noexcept { return end_; }
  /// How many values push_captures() pushes.
  [[nodiscard]] int values() const noexcept { return level_ == 0 ? 1 : level_; }
  [[nodiscard]] bool has_captures() const noexcept { return level_ != 0; }
  /// Pushes the captures of the last match, or all of it if there are none.
  void push_captures(const char* from, const char* to) const;
  /// As one of them, counted from 0; raises an error if there is no such capture.
  void push_capture(int index, const char* from, const char* to) const;
  /// Charges what has not been charged yet; for the end of a function that matches.
  void pay();
  /// For the closure that keeps this while Lua's threads come and go.
  void set_state(lua_State* state) noexcept { state_ = state; }

 private:
  struct Capture {
    const char* begin;
    const char* end;
  };
  static constexpr std::uint64_t steps_at_once = 1024;

  [[nodiscard]] bool is_in(const PatternItem& item, const char* at) const noexcept;
  [[nodiscard]] std::size_t run(const PatternItem& item, const char* at) const noexcept;
  /// Moves `at` behind what one item matches.
  [[nodiscard]] bool advance(PatternItem& item, const char*& at);
  [[nodiscard]] bool advance_special(const PatternItem& item, const char*& at);
  /// Moves back to a repeated item that has another choice.
  [[nodiscard]] bool retry(std::size_t& index, const char*& at);
  void count(std::uint64_t steps) {
    steps_ += steps;
    if (steps_ >= steps_at_once) pay();
  }

  lua_State* state_ = nullptr;
  const char* begin_ = nullptr;
  const char* end_ = nullptr;
  PatternItem* items_ = nullptr;
  int level_ = 0;
  std::uint32_t open_ = 0;       ///< bits of captures that the pattern never closes
  std::uint32_t positions_ = 0;  ///< bits of position captures
  std::uint64_t steps_ = 0;
  Capture captures_[captures_max];
};

}  // namespace semel::lua
