// The names of a piece of work and its payload: the client's key, its scope, and the fingerprint.
// Pure functions; they fail only if libcrypto does.
// Source: draft-ietf-httpapi-idempotency-key-header, RFC 9651 (strings), docs/gateway.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/rules/message.hpp"
#include "gateway/rules/route.hpp"
#include "semel/patterns/keys.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

/// The key in a value of Idempotency-Key: a string of structured fields ("\"8e03..\""), or, as many
/// clients send it, the same without quotes. Both forms of one text are one key. Errors: syntax
/// (with the reason as detail): empty, longer than limits::idempotency_key_max, a character outside
/// of printable ASCII, a blank or comma without quotes, parameters.
[[nodiscard]] Result<std::string> parse_idempotency_key(std::string_view value);

/// The scope of the request: 32 hexadecimal digits, a digest of the parts that `scope` names, each
/// with its name and length, so that no value can pass for another part. It does not contain the
/// credential. `key_id`: the key that signed the request. Errors: no_such_key (names the missing
/// part), syntax (one of its headers is repeated), refused (libcrypto).
[[nodiscard]] Result<std::string> scope_of(const ScopeParts& scope, const Request& request,
                                           std::string_view key_id);

/// The key of a claim: unambiguous, and at most 32 + 1 + 2 * idempotency_key_max bytes.
[[nodiscard]] std::string claim_key(std::string_view scope, std::string_view key);

/// A digest of the parts that `parts` names. Errors: syntax (the body is not JSON), refused
/// (libcrypto).
[[nodiscard]] Result<Fingerprint> fingerprint_of_request(const FingerprintParts& parts,
                                                         const Request& request);

/// The signed parts: method, path, query, each header of the policy ("header:name", absent: empty),
/// and the body's SHA-256, as names and values for SignedRequest.
class SignedParts {
 public:
  SignedParts(const SignaturePolicy& policy, const Request& request);
  /// Valid as long as this object.
  [[nodiscard]] const std::vector<KeyField>& fields() const noexcept { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> owned_;
  std::vector<KeyField> fields_;
};

/// The signature headers of a request.
struct SignatureHeaders {
  std::string_view key_id{};
  std::int64_t timestamp_unix_ms = 0;
  std::string_view nonce{};
  std::string_view signature{};
};
/// Parses Semel-Key-Id, Semel-Timestamp (seconds or, with 13 digits, milliseconds since 1970),
/// Semel-Nonce and Semel-Signature. Error: syntax (names a header that is missing, repeated or
/// invalid).
[[nodiscard]] Result<SignatureHeaders> signature_headers(Fields fields);

/// 64 hexadecimal digits; "" if libcrypto fails.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace semel::gateway
