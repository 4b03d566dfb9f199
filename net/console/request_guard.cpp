#include "net/console/request_guard.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "net/admin/admin_guard.hpp"
#include "net/admin/escape.hpp"
#include "net/console/console_limits.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

constexpr std::string_view http = "http://";
constexpr std::string_view https = "https://";

struct HostAndPort {
  std::string_view host;  // of IPv6 with its brackets
  std::string_view port;  // empty: the scheme's
};

std::optional<HostAndPort> split(std::string_view text) {
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  HostAndPort parts{.host = text.substr(0, has_port ? colon : text.size()), .port = {}};
  if (has_port) {
    parts.port = text.substr(colon + 1);
    std::uint16_t number = 0;
    const char* const end = parts.port.data() + parts.port.size();
    const auto [read_to, error] = std::from_chars(parts.port.data(), end, number);
    if (error != std::errc{} || read_to != end) return std::nullopt;
  }
  if (parts.host.empty() || parts.host.size() > console_limits::origin_bytes_max) {
    return std::nullopt;
  }
  return parts;
}

Error refusal(std::string why) {
  return {ErrorCode::refused, std::move(why)};
}

std::string shown(std::string_view text) {
  std::string out{"'"};
  append_escaped(out, cut_at_character(text, console_limits::origin_bytes_max));
  return out += '\'';
}

bool is_json(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return is_word(type.substr(0, type.find(' ')), "application/json");
}

}  // namespace

Status check_console_origin(std::string_view origin) {
  const auto fail = [&](std::string_view why) -> Status {
    return Error{ErrorCode::bad_option, "console-origin: " + shown(origin) + " " +
                                            std::string{why} +
                                            "; it is like https://semel.example"};
  };
  if (origin.size() > console_limits::origin_bytes_max) {
    return fail("is longer than " + std::to_string(console_limits::origin_bytes_max) + " bytes");
  }
  const bool is_https = origin.starts_with(https);
  if (!is_https && !origin.starts_with(http)) return fail("does not begin with https://");
  const std::string_view rest = origin.substr(is_https ? https.size() : http.size());
  const bool has_only_host = std::all_of(rest.begin(), rest.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':' ||
           c == '[' || c == ']';
  });
  if (!has_only_host) return fail("has more than a host, in small letters, and a port");
  const auto parts = split(rest);
  if (!parts) return fail("has no host, or a wrong port");
  if (parts->port == (is_https ? "443" : "80")) {
    return fail("names the port that belongs to its scheme, which browsers leave out");
  }
  return Done{};
}

std::optional<GuardedRequest> RequestGuard::place_of(const AdminRequest& request) const {
  // A proxy may send its own name in Host, or the name of this port; only a POST has the origin of
  // the page.
  for (const std::string& origin : origins_) {
    const std::string_view host = std::string_view{origin}.substr(origin.find("://") + 3);
    if (request.host != host && request.origin != origin) continue;
    return GuardedRequest{
        .origin = origin, .is_https = origin.starts_with(https), .is_proxied = true};
  }
  const auto parts = split(request.host);
  if (!parts) return std::nullopt;
  const HostKind kind = kind_of_host(parts->host);
  const bool is_localhost = is_word(parts->host, "localhost");
  if (kind == HostKind::name && !is_localhost) return std::nullopt;
  return GuardedRequest{
      .origin = std::string{http} + request.host,
      .is_local = request.peer_is_local && (is_localhost || kind == HostKind::loopback)};
}

Result<GuardedRequest> RequestGuard::check(const AdminRequest& request) const {
  if (!request.repeated_header.empty()) {
    return refusal("the header " + std::string{request.repeated_header} + " is there twice");
  }
  const auto place = place_of(request);
  if (!place) {
    return refusal("the name " + shown(request.host) +
                   " is not one of this console's: use the address, or set console-origin");
  }
  const std::string_view site = request.fetch_site;
  const bool is_page = !request.is_post() && !request.path.starts_with("/console/api");
  // A page of another site may link to this page, but not read it.
  if (!is_page && !site.empty() && site != "same-origin" && site != "none") {
    return refusal("a page of another site has asked for this");
  }
  if (!request.is_post()) return *place;
  if (request.origin.empty()) return refusal("the header Origin is missing");
  if (request.origin != place->origin) {
    return refusal("the request comes from " + shown(request.origin) + ", not from " +
                   shown(place->origin));
  }
  if (!is_json(request.content_type)) return refusal("the body is not application/json");
  return *place;
}

std::string_view cookie_of(std::string_view header, std::string_view name) noexcept {
  std::string_view found;
  while (!header.empty()) {
    std::string_view pair = header.substr(0, header.find(';'));
    header.remove_prefix(std::min(header.size(), pair.size() + 1));
    pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || pair.substr(0, equals) != name) continue;
    if (!found.empty()) return {};
    found = pair.substr(equals + 1);
  }
  return found;
}

bool is_same_secret(std::string_view one, std::string_view other) noexcept {
  if (one.size() != other.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (one[i] ^ other[i]));
  }
  return difference == 0;
}

}  // namespace semel::net
