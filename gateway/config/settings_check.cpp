#include "gateway/config/settings_check.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "gateway/guard/admin_token.hpp"
#include "gateway/rules/method.hpp"
#include "net/admin/admin_guard.hpp"

namespace semel::gateway {
namespace {

Error conflict(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

std::string in_route(const Route& route, const std::string& text) {
  return "route '" + route.name + "': " + text;
}

void check_scope(const Route& route, std::vector<std::string>& errors) {
  const auto fail = [&](const std::string& text) { errors.push_back(in_route(route, text)); };
  const ScopeParts& scope = route.scope;
  const bool has_scope = scope.authorization || scope.key_id || !scope.headers.empty();
  if (has_scope == scope.shared) {
    fail("scope is either \"shared\" or names what tells clients apart");
  }
  if (scope.key_id && !route.signature.is_required) {
    fail("scope \"key-id\" needs signature = true");
  }
  if (scope.key_id && route.guard == Guard::form_token) {
    fail("a form token is issued to requests that are not signed: scope by a header");
  }
  const FingerprintParts& parts = route.fingerprint;
  const bool has_print = parts.method || parts.path || parts.query || parts.body || parts.json ||
                         !parts.headers.empty();
  if (!has_print) fail("fingerprint names nothing");
}

/// The first route of `before` that takes all requests of `route` with this method; null: none.
const Route* taker_of(std::span<const Route> before, const Route& route, std::string_view method) {
  const auto found = std::find_if(before.begin(), before.end(), [&](const Route& each) {
    return each.fits_method(method) && each.path.covers(route.path);
  });
  return found == before.end() ? nullptr : &*found;
}

/// Each method that a route names must be able to reach it, and one of the methods it does not
/// name.
void check_reached(std::span<const Route> before, const Route& route,
                   std::vector<std::string>& errors) {
  const Route* taker = nullptr;
  for (const std::string& method : route.methods) {
    taker = taker_of(before, route, method);
    if (taker == nullptr) continue;
    errors.push_back(in_route(route, method + " never gets here: route '" + taker->name +
                                         "' in front, with path '" + taker->path.text() +
                                         "', takes all such requests"));
  }
  if (!route.methods.empty()) return;
  for (const std::string_view method : served_methods()) {
    taker = taker_of(before, route, method);
    if (taker == nullptr) return;
  }
  errors.push_back(in_route(route, "no request ever gets here: route '" + taker->name +
                                       "' in front, with path '" + taker->path.text() +
                                       "', takes them"));
}

void check_keys(const Settings& settings, std::vector<std::string>& errors) {
  for (const SigningKey& key : settings.keys) {
    const bool is_used =
        std::any_of(settings.routes.begin(), settings.routes.end(), [&](const Route& route) {
          const auto& ids = route.signature.keys;
          return route.signature.is_required &&
                 (ids.empty() || std::find(ids.begin(), ids.end(), key.id) != ids.end());
        });
    if (!is_used) errors.push_back("key '" + key.id + "' signs for no route");
  }
}

void check_routes(const Settings& settings, std::vector<std::string>& errors) {
  const std::span<const Route> routes = settings.routes;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    check_scope(routes[i], errors);
    check_reached(routes.first(i), routes[i], errors);
  }
  check_keys(settings, errors);
  const std::vector<std::string> more = RequestRules::check(settings.routes, settings.keys);
  errors.insert(errors.end(), more.begin(), more.end());
  const auto guarding =
      std::find_if(routes.begin(), routes.end(), [](const Route& route) { return route.guards(); });
  if (guarding != routes.end() && !settings.default_guard) {
    errors.push_back("default is missing: route '" + guarding->name +
                     "' guards, so say what happens to requests without a route: default = "
                     "\"refuse\" or \"pass\" in [gateway]");
  }
}

void check_node_addresses(const NodeSettings& node, std::vector<std::string>& errors) {
  std::set<std::string> seen;
  for (const std::string& text : node.addresses) {
    const Result<Address> address = parse_address(text);
    if (!address) {
      errors.push_back(address.error().detail);
    } else if (address->host.empty() || address->port == 0) {
      errors.push_back("store-node '" + text + "' is not host:port");
    } else if (!seen.insert(text).second) {
      errors.push_back("store-node '" + text + "' is there twice");
    }
  }
}

void check_node(const Settings& settings, std::vector<std::string>& errors) {
  const NodeSettings& node = settings.node;
  const auto fail = [&](bool is_wrong, const char* text) {
    if (is_wrong) errors.emplace_back(text);
  };
  const bool has_files = !node.ca.empty() || !node.cert.empty() || !node.key.empty();
  if (!node.is_used()) {
    fail(!node.user.empty() || !node.password.empty() || node.is_tls || has_files,
         "store-user, store-tls and their like need store-node");
    return;
  }
  fail(!settings.store.empty(), "store and store-node: there is one store");
  check_node_addresses(node, errors);
  fail(!node.user.empty() && node.password.empty(), "store-user needs store-password-file");
  fail(!node.is_tls && has_files, "store-ca, store-cert and store-key need store-tls = true");
  fail(node.cert.empty() != node.key.empty(), "store-cert and store-key belong together");
  for (const Route& route : settings.routes) {
    if (!route.is_claimed() || route.record_bytes <= limits::node_record_bytes_max) continue;
    errors.push_back(in_route(route, "record-bytes is " + std::to_string(route.record_bytes) +
                                         "; a node records up to " +
                                         std::to_string(limits::node_record_bytes_max)));
  }
}

Status check_listen(const Settings& settings) {
  if (settings.listen.empty()) return conflict("listen is missing, as in :8443");
  SEMEL_CHECK(parse_address(settings.listen));
  return Done{};
}

Status check_upstream(const Settings& settings) {
  if (settings.upstream.empty()) {
    return conflict("upstream is missing, as in http://127.0.0.1:8080");
  }
  SEMEL_TRY(upstream, parse_upstream(settings.upstream));
  if (upstream.is_tls || (settings.upstream_ca.empty() && settings.upstream_verify)) return Done{};
  return conflict("upstream-ca and upstream-verify need an upstream with https://");
}

Status check_admin(const Settings& settings) {
  const bool has_token = !settings.admin_token.empty();
  if (!settings.admin_hosts.empty() && (settings.admin.empty() || has_token)) {
    return conflict("admin-hosts is for an admin port without admin-token-file");
  }
  for (const std::string& host : settings.admin_hosts) {
    if (net::is_admin_host_name(host)) continue;
    return conflict("admin-hosts has '" + host + "', which is not the name of a host");
  }
  if (settings.admin.empty()) {
    return has_token ? Status{conflict("admin-token-file needs admin")} : Status{Done{}};
  }
  SEMEL_TRY(admin, parse_address(settings.admin));
  const bool is_loopback =
      admin.host == "127.0.0.1" || admin.host == "::1" || admin.host == "localhost";
  if (!has_token && !is_loopback) {
    return conflict("admin is '" + settings.admin +
                    "': without admin-token-file it must be on 127.0.0.1, ::1 or localhost");
  }
  if (has_token) SEMEL_CHECK(AdminToken::make(settings.admin_token));
  return Done{};
}

Status check_tls(const Settings& settings) {
  if (settings.tls_cert.empty() == settings.tls_key.empty()) return Done{};
  return conflict("tls-cert and tls-key belong together");
}

}  // namespace

std::vector<std::string> check_settings(const Settings& settings) {
  std::vector<std::string> errors;
  for (const auto check : {check_listen, check_upstream, check_admin, check_tls}) {
    const Status checked = check(settings);
    if (!checked) errors.push_back(checked.error().detail);
  }
  check_node(settings, errors);
  check_routes(settings, errors);
  return errors;
}

}  // namespace semel::gateway
