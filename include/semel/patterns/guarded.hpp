// A function that happens once for each key which its arguments make:
//
//   auto charge_once = guarded(orders, "charge", "order:{0}", charge);  // charge(order, cents)
//   auto receipt = charge_once(4711, 1999);                             // key order:4711
//   if (receipt.has_value()) show(*receipt.value);                      // ran now, or replayed
//   charge_once(4711, 2999);                                            // mismatch
//
// It is once() (semel/patterns/once.hpp) with the key made by format_key()
// (semel/patterns/keys.hpp): what could be taken for another key is escaped. The operation and all
// arguments are the call's fingerprint: another operation under a key, or another argument, is a
// mismatch. Source: docs/patterns.md#once
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

  /// Runs the function with these arguments unless it has run, or is running, under the key that
  /// they make. All arguments that the format names must be texts, whole numbers or enumerations;
  /// the others need a Codec. See once(). A key that cannot be made (an empty text) answers refused
  /// with the error of format_key(), and nothing runs; so does an empty operation.
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
  std::string operation_;
  OnceCall call_;
  Result<std::string> format_;
  Function function_;
};

/// `operation` names what the function does, 1..limits::operation_bytes_max bytes, copied; keep it
/// when the function is renamed. `call.key` is the format of the key, copied; the other options but
/// `fingerprint` hold for each call, and the objects they point to must outlive the result. A wrong
/// format makes every call answer refused, and format_error() says why: syntax (a brace without its
/// other half, "{}" beside "{0}", a name that is no number), key_empty (no argument is named: all
/// calls would be one; that is once()).
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
