#include "net/server/options.hpp"

#include <boost/asio/ip/address.hpp>
#include <utility>

namespace semel::net {

namespace {

Error option_error(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

Status range(std::string_view name, std::size_t value, std::size_t least, std::size_t most) {
  if (value >= least && value <= most) return Done{};
  return option_error(std::string{name} + " is " + std::to_string(value) + "; it must be " +
                      std::to_string(least) + ".." + std::to_string(most));
}

}  // namespace

Status check_options(const ServerOptions& options) {
  if (!options.port && !options.tls_port && options.unix_path.empty()) {
    return option_error("nothing to listen on: set a port, a TLS port or a Unix socket");
  }
  if ((options.port || options.tls_port) && options.addresses.empty()) {
    return option_error("a port needs an address to bind");
  }
  for (const std::string& address : options.addresses) {
    boost::system::error_code error;
    boost::asio::ip::make_address(address, error);
    if (error) return option_error("bind '" + address + "': not an IPv4 or IPv6 address");
  }
  if (options.port && options.tls_port && *options.port != 0 &&
      *options.port == *options.tls_port) {
    return option_error("port and TLS port are both " + std::to_string(*options.port));
  }
  if (options.unix_mode > 0777) return option_error("the mode of the Unix socket is over 0777");
  constexpr std::size_t backlog_max = 65'535;
  const auto backlog = static_cast<std::size_t>(options.backlog < 0 ? 0 : options.backlog);
  SEMEL_CHECK(range("backlog", backlog, 1, backlog_max));
  SEMEL_CHECK(range("io threads", options.threads, 0, io_threads_max));
  SEMEL_CHECK(range("maxclients", options.maxclients, 1, maxclients_max));
  if (options.keepalive < Millis{0} || options.tick < Millis{0}) {
    return option_error("keepalive and tick cannot be negative");
  }
  return Done{};
}

Status check_exposure(const Exposure& exposure) {
  const bool plain_open = exposure.has_plain_port && !exposure.has_password;
  const bool tls_open =
      exposure.has_tls_port && !exposure.has_password && !exposure.requires_certificates;
  if (!plain_open && !tls_open) return Done{};
  for (const std::string& text : exposure.addresses) {
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(text, error);
    if (!error && address.is_loopback()) continue;
    std::string help = "set a password (requirepass)";
    if (!plain_open) help += ", require client certificates (tls-auth-clients yes)";
    return option_error("bind '" + text + "' lets everybody in who reaches the " +
                        (plain_open ? "port" : "TLS port") + ": " + help + ", or bind 127.0.0.1");
  }
  return Done{};
}

}  // namespace semel::net
