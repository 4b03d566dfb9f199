#include "gateway/config/settings.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>

#include "gateway/guard/admin_token.hpp"

namespace semel::gateway {
namespace {

Error bad_setting(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

/// A number of 0..65535. None: `text` is not one.
std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

/// The host without the brackets of an IPv6 address. None: there is a ':' outside of brackets.
std::optional<std::string> host_of(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {
    return std::string{text.substr(1, text.size() - 2)};
  }
  if (text.find(':') != std::string_view::npos) return std::nullopt;
  return std::string{text};
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  const Error bad = bad_setting("'" + std::string{text} + "' is not host:port or :port");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad;
  const auto host = host_of(text.substr(0, colon));
  const auto port = port_of(text.substr(colon + 1));
  if (!host || !port) return bad;
  return Address{*host, *port};
}

Result<UpstreamAddress> parse_upstream(std::string_view text) {
  const Error bad = bad_setting("'" + std::string{text} +
                                "' is not http://host:port or https://host:port, without a path");
  UpstreamAddress made;
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    made.is_tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return bad;
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ ") != std::string_view::npos) return bad;
  const std::size_t colon = rest.rfind(':');
  const std::size_t bracket = rest.rfind(']');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  const auto host = host_of(has_port ? rest.substr(0, colon) : rest);
  if (!host || host->empty()) return bad;
  made.host = *host;
  made.port = made.is_tls ? "443" : "80";
  if (has_port) {
    const auto port = port_of(rest.substr(colon + 1));
    if (!port || *port == 0) return bad;
    made.port = std::to_string(*port);
  }
  return made;
}

Result<std::string> read_password(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  // No more than is needed to know that a line is too long: a device may have no end.
  std::string line(limits::store_password_bytes_max + 2, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  if (line.empty()) return bad_setting("'" + path + "': no password can be read");
  line.resize(std::min(line.find('\n'), line.size()));
  while (line.ends_with('\r')) line.pop_back();
  if (line.empty() || line.size() > limits::store_password_bytes_max) {
    return bad_setting("'" + path + "': its first line has " + (line.empty() ? "no" : "too many") +
                       " characters; a password has 1 to " +
                       std::to_string(limits::store_password_bytes_max));
  }
  return line;
}

namespace {

Status check_node(const Settings& settings) {
  const NodeSettings& node = settings.node;
  const bool has_more = !node.user.empty() || !node.password.empty() || node.is_tls ||
                        !node.ca.empty() || !node.cert.empty() || !node.key.empty();
  if (!node.is_used()) {
    if (has_more) return bad_setting("store-user, store-tls and their like need store-node");
    return Done{};
  }
  if (!settings.store.empty()) return bad_setting("store and store-node: there is one store");
  std::set<std::string> seen;
  for (const std::string& text : node.addresses) {
    SEMEL_TRY(address, parse_address(text));
    if (address.host.empty() || address.port == 0) {
      return bad_setting("store-node '" + text + "' is not host:port");
    }
    if (!seen.insert(text).second) return bad_setting("store-node '" + text + "' is there twice");
  }
  if (!node.user.empty() && node.password.empty()) {
    return bad_setting("store-user needs store-password-file");
  }
  if (!node.is_tls && !(node.ca.empty() && node.cert.empty() && node.key.empty())) {
    return bad_setting("store-ca, store-cert and store-key need store-tls = true");
  }
  if (node.cert.empty() != node.key.empty()) {
    return bad_setting("store-cert and store-key belong together");
  }
  for (const Route& route : settings.routes) {
    if (!route.is_claimed() || route.record_bytes <= limits::node_record_bytes_max) continue;
    return bad_setting("route '" + route.name + "': record-bytes is " +
                       std::to_string(route.record_bytes) + "; a node records up to " +
                       std::to_string(limits::node_record_bytes_max));
  }
  return Done{};
}

}  // namespace

Status check_settings(const Settings& settings) {
  if (settings.listen.empty()) return bad_setting("listen is missing, as in :8443");
  if (settings.upstream.empty()) {
    return bad_setting("upstream is missing, as in http://127.0.0.1:8080");
  }
  SEMEL_CHECK(parse_address(settings.listen));
  SEMEL_CHECK(parse_upstream(settings.upstream));
  if (!settings.admin.empty()) {
    SEMEL_TRY(admin, parse_address(settings.admin));
    if (settings.admin_token.empty() && admin.host != "127.0.0.1" && admin.host != "::1" &&
        admin.host != "localhost") {
      return bad_setting("admin is '" + settings.admin +
                         "': without admin-token-file it must be on 127.0.0.1, ::1 or localhost");
    }
  }
  if (!settings.admin_hosts.empty() && (settings.admin.empty() || !settings.admin_token.empty())) {
    return bad_setting("admin-hosts is for an admin port without admin-token-file");
  }
  for (const std::string& host : settings.admin_hosts) {
    if (host.find_first_of(":/ ") == std::string::npos) continue;
    return bad_setting("admin-hosts has '" + host + "', which is not the name of a host");
  }
  if (!settings.admin_token.empty()) {
    if (settings.admin.empty()) return bad_setting("admin-token-file needs admin");
    SEMEL_CHECK(AdminToken::make(settings.admin_token));
  }
  if (settings.tls_cert.empty() != settings.tls_key.empty()) {
    return bad_setting("tls-cert and tls-key belong together");
  }
  SEMEL_CHECK(check_node(settings));
  for (const Route& route : settings.routes) {
    const auto in_route = [&](const std::string& text) {
      return bad_setting("route '" + route.name + "': " + text);
    };
    const ScopeParts& scope = route.scope;
    const bool has_scope = scope.authorization || scope.key_id || !scope.headers.empty();
    if (has_scope == scope.shared) {
      return in_route("scope is either \"shared\" or names what tells clients apart");
    }
    if (scope.key_id && !route.signature.is_required) {
      return in_route("scope \"key-id\" needs signature = true");
    }
    if (scope.key_id && route.guard == Guard::form_token) {
      return in_route("a form token is issued to requests that are not signed: scope by a header");
    }
    if (route.guard == Guard::issue_token && route.signature.is_required) {
      return in_route("a route that issues tokens cannot ask for a signature");
    }
    const FingerprintParts& parts = route.fingerprint;
    const bool has_print = parts.method || parts.path || parts.query || parts.body || parts.json ||
                           !parts.headers.empty();
    if (!has_print) return in_route("fingerprint names nothing");
  }
  return Done{};
}

}  // namespace semel::gateway
