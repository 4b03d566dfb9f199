// Decides which requests of a browser the console accepts: protects against pages of other origins
// (CSRF), names that point to this machine (DNS rebinding), and headers that two parsers read
// differently. Pure.
//
// A name in Host is allowed if it cannot be rebound: an IP address, or localhost; or the name of an
// origin that the operator has set for a proxy.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/admin/admin_route.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// "https://semel.example", "http://10.0.0.1:9100": scheme, host, and the port unless it is the
/// scheme's. The detail of an error names the wrong part.
[[nodiscard]] Status check_console_origin(std::string_view origin);

struct GuardedRequest {
  std::string origin{};     ///< of the page
  bool is_https = false;    ///< the cookie is then for https only
  bool is_proxied = false;  ///< the origin is one that the operator has set
  bool is_local = false;    ///< from this machine, with a name of it in Host
};

class RequestGuard {
 public:
  /// Each must have passed check_console_origin().
  explicit RequestGuard(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  /// Errors: refused; the detail says why. A POST must come from the page's own origin and hold
  /// JSON, so that no form of another page can send it.
  [[nodiscard]] Result<GuardedRequest> check(const AdminRequest& request) const;

 private:
  [[nodiscard]] std::optional<GuardedRequest> place_of(const AdminRequest& request) const;

  const std::vector<std::string> origins_;
};

/// The value of the cookie `name` in a Cookie header; empty: there is none, or there are several.
[[nodiscard]] std::string_view cookie_of(std::string_view header, std::string_view name) noexcept;

/// Compares in a time that depends on the lengths only.
[[nodiscard]] bool is_same_secret(std::string_view one, std::string_view other) noexcept;

}  // namespace semel::net
