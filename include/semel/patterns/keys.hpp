// Keys and fingerprints that cannot be mistaken for those of something else: joined fields, scopes,
// formats, digests of payloads, and the time that is inside an id. Pure functions of their
// arguments, from any thread; they allocate what they return and nothing else that lasts.
// Source: docs/keys.md
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "semel/claim.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

// --- keys of several fields ---------------------------------------------------------------------
/// The fields with '|' between them, each '|' and '\' in a field behind a '\': "a|b", "c" is
/// `a\|b|c`. Two lists of fields that differ never give one key. An empty field is a field: "a", ""
/// is `a|`; one that is alone is `\e`. No fields give "", which every call refuses as key_empty.
[[nodiscard]] std::string composite_key(std::span<const Bytes> fields);
[[nodiscard]] std::string composite_key(std::initializer_list<Bytes> fields);

/// The fields of a composite_key(). Errors: syntax (no composite_key() gives this text; names the
/// position).
[[nodiscard]] Result<std::vector<std::string>> split_composite_key(Bytes key);

/// Whose an id is. Empty: none.
struct Scope {
  Bytes tenant{};
  Bytes user{};
  bool needs_tenant = false;  ///< an empty tenant is an error, not shared by all
  bool needs_user = false;
};

/// The composite_key() of tenant, user and id, always these three: one id in two scopes is two
/// keys, and no id can pretend to a scope. Errors: key_empty (names which of the three).
[[nodiscard]] Result<std::string> scoped_key(const Scope& scope, Bytes id);

struct KeyField {
  Bytes name{};
  Bytes value{};
};

/// `format` with each "{name}" replaced by its value, as in "order:{tenant}:{id}"; "{{" and "}}"
/// are braces. In a value each of the bytes : | / , ; # = & { } \ % and blank, and each control
/// character, is a % and two upper-case hexadecimal digits. Two names need one of those bytes, but
/// for %, between them; so two sets of values that differ never give one key of the same format.
/// Fields that the format does not name are left out. Errors name the field and its position:
///   syntax      a brace without its other half, "{}", two names with nothing that parts them
///   bad_option  a name that is not among the fields, or is there twice
///   key_empty   the value of a name is empty, or the format is
[[nodiscard]] Result<std::string> format_key(Bytes format, std::span<const KeyField> fields);
[[nodiscard]] Result<std::string> format_key(Bytes format, std::initializer_list<KeyField> fields);

/// The composite_key() of `name` and the XXH3-128 digest of `payload` with its size: of any size,
/// never longer than the name by more than 64 bytes. For payloads that are as long as a body.
/// Where an attacker may search for a collision: digest_key_sha256() (signed_request.hpp).
[[nodiscard]] std::string digest_key(Bytes name, Bytes payload);

// --- fingerprints -------------------------------------------------------------------------------
/// Fingerprint::algorithm. The numbers are in stored records and are never used for anything else.
/// The xxh3 ones are quick and find mistakes. Where an attacker may search for a collision, use a
/// sha256 one (signed_request.hpp).
enum class FingerprintAlgorithm : std::uint8_t {
  none = 0,
  xxh3_bytes = 1,       ///< XXH3-128 of the bytes
  sha256_bytes = 2,     ///< the first 16 bytes of SHA-256 of the bytes
  xxh3_rfc8785 = 3,     ///< XXH3-128 of canonical_json(), whose numbers are doubles: no longer made
  sha256_rfc8785 = 4,   ///< the first 16 bytes of SHA-256 of the same
  xxh3_parameters = 5,  ///< XXH3-128 of names and values, each behind its length, in order
  xxh3_json = 6,        ///< XXH3-128 of identity_json()
  sha256_json = 7,      ///< the first 16 bytes of SHA-256 of identity_json()
  xxh3_identity = 8,    ///< XXH3-128 of identity_text()
  sha256_identity = 9,  ///< the first 16 bytes of SHA-256 of identity_text()
};

/// Fingerprint of the bytes, xxh3_bytes.
[[nodiscard]] Fingerprint fingerprint_of(Bytes payload);
/// The same within a scope: one payload of two tenants or users has two fingerprints. Tenant and
/// user are hashed behind their lengths, never glued to each other or to the payload. Without a
/// tenant and a user: that of the payload alone. What the scope needs is scoped_key()'s to check.
[[nodiscard]] Fingerprint fingerprint_of(const Scope& scope, Bytes payload);
/// Fingerprint of named parameters in any order, xxh3_parameters: they are sorted by name, and
/// those of one name by value.
[[nodiscard]] Fingerprint fingerprint_of(std::span<const KeyField> parameters);
[[nodiscard]] Fingerprint fingerprint_of(const Scope& scope, std::span<const KeyField> parameters);

// --- the time inside an id ----------------------------------------------------------------------
// In milliseconds since 1970; none: the text is not such an id. The time is what the maker of the
// id said, no more.

/// Of a UUID of version 7 in its usual text of 36 characters, in either case.
[[nodiscard]] std::optional<std::int64_t> unix_ms_of_uuid7(Bytes text) noexcept;
/// Of a ULID of 26 characters, in either case. I, L, O and U are not among its digits.
[[nodiscard]] std::optional<std::int64_t> unix_ms_of_ulid(Bytes text) noexcept;
/// Of a snowflake id, 63 bits whose upper 41 count milliseconds from `epoch_unix_ms` on, as decimal
/// digits without a sign and without leading zeros.
[[nodiscard]] std::optional<std::int64_t> unix_ms_of_snowflake(Bytes digits,
                                                               std::int64_t epoch_unix_ms) noexcept;
/// For ClaimRequest::first_sent_unix_ms: unix_ms_of_uuid7() or else unix_ms_of_ulid(). Only for ids
/// that are meant as one of the two: 26 digits that begin with 0 to 7 are a ULID as well.
[[nodiscard]] std::optional<std::int64_t> first_sent_of(Bytes id) noexcept;

}  // namespace semel
