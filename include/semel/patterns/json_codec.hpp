// Results as JSON text, which other programs and people can read:
//
//   struct Receipt { std::uint64_t number; std::string text; };
//   BOOST_DESCRIBE_STRUCT(Receipt, (), (number, text))          // or tag_invoke of Boost.JSON
//   template <>
//   struct semel::Codec<Receipt> : semel::JsonCodec<Receipt> {};
//
//   auto receipt = once(orders, key, [&] { return Receipt{...}; });  // {"number":1,"text":"paid"}
//
// Needs Boost.JSON: its headers, and its code, which Semel::json has (or Boost's own library).
#pragma once

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <cmath>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include "semel/codec.hpp"

namespace semel {
namespace detail {

/// Why JSON text of it could not be read again; null: it can. Boost.JSON writes an infinite number
/// as "Infinity", which is no JSON, and reads 1e6210 as one.
inline const char* unreadable_json(const boost::json::value& value, std::size_t depth_max) {
  if (const double* number = value.if_double()) {
    return std::isfinite(*number) ? nullptr : "JSON has no number that is infinite or not a number";
  }
  const boost::json::array* array = value.if_array();
  const boost::json::object* object = value.if_object();
  if (array == nullptr && object == nullptr) return nullptr;
  if (depth_max == 0) return "JSON text nested deeper than JsonCodec::depth_max";
  if (array != nullptr) {
    for (const auto& each : *array) {
      if (const char* why = unreadable_json(each, depth_max - 1)) return why;
    }
    return nullptr;
  }
  for (const auto& each : *object) {
    if (const char* why = unreadable_json(each.value(), depth_max - 1)) return why;
  }
  return nullptr;
}

}  // namespace detail

/// By boost::json::value_from and value_to. Fields that a later program adds are ignored by an
/// earlier one only if its conversion does so; one that BOOST_DESCRIBE_STRUCT makes wants all of
/// its members. Thread safety: pure functions. std::bad_alloc.
template <class T>
struct JsonCodec {
  /// Nesting of texts written and read; encode() never writes deeper text.
  static constexpr std::size_t depth_max = 32;

  /// What value_from throws; std::range_error for what could not be read again: a number that is
  /// infinite or not a number, nesting deeper than depth_max.
  static std::string encode(const T& value) {
    const boost::json::value made = boost::json::value_from(value);
    if (const char* why = detail::unreadable_json(made, depth_max)) throw std::range_error{why};
    return boost::json::serialize(made);
  }
  /// None: it is no JSON, not that of a T, or has a number beyond all doubles.
  static std::optional<T> decode(Bytes bytes) {
    boost::json::parse_options options;
    options.max_depth = depth_max;
    boost::json::error_code error;
    const boost::json::value read =
        boost::json::parse({bytes.data(), bytes.size()}, error, {}, options);
    if (error || detail::unreadable_json(read, depth_max) != nullptr) return std::nullopt;
    auto found = boost::json::try_value_to<T>(read);  // another type, or refused by a conversion
    if (found.has_error()) return std::nullopt;
    return *std::move(found);
  }
};

}  // namespace semel
