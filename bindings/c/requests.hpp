// From the structs of semel.h to the values of the C++ headers.
#pragma once

#include <cstring>
#include <optional>

#include "bindings/c/sized.hpp"
#include "semel/claims.hpp"

namespace semel::c {

/// Checks the fields that all uses of a request share. Returns an error, or SEMEL_OK.
int check(const semel_request& given) noexcept;

/// Of a struct: zero is "not given" unless a bit says that it is.
template <class Struct>
[[nodiscard]] std::optional<Millis> lease_of(const Struct& from) noexcept {
  const bool is_given = from.lease_ms != 0 || (from.given & SEMEL_GIVEN_LEASE) != 0;
  return is_given ? std::optional{Millis{from.lease_ms}} : std::nullopt;
}
/// Of a parameter.
[[nodiscard]] inline std::optional<Millis> claim_time_of(semel_int64 ms) noexcept {
  return ms == SEMEL_TTL_POLICY ? std::nullopt : std::optional{Millis{ms}};
}
/// SEMEL_OK: `given` has no bits but `known`.
[[nodiscard]] int check_given(unsigned given, unsigned known) noexcept;

[[nodiscard]] inline Fingerprint fingerprint_from(const semel_fingerprint& given) noexcept {
  Fingerprint fingerprint{.algorithm = given.algorithm, .digest = {}};
  std::memcpy(fingerprint.digest.data(), given.digest, fingerprint.digest.size());
  return fingerprint;
}

[[nodiscard]] inline std::optional<ClaimId> claim_id_of(const semel_request& given) noexcept {
  if (given.claim_id == nullptr) return std::nullopt;
  ClaimId id;
  std::memcpy(id.data(), given.claim_id, id.size());
  return id;
}

[[nodiscard]] inline std::optional<std::int64_t> first_sent_of_request(
    const semel_request& given) noexcept {
  const bool is_given =
      given.first_sent_unix_ms != 0 || (given.given & SEMEL_GIVEN_FIRST_SENT) != 0;
  if (!is_given) return std::nullopt;
  return given.first_sent_unix_ms;
}

[[nodiscard]] inline std::optional<SessionId> session_of(int remote_owner) noexcept {
  return remote_owner == 0 ? std::nullopt : std::optional<SessionId>{0};
}

/// A claim by itself, or in a batch: what only runs of functions know is refused.
[[nodiscard]] int check_claim(const semel_request& given, bool may_wait) noexcept;
[[nodiscard]] ClaimRequest request_of(const semel_request& given) noexcept;
void fill_claim(Answer<semel_claim_outcome>& to, const ClaimOutcome& from) noexcept;
void fill_owner(Answer<semel_owner_outcome>& to, const OwnerOutcome& from) noexcept;

/// Gives back a grant of which the caller cannot be told for want of memory; `claim` becomes busy.
void take_back(Claims& space, Bytes key, ClaimOutcome& claim) noexcept;

}  // namespace semel::c
