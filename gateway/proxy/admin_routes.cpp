#include "gateway/proxy/admin_routes.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/hex.hpp"

namespace semel::gateway {
namespace {

using net::AdminRequest;
using net::AdminResponse;
using net::text_response;

/// None: a '%' does not begin an escape.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const bool is_whole = text.size() - i > 2;
    const int high = is_whole ? base::hex_value(text[i + 1]) : -1;
    const int low = is_whole ? base::hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::map<std::string, std::string, std::less<>> parameters_of(std::string_view query) {
  std::map<std::string, std::string, std::less<>> found;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view one = query.substr(0, end);
    const std::size_t equals = std::min(one.find('='), one.size());
    if (auto value = decoded(one.substr(std::min(equals + 1, one.size())))) {
      found.insert_or_assign(std::string{one.substr(0, equals)}, *std::move(value));
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return found;
}

AuditLine audit_line(const AdminRequest& request, unsigned status) {
  return {.client = request.peer_address,
          .method = request.method,
          .path = request.path,
          .status = status};
}

AdminResponse resolve(const AdminRequest& request, const AdminCalls& calls, bool needs_header) {
  const auto parameters = parameters_of(request.query);
  const auto value = [&](std::string_view name) {
    const auto found = parameters.find(name);
    return found == parameters.end() ? std::string{} : found->second;
  };
  const std::string how = value("as");
  const std::string route = value("route");
  const std::string key = value("key");
  AdminResponse response = text_response(200, "ok\n");
  if (needs_header && request.semel_admin != "yes") {
    response = text_response(403, "the header 'Semel-Admin: yes' is missing\n");
  } else if (how != "done" && how != "released") {
    response = text_response(400, "as is done or released\n");
  } else if (const Status done = calls.resolve(route, key, how == "done"); !done) {
    const bool is_missing = done.error().code == ErrorCode::no_such_key;
    response = text_response(is_missing ? 404 : 400, done.error().message() + "\n");
  }
  AuditLine line = audit_line(request, response.status);
  line.route = route;
  line.key = key;
  line.as = how;
  calls.audit(line);
  return response;
}

}  // namespace

Result<net::AdminOptions> admin_options(const Settings& settings, std::optional<AdminToken> token) {
  SEMEL_TRY(at, parse_address(settings.admin));
  std::string host = at.host.empty() ? "::" : at.host;  // all addresses, of IPv4 as well
  if (host == "localhost") host = "127.0.0.1";
  net::AdminOptions options{.addresses = {std::move(host)},
                            .port = at.port,
                            .dual_stack = true,
                            .guard = {.hosts = settings.admin_hosts, .only_loopback = true},
                            .remote = token.has_value()};
  if (token) {
    options.guard.has_token = [token = *std::move(token)](std::string_view authorization) {
      return token.is_in(authorization);
    };
  }
  return options;
}

net::AdminSite admin_site(AdminCalls calls, bool needs_header) {
  const auto shared = std::make_shared<const AdminCalls>(std::move(calls));
  net::AdminSite site{.routes = net::common_routes(shared->metrics, shared->ready),
                      .refused = [shared](const AdminRequest& request, unsigned status) {
                        constexpr unsigned unauthorized = 401;
                        if (status != unauthorized && !request.is_post()) return;
                        shared->audit(audit_line(request, status));
                      }};
  site.routes.push_back({.path = "/resolve",
                         .methods = net::AdminRoute::Methods::post,
                         .handle = [shared, needs_header](const AdminRequest& request,
                                                          const net::AdminRespond& respond) {
                           respond(resolve(request, *shared, needs_header));
                         }});
  return site;
}

}  // namespace semel::gateway
