// Signed requests: the signed text, the algorithms, and the comparison. In the library
// Semel::signed, which needs libcrypto. Pure functions, from any thread.
// Source: docs/keys.md
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "semel/claim.hpp"
#include "semel/patterns/keys.hpp"
#include "semel/types.hpp"

namespace semel {

/// HMAC-SHA-256 as 64 lower-case hexadecimal digits. "" if libcrypto does not compute it.
[[nodiscard]] std::string hmac_sha256_hex(Bytes secret, Bytes text);
/// MD5 as 32 lower-case hexadecimal digits, for SignatureScheme::md5_sorted_parameters alone: it
/// protects nothing else. "" if libcrypto does not compute it (it may be configured not to).
[[nodiscard]] std::string md5_hex(Bytes text);
/// Whether both are the same, in a time that depends on their lengths only.
[[nodiscard]] bool equal_in_constant_time(Bytes one, Bytes other) noexcept;

/// As digest_key(), with the whole SHA-256 digest: for payloads that an attacker may have
/// chosen so that two have one key. Empty, which every call refuses as key_empty: libcrypto has
/// failed.
[[nodiscard]] std::string digest_key_sha256(Bytes name, Bytes payload);

/// The first 16 bytes of SHA-256 of the bytes. `algorithm` says what they are: sha256_json if
/// identity_json() gave them, sha256_identity if identity_text() did. Algorithm none if libcrypto
/// does not compute it.
[[nodiscard]] Fingerprint fingerprint_sha256(
    Bytes payload, FingerprintAlgorithm algorithm = FingerprintAlgorithm::sha256_bytes);
/// The same within a scope: HMAC-SHA-256 with tenant and user, each behind its length, as the key.
/// Without a tenant and a user: that of the payload alone.
[[nodiscard]] Fingerprint fingerprint_sha256(
    const Scope& scope, Bytes payload,
    FingerprintAlgorithm algorithm = FingerprintAlgorithm::sha256_bytes);

/// "name=value" joined with '&', sorted by name and then by value as bytes. All but the unreserved
/// characters of RFC 3986 (A-Z a-z 0-9 - . _ ~) is a % and two upper-case hexadecimal digits, so
/// that no value can pretend to be a parameter.
[[nodiscard]] std::string canonical_parameters(std::span<const KeyField> parameters);

/// A request as it arrived. The signature covers everything else in it.
struct SignedRequest {
  Bytes caller{};                        ///< the signer; 0..limits::signed_caller_max bytes
  std::span<const KeyField> parameters;  ///< up to limits::signed_parameters_max
  std::int64_t timestamp_unix_ms = 0;    ///< when it was signed; 0..253402300799999 (year 9999)
  Bytes nonce{};                         ///< never used before; 1..limits::signed_nonce_max bytes
  Bytes signature{};                     ///< hexadecimal, in either case
};

enum class SignatureScheme : std::uint8_t {
  /// hmac_sha256_hex() with the secret of
  ///   "semel-request-v1\n" caller "\n" timestamp "\n" nonce "\n" canonical_parameters(),
  /// caller and nonce written as canonical_parameters() writes a value.
  hmac_sha256,
  /// For callers that cannot do better: md5_hex() of canonical_parameters() of the parameters with
  /// "nonce", "timestamp" and, unless it is empty, "caller" among them, and then "&key=" and the
  /// secret. A request that has a parameter of one of those names is malformed.
  md5_sorted_parameters,
};

/// The signature that `request` should have; its own is not looked at. "" if libcrypto does not
/// compute it.
[[nodiscard]] std::string signature_of(const SignedRequest& request, Bytes secret,
                                       SignatureScheme scheme = SignatureScheme::hmac_sha256);

/// Whether each part of `request` is in its range.
[[nodiscard]] bool is_well_formed(const SignedRequest& request,
                                  SignatureScheme scheme = SignatureScheme::hmac_sha256) noexcept;
/// Whether one of `secrets` has signed a well-formed request. Tries all, so that the time taken
/// does not reveal which one it was. ReplayGuard::check() asks both, and looks at time and nonce.
[[nodiscard]] bool is_signed_by(const SignedRequest& request, std::span<const std::string> secrets,
                                SignatureScheme scheme = SignatureScheme::hmac_sha256);

}  // namespace semel
