// A function that happens once for each key which its arguments make:
//
//   auto charge_once = guarded(orders, "charge:{}:{}", charge);    // charge(customer, order)
//   auto receipt = charge_once("anna", 4711);                      // key charge:anna:4711
//   if (receipt.has_value()) show(*receipt.value);                 // ran now, or replayed
//
// It is once() (semel/patterns/once.hpp) with the key made by format_key()
// (semel/patterns/keys.hpp): what could be taken for another key is escaped. Source:
// docs/patterns.md#once
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "semel/claims.hpp"
#include "semel/patterns/keys.hpp"
#include "semel/patterns/once.hpp"

namespace semel {
namespace detail {

/// What a key may be made of: text, whole numbers, enumerations. Floating numbers have too many
/// texts.
template <class T>
concept KeyArgument = std::convertible_to<const T&, Bytes> ||
                      (std::is_integral_v<T> && !std::same_as<T, bool>) ||
                      std::is_enum_v<T>;

template <KeyArgument T>
std::string key_text(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return key_text(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_integral_v<T>) {
    char text[24];
    const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
    return {text, end.ptr};
  } else {
    return std::string{Bytes{value}};
  }
}

/// "{}" are the arguments in turn: "{0}", "{1}" and so on, which may be written out as well, in any
/// order. A format has one kind of them.
[[nodiscard]] Result<std::string> numbered_format(Bytes format);
/// `values`: of the arguments. Errors: those of format_key(); bad_option (an argument that is not
/// there).
[[nodiscard]] Result<std::string> guarded_key(Bytes format, std::span<const std::string> values);

}  // namespace detail

/// Made by guarded(). Calls from several threads are safe if those of the function are.
template <class Function>
class Guarded {
 public:
  Guarded(Claims claims, const OnceCall& call, Function function)
      : claims_(std::move(claims)),
        call_(call),
        format_(detail::numbered_format(call.key)),
        function_(std::move(function)) {}

  /// Runs the function with these arguments unless it has run, or is running, under the key that
  /// they make. All arguments that the format names must be texts, whole numbers or enumerations;
  /// others go to the function alone. See once(). A key that cannot be made (an empty text) answers
  /// refused with the error of format_key(), and nothing runs.
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) const {
    const std::array<std::string, sizeof...(Arguments)> values{value_of(arguments)...};
    const Result<std::string> key = format_ ? detail::guarded_key(*format_, values) : format_;
    OnceCall call = call_;
    if (key) call.key = *key;
    const auto run = [&] { return function_(std::forward<Arguments>(arguments)...); };
    using Outcome = decltype(once(std::declval<Claims&>(), call, run));
    if (!key) {
      Outcome refused;
      refused.answer = OnceAnswer::refused;
      refused.error = key.error();
      return refused;
    }
    Claims claims = claims_;
    return once(claims, call, run);
  }
  /// Of the format; ok: it can make keys.
  [[nodiscard]] Error format_error() const { return format_ ? Error{} : format_.error(); }

 private:
  template <class T>
  static std::string value_of(const T& argument) {
    if constexpr (detail::KeyArgument<T>) {
      return detail::key_text(argument);
    } else {
      return {};  // the format cannot name it: an empty value is refused
    }
  }

  Claims claims_;
  OnceCall call_;
  Result<std::string> format_;
  Function function_;
};

/// `call.key` is the format of the key, copied; the other options hold for each call, and what they
/// point to must live as long as what is returned. A wrong format makes every call answer refused,
/// and format_error() says why: syntax (a brace without its other half, "{}" beside "{0}", a name
/// that is no number), key_empty (no argument is named: all calls would be one; that is once()).
template <class Function>
[[nodiscard]] Guarded<std::decay_t<Function>> guarded(Claims claims, const OnceCall& call,
                                                      Function&& function) {
  return {std::move(claims), call, std::forward<Function>(function)};
}
template <class Function>
[[nodiscard]] Guarded<std::decay_t<Function>> guarded(Claims claims, Bytes format,
                                                      Function&& function) {
  return guarded(std::move(claims), OnceCall{.key = format}, std::forward<Function>(function));
}

}  // namespace semel
