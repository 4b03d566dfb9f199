#include "gateway/config/settings.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>

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
  // Reads only enough to know that a line is too long: a device may have no end.
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

}  // namespace semel::gateway
