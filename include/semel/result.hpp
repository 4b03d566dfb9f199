// Value or error. Member names follow std::expected, so that a later swap is a `using`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace semel {

enum class Retry : std::uint8_t { never, later, read_first };

enum class ErrorCode : std::uint16_t {
#define SEMEL_X(name, number, retry, prefix, sentence) name = (number),
#include "semel/error_codes.def"
#undef SEMEL_X
};

/// Whether repeating the call can help.
[[nodiscard]] constexpr Retry retry_of(ErrorCode code) noexcept {
  switch (code) {
#define SEMEL_X(name, number, retry, prefix, sentence) \
  case ErrorCode::name:                                \
    return Retry::retry;
#include "semel/error_codes.def"
#undef SEMEL_X
  }
  return Retry::never;
}

/// One sentence for people. Never changes the meaning of a code between releases.
[[nodiscard]] constexpr std::string_view sentence_of(ErrorCode code) noexcept {
  switch (code) {
#define SEMEL_X(name, number, retry, prefix, sentence) \
  case ErrorCode::name:                                \
    return sentence;
#include "semel/error_codes.def"
#undef SEMEL_X
  }
  return "unknown error";
}

/// The first word of a node's error reply.
[[nodiscard]] constexpr std::string_view resp_prefix_of(ErrorCode code) noexcept {
  switch (code) {
#define SEMEL_X(name, number, retry, prefix, sentence) \
  case ErrorCode::name:                                \
    return prefix;
#include "semel/error_codes.def"
#undef SEMEL_X
  }
  return "ERR";
}

/// The name of a code as written in error_codes.def.
[[nodiscard]] constexpr std::string_view name_of(ErrorCode code) noexcept {
  switch (code) {
#define SEMEL_X(name, number, retry, prefix, sentence) \
  case ErrorCode::name:                                \
    return #name;
#include "semel/error_codes.def"
#undef SEMEL_X
  }
  return "unknown";
}

struct Error {
  ErrorCode code = ErrorCode::ok;
  std::string detail;  ///< names the value and the limit; built on the cold path only

  /// The sentence of the code, followed by the detail if there is one.
  [[nodiscard]] std::string message() const {
    std::string text{sentence_of(code)};
    if (!detail.empty()) text.append(": ").append(detail);
    return text;
  }
};

namespace detail {

/// Whether a value of T is itself an answer that callers would test in an `if`: yes or no, a
/// number, an enum, something or nothing. An owner (std::unique_ptr) is none: it is never null.
/// A struct declares it with `using is_answer = void`.
template <class T>
concept Answer = std::is_enum_v<T> || requires {
  typename T::is_answer;
} ||(std::is_constructible_v<bool, const T&> && !requires { typename T::element_type; });

}  // namespace detail

/// Value or Error. A wrong access throws std::bad_variant_access: a bug, not a control path.
///
/// `if (result)` asks whether there is a value. Where the value is an answer in its own right, as
/// in `if (store.setnx(key, value))`, that is not what its reader means, so it does not compile:
/// ask ok() for success, and `*result` for the answer.
template <class T>
class [[nodiscard]] Result {
 public:
  /// A value that is made in place, of these arguments.
  template <class... Args>
  explicit Result(std::in_place_t, Args&&... args)
      : state_(std::in_place_index<0>, std::forward<Args>(args)...) {}
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // `return value;`
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // `return Error{..};`

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  [[nodiscard]] bool ok() const noexcept { return has_value(); }
  explicit operator bool() const noexcept requires(!detail::Answer<T>) { return has_value(); }
  // An `if` would take the success of the call for its answer. Write `*result` or `result.ok()`.
  explicit operator bool() const noexcept requires detail::Answer<T>
  = delete;

  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or Error.
struct Done {};
using Status = Result<Done>;

#define SEMEL_TRY_JOIN2(a, b) a##b
#define SEMEL_TRY_JOIN(a, b) SEMEL_TRY_JOIN2(a, b)
/// `SEMEL_TRY(name, expression)`: declares `name` with the value, or returns the error.
#define SEMEL_TRY(name, ...)                                                             \
  auto SEMEL_TRY_JOIN(name, _result) = (__VA_ARGS__);                                    \
  if (!SEMEL_TRY_JOIN(name, _result).ok()) return SEMEL_TRY_JOIN(name, _result).error(); \
  auto name = *std::move(SEMEL_TRY_JOIN(name, _result))
/// `SEMEL_CHECK(expression);`: returns the error if there is one; a value is dropped.
#define SEMEL_CHECK(...)                                   \
  do {                                                     \
    auto semel_checked = (__VA_ARGS__);                    \
    if (!semel_checked.ok()) return semel_checked.error(); \
  } while (false)

}  // namespace semel
