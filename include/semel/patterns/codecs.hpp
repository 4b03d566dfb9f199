// Codecs of compound results: optional, pair, tuple, vector, map, and structs of up to twelve
// public members. The bytes begin with the type, so that a result which an earlier release stored
// is read as that type, or not at all:
//
//   struct Receipt { std::uint64_t number; std::string text; };
//   auto receipt = once(orders, key, [&] { return Receipt{...}; });    // stored as ~(u8,s)~...
//
//   ~ TYPE ~ parts;  a part: its bytes' length as decimal digits, ':', the bytes of its Codec
//
// Types: b bool, i1..i8 and u1..u8 integers by their size, f4 f8 f16, s string, e and the type of
// its number an enumeration, - Nothing, ?T optional, [T] vector, (T,U) tuple, pair and struct,
// {K:V} map, x a type with its own encode() and decode(). A struct whose members change their
// meaning and not their type gets a name, which is a part of the type: static constexpr const char*
// semel_type = "receipt/2". Values inside of a part are not tagged again.
//
// Thread safety: pure functions. std::bad_alloc. A decoder answers with none, and allocates no more
// than the bytes it is given stand for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "semel/codec.hpp"

namespace semel {
namespace detail {

/// Converts to anything: finds out how many members a struct has.
struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): never defined
};
template <class T, std::size_t... I>
consteval bool has_members(std::index_sequence<I...>) {
  return requires {
    T{(static_cast<void>(I), AnyMember{})...};
  };
}
inline constexpr std::size_t members_most = 12;
/// Of a struct; 13: it has more, or is no plain struct.
template <class T, std::size_t N = members_most + 1>
consteval std::size_t members_of() {
  if constexpr (has_members<T>(std::make_index_sequence<N>{})) {
    return N;
  } else if constexpr (N != 0) {
    return members_of<T, N - 1>();
  } else {
    return 0;
  }
}

template <class T>
concept HasOwnCodec = requires(const T& value, Bytes bytes) {
  value.encode();
  T::decode(bytes);
};
template <class T>
concept PlainStruct =
    std::is_class_v<T> && std::is_aggregate_v<T> && !HasOwnCodec<T> && !std::same_as<T, Nothing> &&
    members_of<T>() >= 1 && members_of<T>() <= members_most;

/// Calls `with` with references to all members.
template <class T, class With>
decltype(auto) with_members(T& it, With&& with) {
  constexpr std::size_t count = members_of<std::remove_const_t<T>>();
  if constexpr (count == 1) {
    auto& [a] = it;
    return with(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = it;
    return with(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = it;
    return with(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = it;
    return with(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = it;
    return with(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = it;
    return with(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = it;
    return with(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = it;
    return with(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = it;
    return with(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = it;
    return with(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = it;
    return with(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = it;
    return with(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

// --- the parts of a value -----------------------------------------------------------------------

/// How a type is put together; a type without a Shape is one part, by its Codec.
template <class T>
struct Shape;

/// Takes parts off the front.
class PartReader {
 public:
  explicit PartReader(Bytes from) noexcept : from_(from) {}
  /// None: the bytes are not a part.
  [[nodiscard]] std::optional<Bytes> next() noexcept {
    std::size_t size = 0;
    const std::from_chars_result read =
        std::from_chars(from_.data(), from_.data() + from_.size(), size);
    const auto digits = static_cast<std::size_t>(read.ptr - from_.data());
    if (read.ec != std::errc{} || digits == from_.size() || *read.ptr != ':') return std::nullopt;
    if (size > from_.size() - digits - 1) return std::nullopt;
    const Bytes part = from_.substr(digits + 1, size);
    from_.remove_prefix(digits + 1 + size);
    return part;
  }
  [[nodiscard]] bool is_at_end() const noexcept { return from_.empty(); }

 private:
  Bytes from_;
};

template <class T>
concept Shaped = requires {
  Shape<T>::type();
};

template <class T>
std::string encode_parts(const T& value) {
  if constexpr (Shaped<T>) {
    return Shape<T>::encode(value);
  } else {
    return Codec<T>::encode(value);
  }
}
template <class T>
std::optional<T> decode_parts(Bytes bytes) {
  if constexpr (Shaped<T>) {
    return Shape<T>::decode(bytes);
  } else {
    return Codec<T>::decode(bytes);
  }
}
template <class T>
void add_part(std::string& to, const T& value) {
  const std::string bytes = encode_parts(value);
  to.append(std::to_string(bytes.size())).append(1, ':').append(bytes);
}
/// False: there is none, or it cannot be read.
template <class T>
bool take_part(PartReader& from, T& value) {
  const std::optional<Bytes> part = from.next();
  if (!part) return false;
  std::optional<T> read = decode_parts<T>(*part);
  if (!read) return false;
  value = std::move(*read);
  return true;
}

template <class T>
std::string type_of() {
  if constexpr (Shaped<T>) {
    return Shape<T>::type();
  } else if constexpr (std::same_as<T, bool>) {
    return "b";
  } else if constexpr (std::is_enum_v<T>) {
    return "e" + type_of<std::underlying_type_t<T>>();
  } else if constexpr (std::is_floating_point_v<T>) {
    return "f" + std::to_string(sizeof(T));
  } else if constexpr (std::is_integral_v<T>) {
    return (std::is_signed_v<T> ? "i" : "u") + std::to_string(sizeof(T));
  } else if constexpr (std::same_as<T, std::string>) {
    return "s";
  } else if constexpr (std::same_as<T, Nothing>) {
    return "-";
  } else {
    return "x";
  }
}

/// Members of a struct or a tuple, one after the other.
template <class... T>
std::string encode_members(const T&... members) {
  std::string bytes;
  (add_part(bytes, members), ...);
  return bytes;
}
template <class... T>
bool decode_members(Bytes bytes, T&... members) {
  PartReader from{bytes};
  return (take_part(from, members) && ...) && from.is_at_end();
}
template <class... T>
std::string type_of_members() {
  std::string type;
  ((type += (type.empty() ? "(" : ",") + type_of<T>()), ...);
  return type.empty() ? "()" : type + ")";
}

template <class T>
struct Shape<std::optional<T>> {
  static std::string type() { return "?" + type_of<T>(); }
  static std::string encode(const std::optional<T>& value) {
    return value ? encode_members(*value) : std::string{};
  }
  static std::optional<std::optional<T>> decode(Bytes bytes) {
    if (bytes.empty()) return std::optional<T>{};
    T value{};
    if (!decode_members(bytes, value)) return std::nullopt;
    return std::optional<T>{std::move(value)};
  }
};

template <class T>
struct Shape<std::vector<T>> {
  static std::string type() { return "[" + type_of<T>() + "]"; }
  static std::string encode(const std::vector<T>& value) {
    std::string bytes;
    for (const T& each : value) add_part(bytes, each);
    return bytes;
  }
  static std::optional<std::vector<T>> decode(Bytes bytes) {
    std::vector<T> value;
    PartReader from{bytes};
    while (!from.is_at_end()) {
      T each{};
      if (!take_part(from, each)) return std::nullopt;
      value.push_back(std::move(each));
    }
    return value;
  }
};

template <class K, class V>
struct Shape<std::map<K, V>> {
  static std::string type() { return "{" + type_of<K>() + ":" + type_of<V>() + "}"; }
  static std::string encode(const std::map<K, V>& value) {
    std::string bytes;
    for (const auto& [key, each] : value) {
      add_part(bytes, key);
      add_part(bytes, each);
    }
    return bytes;
  }
  static std::optional<std::map<K, V>> decode(Bytes bytes) {
    std::map<K, V> value;
    PartReader from{bytes};
    while (!from.is_at_end()) {
      K key{};
      V each{};
      if (!take_part(from, key) || !take_part(from, each)) return std::nullopt;
      if (!value.emplace(std::move(key), std::move(each)).second) return std::nullopt;
    }
    return value;
  }
};

template <class... T>
struct Shape<std::tuple<T...>> {
  static std::string type() { return type_of_members<T...>(); }
  static std::string encode(const std::tuple<T...>& value) {
    return std::apply([](const T&... each) { return encode_members(each...); }, value);
  }
  static std::optional<std::tuple<T...>> decode(Bytes bytes) {
    std::tuple<T...> value{};
    if (!std::apply([&](T&... each) { return decode_members(bytes, each...); }, value)) {
      return std::nullopt;
    }
    return value;
  }
};

template <class A, class B>
struct Shape<std::pair<A, B>> {
  static std::string type() { return type_of_members<A, B>(); }
  static std::string encode(const std::pair<A, B>& value) {
    return encode_members(value.first, value.second);
  }
  static std::optional<std::pair<A, B>> decode(Bytes bytes) {
    std::pair<A, B> value{};
    if (!decode_members(bytes, value.first, value.second)) return std::nullopt;
    return value;
  }
};

template <PlainStruct T>
struct Shape<T> {
  static std::string type() {
    T sample{};
    const std::string members = with_members(sample, [](auto&... each) {
      return type_of_members<std::remove_cvref_t<decltype(each)>...>();
    });
    if constexpr (requires { std::string{T::semel_type}; }) return T::semel_type + members;
    return members;
  }
  static std::string encode(const T& value) {
    return with_members(value, [](const auto&... each) { return encode_members(each...); });
  }
  static std::optional<T> decode(Bytes bytes) {
    T value{};
    const bool is_read =
        with_members(value, [&](auto&... each) { return decode_members(bytes, each...); });
    if (!is_read) return std::nullopt;
    return value;
  }
};

}  // namespace detail

template <detail::Shaped T>
struct Codec<T> {
  static std::string encode(const T& value) { return head() + detail::encode_parts(value); }
  static std::optional<T> decode(Bytes bytes) {
    const std::string expected = head();
    if (!bytes.starts_with(expected)) return std::nullopt;
    return detail::decode_parts<T>(bytes.substr(expected.size()));
  }

 private:
  static std::string head() { return "~" + detail::type_of<T>() + "~"; }
};

}  // namespace semel
