// How results become the bytes that a claim keeps, and back. For a type of your own either give it
// two functions,
//
//   struct Receipt {
//     int number;
//     std::string encode() const { return std::to_string(number); }
//     static std::optional<Receipt> decode(semel::Bytes bytes);
//   };
//
// or, where the type is not yours, specialise semel::Codec. Stored bytes may be read years later: a
// decoder that meets bytes of an older form answers with a value or with none, never with a guess.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>

#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

/// The value of a function without a result.
struct Nothing {
  friend bool operator==(const Nothing&, const Nothing&) = default;
};

/// A function returns this error (in a Result, or as a Status) if the outcome of its work is
/// unknown: the reply was lost, or the other side timed out. It is not a failure:
/// Policy::on_exception decides, as after an exception. `known`: the facts for an operator.
[[nodiscard]] inline Error unknown_outcome(std::string known = {}) {
  return {ErrorCode::outcome_unknown, std::move(known)};
}
/// Whether an error of a function means an unknown outcome.
[[nodiscard]] inline bool is_unknown_outcome(const Error& error) noexcept {
  return error.code == ErrorCode::outcome_unknown;
}

/// Not meant for types that it has no form for.
template <class T>
struct Codec {
  static std::string encode(const T& value) requires requires {
    { value.encode() } -> std::convertible_to<std::string>;
  }
  { return value.encode(); }
  static std::optional<T> decode(Bytes bytes) requires requires {
    { T::decode(bytes) } -> std::convertible_to<std::optional<T>>;
  }
  { return T::decode(bytes); }
};

template <>
struct Codec<std::string> {
  static const std::string& encode(const std::string& value) noexcept { return value; }
  static std::optional<std::string> decode(Bytes bytes) { return std::string{bytes}; }
};

template <>
struct Codec<Nothing> {
  static std::string encode(const Nothing&) { return {}; }
  static std::optional<Nothing> decode(Bytes) noexcept { return Nothing{}; }
};

template <>
struct Codec<bool> {
  static std::string encode(bool value) { return value ? "1" : "0"; }
  static std::optional<bool> decode(Bytes bytes) noexcept {
    if (bytes == "1" || bytes == "0") return bytes == "1";
    return std::nullopt;
  }
};

/// Numbers as decimal text; floating-point numbers with the digits that restore the same value.
template <class T>
requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) struct Codec<T> {
  static std::string encode(T value) {
    char text[64];
    const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
    return {text, end.ptr};
  }
  static std::optional<T> decode(Bytes bytes) noexcept {
    T value{};
    const char* const end = bytes.data() + bytes.size();
    const std::from_chars_result read = std::from_chars(bytes.data(), end, value);
    if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
    return value;
  }
};

/// Numbers of an enumeration.
template <class T>
requires std::is_enum_v<T>
struct Codec<T> {
  using Number = Codec<std::underlying_type_t<T>>;
  static std::string encode(T value) {
    return Number::encode(static_cast<std::underlying_type_t<T>>(value));
  }
  static std::optional<T> decode(Bytes bytes) noexcept {
    const auto number = Number::decode(bytes);
    if (!number) return std::nullopt;
    return static_cast<T>(*number);
  }
};

/// Codecs that always decode the value that they have encoded: those of values without parts.
template <class T>
concept ExactCodec =
    std::is_same_v<T, std::string> || std::is_same_v<T, Nothing> || std::is_arithmetic_v<T>;

template <class T>
concept Encodable = requires(const T& value, Bytes bytes) {
  { Codec<T>::encode(value) } -> std::convertible_to<std::string>;
  { Codec<T>::decode(bytes) } -> std::convertible_to<std::optional<T>>;
};

namespace detail {

/// Decodes the bytes of an encoded value. False: they are not readable, or are another value. The
/// decoded value replaces one without equality, so that this and later callers get the same value.
template <Encodable T>
[[nodiscard]] bool reread(T& value, Bytes bytes) {
  std::optional<T> again = Codec<T>::decode(bytes);
  if (!again) return false;
  if constexpr (std::equality_comparable<T>) {
    // Compare a value that is not equal to itself (NaN) by its bytes.
    return value == value ? *again == value : Codec<T>::encode(*again) == bytes;
  } else {
    static_assert(std::is_move_assignable_v<T>, "give the result's type operator==");
    value = *std::move(again);
    return true;
  }
}

}  // namespace detail
}  // namespace semel
