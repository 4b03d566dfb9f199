// Matches Lua 5.1 patterns in counted steps and constant memory.
//
// A pattern is a sequence of items, and only items of one byte repeat. So each item stores how
// often it is repeated at the moment, and backtracking means to return to the last repeated item:
// no stack is needed. A malformed item raises its error when the match reaches it, as 5.1 does not
// check a pattern before.
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
    end,             ///< the whole pattern has matched
    end_of_subject,  ///< $
    byte,            ///< `first`
    any,             ///< .
    set,
    capture_begin,     ///< begins capture `first`
    capture_position,  ///< the same for ()
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
  /// A greedy item must match at least once (+).
  bool needed = false;
  /// At most once (?).
  bool single = false;
  /// The previous repeated item, counted from 1; 0: there is none.
  std::uint32_t previous = 0;
  union {
    const ByteSet* set = nullptr;
    const char* error;
  };
  /// While matching: where the repeated bytes begin, after the needed one; for lazy items, where
  /// they end.
  const char* at = nullptr;
  std::size_t count = 0;  ///< how many bytes a greedy item matched
};

/// One pattern on one subject.
class Matcher {
 public:
  static constexpr int captures_max = 32;

  /// Bytes of memory for the items of a pattern; must be aligned for PatternItem.
  [[nodiscard]] static std::size_t memory_bytes(std::string_view pattern) noexcept;

  /// Parses the pattern into `memory`, which must outlive this, as the texts must. May raise
  /// errors.
  void prepare(lua_State* state, std::string_view subject, std::string_view pattern, void* memory);

  /// Where the match that begins at `from` ends, or null. Raises the error of a malformed pattern.
  [[nodiscard]] const char* match(const char* from);
  /// The first match that begins at `from` or later; moves `from` there.
  [[nodiscard]] const char* search(const char*& from);

  [[nodiscard]] const char* begin() const noexcept { return begin_; }
  [[nodiscard]] const char* end() const noexcept { return end_; }
  /// How many values push_captures() will push.
  [[nodiscard]] int values() const noexcept { return level_ == 0 ? 1 : level_; }
  [[nodiscard]] bool has_captures() const noexcept { return level_ != 0; }
  /// Pushes the captures of the last match, or the whole match if there are none.
  void push_captures(const char* from, const char* to) const;
  /// Pushes one of them, counted from 0; raises an error if it does not exist.
  void push_capture(int index, const char* from, const char* to) const;
  /// Charges the remaining steps. A function that matches calls this before it returns.
  void pay();
  /// For a closure that keeps this and may be called on another Lua thread.
  void set_state(lua_State* state) noexcept { state_ = state; }

 private:
  struct Capture {
    const char* begin;
    const char* end;
  };
  static constexpr std::uint64_t steps_at_once = 1024;

  [[nodiscard]] bool is_in(const PatternItem& item, const char* at) const noexcept;
  [[nodiscard]] std::size_t run(const PatternItem& item, const char* at) const noexcept;
  /// Moves `at` behind the bytes that one item matches.
  [[nodiscard]] bool advance(PatternItem& item, const char*& at);
  [[nodiscard]] bool advance_special(const PatternItem& item, const char*& at);
  /// Backtracks to a repeated item that can match another number of bytes.
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
  std::uint32_t open_ = 0;       ///< bits of captures that the pattern does not close
  std::uint32_t positions_ = 0;  ///< bits of position captures
  std::uint64_t steps_ = 0;
  Capture captures_[captures_max];
};

}  // namespace semel::lua
