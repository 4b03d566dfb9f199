#include "tools/semel/node/node_options.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "net/server/process.hpp"

namespace semel::tool {
namespace {

using net::Setting;

/// As redis.conf has them: `*` is all of IPv4, `::*` all of IPv6, and a `-` before one means where
/// the machine has it.
std::vector<std::string> addresses_of(const std::vector<std::string>& words) {
  std::vector<std::string> addresses;
  for (std::string word : words) {
    const bool optional = word.starts_with('-');
    if (optional) word.erase(0, 1);
    if (word == "*") word = "0.0.0.0";
    if (word == "::*") word = "::";
    if (!optional || net::can_listen_on(word)) addresses.push_back(std::move(word));
  }
  return addresses;
}

std::optional<std::uint16_t> port_of(const net::Settings& settings, Setting setting) {
  const std::int64_t number = settings.integer(setting);
  if (number < 0) return std::nullopt;
  return static_cast<std::uint16_t>(number);
}

Millis millis_of(const net::Settings& settings, Setting setting) {
  return std::chrono::duration_cast<Millis>(settings.duration(setting));
}

}  // namespace

net::LogOptions log_options(const net::Settings& settings) {
  return {.level = settings.choice<net::LogLevel>(Setting::log_level),
          .form = settings.choice<net::LogForm>(Setting::log_format),
          .file = settings.text(Setting::log_file),
          .keys = settings.boolean(Setting::log_keys)};
}

std::optional<net::AdminOptions> admin_options(const net::Settings& settings) {
  const auto port = port_of(settings, Setting::admin_port);
  if (!port) return std::nullopt;
  // An address that is set is used as it is; the default is this machine only.
  const bool is_named = settings.origin(Setting::admin_bind).kind != net::Origin::Kind::builtin;
  return net::AdminOptions{.addresses = addresses_of(settings.list(Setting::admin_bind)),
                           .port = *port,
                           .guard = {.hosts = settings.list(Setting::admin_hosts)},
                           .remote = is_named};
}

net::ConnectionLimits connection_limits(const net::Settings& settings) {
  net::ConnectionLimits limits{.idle = millis_of(settings, Setting::timeout),
                               .request = millis_of(settings, Setting::request_deadline)};
  limits.input_bytes =
      static_cast<std::size_t>(settings.integer(Setting::client_query_buffer_limit));
  const net::OutputLimits output = settings.output_limits();
  // Both are in the order of Redis: normal, replica, pubsub.
  constexpr std::array classes = {net::OutputClass::normal, net::OutputClass::replica,
                                  net::OutputClass::pubsub};
  for (std::size_t i = 0; i < classes.size(); ++i) {
    limits.output[static_cast<std::size_t>(classes[i])] = {
        .hard_bytes = static_cast<std::size_t>(output[i].hard_bytes),
        .soft_bytes = static_cast<std::size_t>(output[i].soft_bytes),
        .soft_for = std::chrono::seconds{output[i].soft_seconds}};
  }
  return limits;
}

net::TlsFiles tls_files(const net::Settings& settings) {
  net::TlsFiles files{
      .certificate = settings.text(Setting::tls_cert_file),
      .key = settings.text(Setting::tls_key_file),
      .key_password = settings.value(Setting::tls_key_file_pass).text,
      .authorities = settings.text(Setting::tls_ca_cert_file),
      .authorities_directory = settings.text(Setting::tls_ca_cert_dir),
      .ciphers = settings.text(Setting::tls_ciphers),
      .ciphersuites = settings.text(Setting::tls_ciphersuites),
      .prefers_server_ciphers = settings.boolean(Setting::tls_prefer_server_ciphers)};
  if (const auto versions = settings.list(Setting::tls_protocols); !versions.empty()) {
    const auto speaks = [&](std::string_view version) {
      return std::find(versions.begin(), versions.end(), version) != versions.end();
    };
    files.speaks_1_2 = speaks("TLSv1.2");
    files.speaks_1_3 = speaks("TLSv1.3");
  }
  const std::string clients = settings.text(Setting::tls_auth_clients);
  files.clients = clients == "yes"        ? net::ClientCertificates::required
                  : clients == "optional" ? net::ClientCertificates::optional
                                          : net::ClientCertificates::none;
  return files;
}

net::ServerOptions server_options(const net::Settings& settings) {
  net::ServerOptions options;
  options.addresses = addresses_of(settings.list(Setting::bind));
  options.port = port_of(settings, Setting::port);
  options.tls_port = port_of(settings, Setting::tls_port);
  options.unix_path = settings.text(Setting::unix_socket);
  if (const auto mode = settings.integer(Setting::unix_socket_mode); mode != 0) {
    options.unix_mode = static_cast<mode_t>(mode);
  }
  options.backlog = static_cast<int>(settings.integer(Setting::tcp_backlog));
  options.threads = static_cast<std::size_t>(settings.integer(Setting::io_threads));
  options.maxclients = static_cast<std::size_t>(settings.integer(Setting::maxclients));
  options.keepalive = millis_of(settings, Setting::tcp_keepalive);
  options.tls = tls_files(settings);
  options.limits = connection_limits(settings);
  return options;
}

Error with_whole_text(const Error& error, const std::string& where) {
  return {error.code, where.empty() ? error.message() : where + ": " + error.message()};
}

}  // namespace semel::tool
