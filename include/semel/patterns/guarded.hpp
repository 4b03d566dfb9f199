// A function that runs once for each key; its arguments make the key:
//
//   auto charge_once = guarded(orders, "charge", "order:{0}", charge);  // charge(order, cents)
//   auto receipt = charge_once(4711, 1999);                             // key order:4711
//   if (receipt.has_value()) show(*receipt.value);                      // ran now, or replayed
//   charge_once(4711, 2999);                                            // mismatch
//
// It is once() (semel/patterns/once.hpp) with a key that format_key() (semel/patterns/keys.hpp)
// makes, which escapes arguments so that two of them never make the same key. The operation and all
// arguments are the fingerprint of the call: another operation or another argument under the same
// key is a mismatch. Source: docs/patterns.md#once
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

/// An argument that can be part of a key: text, an integer or an enumeration. Floating-point
/// numbers have too many texts.
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

/// An argument that distinguishes calls.
template <class T>
concept CallArgument = KeyArgument<T> || Encodable<T>;

template <class T>
std::string argument_text(const T& value) {
  static_assert(CallArgument<T>,
                "the argument has no form, so calls with different ones would be one: give its "
                "type encode() and decode(), or a Codec, or bind it in the function");
  if constexpr (KeyArgument<T>) {
    return key_text(value);
  } else if constexpr (Encodable<T>) {
    return Codec<T>::encode(value);
  } else {
    return {};
  }
}

/// Of a call of `operation` with arguments of these texts.
[[nodiscard]] Fingerprint guarded_fingerprint(Bytes operation,
                                              std::span<const std::string> arguments);

/// "{}" are the arguments in turn: "{0}", "{1}" and so on, which may be written out as well, in any
/// order. A format has one kind of them.
[[nodiscard]] Result<std::string> numbered_format(Bytes format);
/// Errors: key_empty, key_too_long; ok.
[[nodiscard]] Error check_operation(Bytes operation);
/// `values`: of the arguments. Errors: those of format_key(); bad_option (an argument that is not
/// there).
[[nodiscard]] Result<std::string> guarded_key(Bytes format, std::span<const std::string> values);

}  // namespace detail

/// Made by guarded(). Calls from several threads are safe if those of the function are.
template <class Function>
class Guarded {
 public:
  Guarded(Claims claims, Bytes operation, const OnceCall& call, Function function)
      : claims_(std::move(claims)),
        operation_(operation),
        call_(call),
        format_(detail::numbered_format(call.key)),
        function_(std::move(function)) {}

  /// Runs the function with these arguments unless it has run, or is running, under their key, see
  /// once(). Arguments that the format names must be texts, integers or enumerations; other
  /// arguments need a Codec. If the arguments make no key (an empty text), or the operation is
  /// empty, the answer is refused with the error of format_key(), and nothing runs.
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) const {
    const std::array<std::string, sizeof...(Arguments)> values{value_of(arguments)...};
    const Result<std::string> key = format_ ? detail::guarded_key(*format_, values) : format_;
    OnceCall call = call_;
    if (key) call.key = *key;
    const std::array<std::string, sizeof...(Arguments)> texts{detail::argument_text(arguments)...};
    call.fingerprint = detail::guarded_fingerprint(operation_, texts);
    const auto run = [&] { return function_(std::forward<Arguments>(arguments)...); };
    using Outcome = decltype(once(std::declval<Claims&>(), call, run));
    if (const Error error = key ? detail::check_operation(operation_) : key.error();
        error.code != ErrorCode::ok) {
      Outcome refused;
      refused.answer = OnceAnswer::refused;
      refused.error = error;
      return refused;
    }
    Claims claims = claims_;
    return once(claims, call, run);
  }
  /// The error of the format; ok: it can make keys.
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
  std::string operation_;
  OnceCall call_;
  Result<std::string> format_;
  Function function_;
};

/// `operation` names the effect of the function, 1..limits::operation_bytes_max bytes, copied; keep
/// it when the function is renamed. `call.key` is the format of the key, copied. The other options
/// except `fingerprint` apply to each call, and the objects that they point to must outlive the
/// result. With a wrong format every call answers refused, and format_error() has the reason:
/// syntax (an unbalanced brace, "{}" beside "{0}", a name that is no number), key_empty (the format
/// names no argument: all calls would be one, as with once()).
template <class Function>
[[nodiscard]] Guarded<std::decay_t<Function>> guarded(Claims claims, Bytes operation,
                                                      const OnceCall& call, Function&& function) {
  return {std::move(claims), operation, call, std::forward<Function>(function)};
}
template <class Function>
[[nodiscard]] Guarded<std::decay_t<Function>> guarded(Claims claims, Bytes operation, Bytes format,
                                                      Function&& function) {
  return guarded(std::move(claims), operation, OnceCall{.key = format},
                 std::forward<Function>(function));
}

}  // namespace semel
