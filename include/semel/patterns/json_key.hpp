// Keys and fingerprints from JSON: one text for all the texts that say the same (RFC 8785, JCS),
// and members as keys. In the library Semel::json. Pure functions, from any thread; the text is
// read once, and nothing built from it is kept. Source: docs/keys.md
#pragma once

#include <span>
#include <string>

#include "semel/claim.hpp"
#include "semel/patterns/keys.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

/// Which part of a JSON text counts, by JSON pointers (RFC 6901): "/order/id", "" for all of it. A
/// pointer that names nothing is without effect. Members that do not count are treated as absent;
/// an element of an array that does not count is null if a later one counts.
struct JsonFields {
  std::span<const Bytes> only{};    ///< these and all in them; none: everything
  std::span<const Bytes> except{};  ///< of that, not these
};

/// `json` in the one form that RFC 8785 gives it: no blanks, members in the order of their names'
/// UTF-16 code units, numbers as ECMAScript prints the IEEE double that they are (1e3 and 1000.0
/// are 1000, -0 is 0, integers beyond 2^53 are the double next to them), the shortest escapes. For
/// programs that exchange this form. Two numbers that are one double are one text here:
/// identity_json() (identity.hpp) tells them apart, and fingerprints are made of it.
/// Errors, each with what and where:
///   syntax          not JSON, a text that is not UTF-8, a lone surrogate, a name twice in one
///                   object, a number beyond all doubles
///   value_too_long  more than limits::json_bytes_max, json_depth_max or json_values_max
///   bad_option      a pointer that is none, or nothing is left
[[nodiscard]] Result<std::string> canonical_json(Bytes json, const JsonFields& fields = {});

/// Fingerprint of identity_json() (identity.hpp), xxh3_json. Errors: those of identity_json().
[[nodiscard]] Result<Fingerprint> fingerprint_json(Bytes json, const JsonFields& fields = {});
/// The same within a scope, as fingerprint_of() has it.
[[nodiscard]] Result<Fingerprint> fingerprint_json(const Scope& scope, Bytes json,
                                                   const JsonFields& fields = {});

/// What `pointer` names, as text for a key: of a string its characters, of anything else its
/// identity_json(). So 7 and "7" give one text. Errors: those of identity_json(); no_such_key
/// (names the pointer: there is nothing, or null).
[[nodiscard]] Result<std::string> json_at(Bytes json, Bytes pointer);

}  // namespace semel
