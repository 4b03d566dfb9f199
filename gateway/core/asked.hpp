// A guarded request as the claim sees it: its key, whose it is, and what it asks for.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/core/route_policy.hpp"
#include "semel/claim.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

struct Asked {
  std::string_view method{};
  std::string_view path{};
  std::string_view query{};  ///< without ?
  std::string_view body{};
  /// All values of a header, in order; names are compared without case.
  std::function<std::vector<std::string_view>(std::string_view name)> header{};
};

/// The key of an Idempotency-Key header: a string of structured fields ("k-1", with \" and \\), or
/// a bare word, of 1 to limits::key_bytes_max visible characters. Errors: bad_option, in words for
/// the client: more than one, empty, too long, other characters.
[[nodiscard]] Result<std::string> key_of(std::span<const std::string_view> values);

/// The key of the claim: who asks, as 32 digits of a digest, and the key.
[[nodiscard]] std::string claim_key(const RoutePolicy& route, const Asked& asked,
                                    std::string_view key);
/// SHA-256 of everything that must be equal, cut to 16 bytes. Each part goes in with its length.
[[nodiscard]] Fingerprint fingerprint_of(const RoutePolicy& route, const Asked& asked);

}  // namespace semel::gateway
