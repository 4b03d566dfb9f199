// The secret that authenticates an operator at the admin port: "Authorization: Bearer TOKEN".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "semel/result.hpp"

namespace semel::gateway {

namespace limits {
inline constexpr std::size_t admin_token_bytes_min = 16;
inline constexpr std::size_t admin_token_bytes_max = 1'024;
}  // namespace limits

/// Immutable. Thread-safe.
class AdminToken {
 public:
  /// Printable ASCII without blanks, limits::admin_token_bytes_min to _max bytes. Errors:
  /// bad_option (names the error, without the token), refused (libcrypto).
  [[nodiscard]] static Result<AdminToken> make(std::string_view text);
  /// Whether the value of an Authorization header carries the token. Compares digests in constant
  /// time: the time reveals neither how many bytes match nor the length of the token.
  [[nodiscard]] bool is_in(std::string_view authorization) const;

 private:
  explicit AdminToken(std::string digest) : digest_(std::move(digest)) {}
  std::string digest_;  // SHA-256
};

}  // namespace semel::gateway
