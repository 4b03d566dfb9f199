// Helpers for the C functions of libraries: arguments as Lua 5.1 reads them, and strings that are
// built piece by piece. All of it may raise Lua errors, so nothing here has a destructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/assert.hpp"
#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// Converts a number as Lua 5.1 does on x86-64: truncated towards zero; a number that does not fit
/// becomes the smallest integer.
[[nodiscard]] std::int64_t to_integer(double number) noexcept;
/// The same for an unsigned integer; negative numbers wrap.
[[nodiscard]] std::uint64_t to_unsigned(double number) noexcept;

[[nodiscard]] std::int64_t integer_argument(lua_State* state, int index);
[[nodiscard]] std::int64_t integer_argument_or(lua_State* state, int index, std::int64_t otherwise);
/// The lower 32 bits, as a conversion to int keeps them.
[[nodiscard]] int int_argument(lua_State* state, int index);
[[nodiscard]] int int_argument_or(lua_State* state, int index, int otherwise);

/// Size of the longest text of number_text(), with its terminator.
inline constexpr std::size_t number_text_bytes = 32;
/// As tostring() of 5.1. It distinguishes "-nan" from "nan", which LuaJIT does not.
std::string_view number_text(double number, char (&text)[number_text_bytes]) noexcept;
/// A string, or the text of a number. Valid while the argument stays on the stack.
[[nodiscard]] std::string_view text_argument(lua_State* state, int index);
/// The same for the value at a positive `index`, which must be a string or a number.
[[nodiscard]] std::string_view text_at(lua_State* state, int index);

/// lua_call for a function that the script provides. Raises an error if C functions are nested too
/// deeply.
void call(lua_State* state, int arguments, int results);

/// Raises `message` without a position in front.
int raise(lua_State* state, const char* message);

/// Builds a string. Occupies one slot of the Lua stack from its construction on. Its memory counts
/// as the interpreter's; push() frees it, or the garbage collector after an error.
class Builder {
 public:
  explicit Builder(lua_State* state);
  void add(char byte) {
    if (size_ == capacity_) grow(1);
    data_[size_++] = byte;
  }
  void add(std::string_view bytes);
  /// Returns space for `bytes` bytes. After writing, used() says how many were written.
  [[nodiscard]] char* room(std::size_t bytes) {
    if (capacity_ - size_ < bytes) grow(bytes);
    return data_ + size_;
  }
  void used(std::size_t bytes) noexcept {
    SEMEL_ASSERT(bytes <= capacity_ - size_);
    size_ += bytes;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] char* end() noexcept { return data_ + size_; }
  [[nodiscard]] std::string_view bytes() const noexcept { return {data_, size_}; }
  void clear() noexcept { size_ = 0; }
  void drop(std::size_t bytes) noexcept {
    SEMEL_ASSERT(bytes <= size_);
    size_ -= bytes;
  }
  /// Pushes the string.
  void push();

  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

 private:
  struct Block {
    char* data;
    std::size_t bytes;
  };
  static int collect(lua_State* state);
  void grow(std::size_t more);

  lua_State* state_;
  int index_;  ///< stack index of the userdata that owns the block
  Block* block_ = nullptr;
  char* data_;
  std::size_t size_ = 0;
  std::size_t capacity_;
  char small_[136];
};

/// A stack of plain values in the memory of a Builder. Replaces recursion.
template <typename Value>
class Pile {
 public:
  explicit Pile(lua_State* state) : bytes_(state) {}
  void push(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    std::memcpy(bytes_.room(sizeof(Value)), &value, sizeof(Value));
    bytes_.used(sizeof(Value));
  }
  void pop() noexcept { bytes_.drop(sizeof(Value)); }
  [[nodiscard]] Value top() const noexcept {
    SEMEL_ASSERT(bytes_.size() >= sizeof(Value));
    Value value;
    std::memcpy(&value, bytes_.bytes().data() + bytes_.size() - sizeof(Value), sizeof(Value));
    return value;
  }
  void set_top(const Value& value) noexcept {
    pop();
    std::memcpy(bytes_.end(), &value, sizeof(Value));
    bytes_.used(sizeof(Value));
  }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() / sizeof(Value); }

 private:
  Builder bytes_;
};

/// Adds `function` to the table on top of the stack.
void set_function(lua_State* state, const char* name, lua_CFunction function);

}  // namespace semel::lua
