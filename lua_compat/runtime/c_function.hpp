// What C functions of a script's libraries share: arguments as Lua 5.1 reads them, and bytes that
// are put together. All of it may raise Lua errors, so nothing here has a destructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// Numbers as integers the way Lua 5.1 makes them on x86-64: cut towards zero; what does not fit
/// is the smallest one.
[[nodiscard]] std::int64_t to_integer(double number) noexcept;
/// The same without a sign; negative ones wrap.
[[nodiscard]] std::uint64_t to_unsigned(double number) noexcept;

[[nodiscard]] std::int64_t integer_argument(lua_State* state, int index);
[[nodiscard]] std::int64_t integer_argument_or(lua_State* state, int index, std::int64_t otherwise);
/// The lower 32 bits, as an int of C keeps them.
[[nodiscard]] int int_argument(lua_State* state, int index);
[[nodiscard]] int int_argument_or(lua_State* state, int index, int otherwise);

/// The longest text of number_text(), its end included.
inline constexpr std::size_t number_text_bytes = 32;
/// As tostring() of 5.1, "-nan" included, which LuaJIT does not tell from "nan".
std::string_view number_text(double number, char (&text)[number_text_bytes]) noexcept;
/// A string, or a number as its text. Valid as long as the argument stays on the stack.
[[nodiscard]] std::string_view text_argument(lua_State* state, int index);
/// The value at a positive `index`, if text or number; the same.
[[nodiscard]] std::string_view text_at(lua_State* state, int index);

/// As lua_call, of functions that a script gave; raises an error instead of the 201st within each
/// other, as 5.1 does.
void call(lua_State* state, int arguments, int results);

/// An error of a message without the place where it happened.
int raise(lua_State* state, const char* message);

/// Bytes that a function puts together. Keeps one place of the stack from its making on. Its memory
/// is the interpreter's, given back by push() or, after an error, by the garbage collector.
class Builder {
 public:
  explicit Builder(lua_State* state);
  void add(char byte) {
    if (size_ == capacity_) grow(1);
    data_[size_++] = byte;
  }
  void add(std::string_view bytes);
  /// Room for so many bytes, which used() then counts as written.
  [[nodiscard]] char* room(std::size_t bytes) {
    if (capacity_ - size_ < bytes) grow(bytes);
    return data_ + size_;
  }
  void used(std::size_t bytes) noexcept { size_ += bytes; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] char* end() noexcept { return data_ + size_; }
  [[nodiscard]] std::string_view bytes() const noexcept { return {data_, size_}; }
  void clear() noexcept { size_ = 0; }
  void drop(std::size_t bytes) noexcept { size_ -= bytes; }
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
  int index_;  ///< where the owner of the block stands
  Block* block_ = nullptr;
  char* data_;
  std::size_t size_ = 0;
  std::size_t capacity_;
  char small_[136];
};

/// A stack of plain values, in memory as that of a Builder; for what must not recurse.
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

/// Adds to the table on top of the stack.
void set_function(lua_State* state, const char* name, lua_CFunction function);

}  // namespace semel::lua
