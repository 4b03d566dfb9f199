#include "gateway/guard/admin_token.hpp"

#include <algorithm>
#include <utility>

#include "gateway/rules/work_key.hpp"
#include "semel/patterns/signed_request.hpp"

namespace semel::gateway {
namespace {

Error bad_token(const std::string& why) {
  return {ErrorCode::bad_option, "admin-token-file: " + why};
}

/// Schemes have no case (RFC 9110, section 11.1).
bool is_bearer(std::string_view scheme) noexcept {
  constexpr std::string_view wanted = "bearer";
  return std::equal(scheme.begin(), scheme.end(), wanted.begin(), wanted.end(),
                    [](char one, char small) { return one == small || one == small - 'a' + 'A'; });
}

}  // namespace

Result<AdminToken> AdminToken::make(std::string_view text) {
  if (text.size() < limits::admin_token_bytes_min || text.size() > limits::admin_token_bytes_max) {
    return bad_token("a token of " + std::to_string(text.size()) + " bytes; it has " +
                     std::to_string(limits::admin_token_bytes_min) + " to " +
                     std::to_string(limits::admin_token_bytes_max));
  }
  if (!std::all_of(text.begin(), text.end(), [](char each) { return each > ' ' && each <= '~'; })) {
    return bad_token("a token has printable ASCII characters without blanks");
  }
  std::string digest = sha256_hex(text);
  if (digest.empty()) return Error{ErrorCode::refused, "admin-token-file: libcrypto has failed"};
  return AdminToken{std::move(digest)};
}

bool AdminToken::is_in(std::string_view authorization) const {
  const std::size_t blank = authorization.find(' ');
  if (blank == std::string_view::npos || !is_bearer(authorization.substr(0, blank))) return false;
  std::string_view token = authorization.substr(blank);
  token.remove_prefix(std::min(token.find_first_not_of(' '), token.size()));
  const std::string given = sha256_hex(token);  // "" if libcrypto fails, which is no digest
  return equal_in_constant_time(Bytes{given}, Bytes{digest_});
}

}  // namespace semel::gateway
