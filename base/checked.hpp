// Arithmetic that says when the result is out of range.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>

namespace semel::base {

// Nothing: the result does not fit into T. Overflow of signed numbers is undefined otherwise.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, std::type_identity_t<T> b) noexcept {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_sub(T a, std::type_identity_t<T> b) noexcept {
  T result{};
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, std::type_identity_t<T> b) noexcept {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

}  // namespace semel::base
