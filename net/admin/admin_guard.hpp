// Which requests an admin port admits, and to which route. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/admin/admin_route.hpp"

namespace semel::net {

/// What a Host without its port names: a name, or an address, IPv4 in decimals or IPv6 in brackets.
enum class HostKind : std::uint8_t { name, loopback, address };
[[nodiscard]] HostKind kind_of_host(std::string_view host);

/// Against pages in a browser. A page can point its own name to this machine (DNS rebinding): the
/// browser then sends its requests here as to the page's own origin, with that name in Host. So a
/// request is admitted only if Host is an address, which no page can be named by, localhost, or one
/// of `hosts`; and if no page has sent it: Origin is absent.
struct AdminGuard {
  std::vector<std::string> hosts{};
  /// Of addresses in Host only those of loopback count.
  bool only_loopback = false;
  /// Whether a value of Authorization carries the token. If it is set, the token alone decides: no
  /// page knows it.
  std::function<bool(std::string_view authorization)> has_token{};

  /// The response to a request that is not admitted: 401 or 403. None: it is admitted. A request
  /// with a repeated header never is.
  [[nodiscard]] std::optional<AdminResponse> refusal(const AdminRequest& request) const;
};

struct AdminChoice {
  const AdminRoute* route = nullptr;  ///< of `routes`; null exactly if there is a refusal
  std::optional<AdminResponse> refusal{};
};

/// The route of a request whose header has arrived. Refusals in this order, so that a client that
/// is not admitted learns nothing about the routes and sends no body: 401 or 403 by the guard, also
/// for methods that a route does not have; 404; 405. Sets `request.is_admitted`.
[[nodiscard]] AdminChoice choose_route(const std::vector<AdminRoute>& routes,
                                       const AdminGuard& guard, AdminRequest& request);

/// A name that AdminGuard::hosts may have: letters, digits, '-', '_' and '.'.
[[nodiscard]] bool is_admin_host_name(std::string_view text) noexcept;

}  // namespace semel::net
