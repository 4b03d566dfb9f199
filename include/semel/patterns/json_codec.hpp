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
#include <optional>
#include <string>

#include "semel/codec.hpp"

namespace semel {

/// By boost::json::value_from and value_to. Fields that a later program adds are ignored by an
/// earlier one only if its conversion does so; one that BOOST_DESCRIBE_STRUCT makes wants all of
/// its members. Thread safety: pure functions. std::bad_alloc.
template <class T>
struct JsonCodec {
  /// Nesting of what is read; deeper text is none of ours.
  static constexpr std::size_t depth_max = 32;

  /// What value_from throws.
  static std::string encode(const T& value) {
    return boost::json::serialize(boost::json::value_from(value));
  }
  /// None: it is no JSON, or not that of a T.
  static std::optional<T> decode(Bytes bytes) {
    boost::json::parse_options options;
    options.max_depth = depth_max;
    boost::json::error_code error;
    const boost::json::value read =
        boost::json::parse({bytes.data(), bytes.size()}, error, {}, options);
    if (error) return std::nullopt;
    auto found = boost::json::try_value_to<T>(read);  // another type, or refused by a conversion
    if (found.has_error()) return std::nullopt;
    return *std::move(found);
  }
};

}  // namespace semel
