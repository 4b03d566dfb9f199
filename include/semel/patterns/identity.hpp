// Identity of a call: operation, scope and arguments as one text, equal in every language. Keys and
// fingerprints are digests of it. In the library Semel::json; identity_key() in Semel::signed. Pure
// functions, from any thread. Source: docs/identity.md
//
//   const CallIdentity call{.operation = "pay", .arguments = R"({"order":4711,"cents":1999})"};
//   auto claim = orders.claim({.key = "order-4711", .fingerprint = *fingerprint_identity(call)});
//   // another amount, or "refund" under the same key, is a mismatch
#pragma once

#include <string>

#include "semel/claim.hpp"
#include "semel/patterns/json_key.hpp"
#include "semel/patterns/keys.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

/// The canonical form of `json`: as canonical_json(), but each number is its exact decimal value,
/// and an object with the one member "$set" or "$map" is a set or a map, in one order.
/// Errors: those of canonical_json(); syntax also for a number with a digit more than
/// limits::json_places_max places from the point, and for a map that has a key twice.
[[nodiscard]] Result<std::string> identity_json(Bytes json, const JsonFields& fields = {});

/// `text` as a string of JSON. Bytes that are not UTF-8 stay as they are; the functions of this
/// header refuse them as syntax.
[[nodiscard]] std::string json_string(Bytes text);

struct CallIdentity {
  Bytes operation{};       ///< 1..limits::operation_bytes_max bytes of UTF-8
  Scope scope{};           ///< tenant and user that are empty are not there
  Bytes arguments = "{}";  ///< JSON: an object by names, or a payload; {}: none
};

/// The canonical text of [operation, scope, arguments].
/// Errors: key_empty (operation, or what the scope needs), key_too_long (operation), syntax
/// (a text that is not UTF-8), those of identity_json().
[[nodiscard]] Result<std::string> identity_text(const CallIdentity& call);
/// Fingerprint of identity_text(), xxh3_identity. Errors: those of identity_text().
[[nodiscard]] Result<Fingerprint> fingerprint_identity(const CallIdentity& call);
/// A key for the call: 64 lower-case hexadecimal digits of SHA-256 of an identity_text(). "", which
/// every call refuses as key_empty: libcrypto has failed. The fingerprint sha256_identity is
/// fingerprint_sha256(text, FingerprintAlgorithm::sha256_identity).
[[nodiscard]] std::string identity_key(Bytes text);

}  // namespace semel
