#include "net/admin/admin_guard.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

std::string_view without_port(std::string_view host) {
  const std::size_t last = host.find_last_not_of("0123456789");
  return last != std::string_view::npos && host[last] == ':' ? host.substr(0, last) : host;
}

bool is_host_of(const AdminGuard& guard, std::string_view host) {
  const auto is_host = [&](std::string_view known) {
    return std::equal(host.begin(), host.end(), known.begin(), known.end(),
                      [](char a, char b) { return base::to_lower(a) == base::to_lower(b); });
  };
  if (is_host("localhost") || std::any_of(guard.hosts.begin(), guard.hosts.end(), is_host)) {
    return true;
  }
  const HostKind kind = kind_of_host(host);
  return kind == HostKind::loopback || (kind == HostKind::address && !guard.only_loopback);
}

AdminResponse unknown_path(const std::vector<AdminRoute>& routes) {
  std::string text = "there is";
  for (std::size_t i = 0; i < routes.size(); ++i) {
    text += (i == 0 ? " " : i + 1 == routes.size() ? " and " : ", ") + routes[i].path;
  }
  return text_response(404, text + "\n");
}

AdminResponse unknown_method(AdminRoute::Methods methods) {
  using Methods = AdminRoute::Methods;
  const std::string allowed = methods == Methods::read   ? "GET, HEAD"
                              : methods == Methods::post ? "POST"
                                                         : "GET, HEAD, POST";
  AdminResponse response = text_response(405, "allowed: " + allowed + "\n");
  response.headers.emplace_back("Allow", allowed);
  return response;
}

AdminResponse unauthorized() {
  AdminResponse response = text_response(401, "Authorization: Bearer TOKEN\n");
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace

HostKind kind_of_host(std::string_view host) {
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  boost::system::error_code unknown;
  const auto address = boost::asio::ip::make_address(std::string{host}, unknown);
  if (unknown || address.is_v6() != has_brackets) return HostKind::name;
  return address.is_loopback() ? HostKind::loopback : HostKind::address;
}

std::optional<AdminResponse> AdminGuard::refusal(const AdminRequest& request) const {
  const bool is_unique = request.repeated_header.empty();
  if (has_token) {
    if (is_unique && has_token(request.authorization)) return std::nullopt;
    return unauthorized();
  }
  if (is_unique && request.origin.empty() && is_host_of(*this, without_port(request.host))) {
    return std::nullopt;
  }
  return text_response(403, std::string{"Host has to be "} +
                                (only_loopback ? "an address of loopback" : "an address") +
                                ", localhost or one of admin-hosts, and Origin absent\n");
}

AdminChoice choose_route(const std::vector<AdminRoute>& routes, const AdminGuard& guard,
                         AdminRequest& request) {
  std::optional<AdminResponse> refusal = guard.refusal(request);
  request.is_admitted = !refusal;
  const auto found = std::find_if(routes.begin(), routes.end(), [&](const AdminRoute& route) {
    return route.serves(request.path);
  });
  const bool is_allowed = found != routes.end() && found->allows(request);
  const bool needs_guard = !is_allowed || found->access == AdminRoute::Access::guarded;
  if (needs_guard && refusal) return {.refusal = std::move(refusal)};
  if (found == routes.end()) return {.refusal = unknown_path(routes)};
  if (!is_allowed) return {.refusal = unknown_method(found->methods)};
  SEMEL_ASSERT(request.is_admitted || found->access != AdminRoute::Access::guarded);
  return {.route = &*found};
}

bool is_admin_host_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= admin_limits::host_bytes_max &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

}  // namespace semel::net
