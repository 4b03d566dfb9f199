// Settings that CONFIG SET changes in a running node, beside those that net/node follows itself.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>

#include "net/resp/reply_error.hpp"
#include "net/server/process.hpp"
#include "net/stats/process_facts.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/node/node_run.hpp"

namespace semel::tool {

using net::Setting;

void NodeRun::follow_settings() {
  net::Server* const server = server_.get();
  for (const Setting setting :
       {Setting::timeout, Setting::request_deadline, Setting::client_query_buffer_limit,
        Setting::client_output_buffer_limit}) {
    settings_.on_change(setting,
                        [this, server] { server->set_limits(connection_limits(settings_)); });
  }
  constexpr std::array of_clients = {Setting::maxclients};
  settings_.apply_with(of_clients, [this, server]() -> Status {
    const auto count = static_cast<std::size_t>(settings_.integer(Setting::maxclients));
    if (server->set_maxclients(count)) return Done{};
    return Error{ErrorCode::bad_option,
                 fmt::format("the limit of open files is too low for {} connections (ulimit -n); "
                             "it stays {}",
                             count, server->maxclients())};
  });
  settings_.on_change(Setting::tcp_keepalive, [this, server] {
    server->set_keepalive(
        std::chrono::duration_cast<Millis>(settings_.duration(Setting::tcp_keepalive)));
  });
  constexpr std::array of_listening = {Setting::bind, Setting::port};
  settings_.apply_with(of_listening, [this] { return listen_anew(); });
  settings_.on_change(Setting::scripts, [this] { log_scripts(); });
  constexpr std::array of_tls = {Setting::tls_cert_file,     Setting::tls_key_file,
                                 Setting::tls_key_file_pass, Setting::tls_ca_cert_file,
                                 Setting::tls_ca_cert_dir,   Setting::tls_auth_clients,
                                 Setting::tls_protocols,     Setting::tls_ciphers,
                                 Setting::tls_ciphersuites,  Setting::tls_prefer_server_ciphers};
  settings_.apply_with(of_tls, [this]() -> Status {
    if (certificates_->reload()) return Done{};
    return Error{ErrorCode::bad_option, "Unable to update TLS configuration. Check server logs."};
  });
}

// --- limits of the machine ------------------------------------------------------------------

/// A limit may be too small for the tables of the shards: an engine opened with it reports that.
Status NodeRun::check_memory() {
  if (own_engine_ == nullptr) return Done{};  // a group's engine refuses every change
  const Options options = engine_options();
  if (options.memory_bytes > memory_bytes_max_) {
    return Error{ErrorCode::bad_option,
                 fmt::format("the node reserved addresses for {} bytes when it started, which is "
                             "the memory of the machine or what maxmemory was, if that is more; "
                             "for more, set it in the file and start the node anew",
                             memory_bytes_max_)};
  }
  if (options.memory_bytes >= own_engine_->stats().bytes_limit) return Done{};
  const auto trial = Engine::open(options);
  if (trial || trial.error().code != ErrorCode::bad_option) return Done{};
  return Error{ErrorCode::bad_option,
               "no node would start with it: " + trial.error().detail + "; shards is fixed"};
}

/// The engine holds it however little memory there is, so a start takes it: addresses are all that
/// the engine needs at first, and a configuration may move to a smaller machine.
void NodeRun::log_memory() {
  const std::int64_t maxmemory = settings_.integer(Setting::maxmemory);
  const std::uint64_t machine = net::process_facts().system_memory_bytes;
  if (machine == 0 || static_cast<std::uint64_t>(maxmemory) <= machine) return;
  watch_.log().warning("maxmemory_above_machine", {{"maxmemory", maxmemory}, {"machine", machine}});
}

/// The server lowers it if the limit of open files cannot be raised. CONFIG GET and INFO show the
/// effective value, as in Redis, and CONFIG REWRITE keeps the requested one in the file.
void NodeRun::note_maxclients() {
  const std::size_t present = server_->maxclients();
  if (present == server_options_.maxclients) return;
  // Not less than 1, which is all that the row asks for.
  static_cast<void>(settings_.assign(Setting::maxclients, std::to_string(present),
                                     settings_.origin(Setting::maxclients)));
}

// --- listeners ------------------------------------------------------------------------------

/// With protected-mode, no other machine may connect without a password or a certificate.
Status NodeRun::check_protection(const net::ServerOptions& options, bool has_password) const {
  if (!settings_.boolean(Setting::protected_mode)) return Done{};
  return net::check_exposure(
      {.addresses = options.addresses,
       .has_plain_port = options.port.has_value(),
       .has_tls_port = options.tls_port.has_value(),
       .has_password = has_password,
       .requires_certificates = options.tls.clients == net::ClientCertificates::required});
}

/// protected-mode may be set, and the password removed, while the node runs: it serves this machine
/// alone then. A start refuses the same.
Status NodeRun::check_next_start() const {
  const bool has_password = node_->asks_for_password() ||
                            !settings_.text(Setting::requirepass).empty() ||
                            !settings_.text(Setting::requirepass_file).empty();
  const Status allowed = check_protection(server_options(settings_), has_password);
  if (allowed) return Done{};
  return net::reply_error("ERR Rewriting config file: the node would not start with it: " +
                          allowed.error().detail);
}

/// CONFIG SET bind and port, one at a time.
Status NodeRun::listen_anew() {
  if (group_.is_open()) {
    return Error{ErrorCode::bad_option,
                 "a node of a group announces its address when it starts: set it there"};
  }
  const net::ServerOptions wanted = server_options(settings_);
  SEMEL_CHECK(net::check_options(wanted));
  SEMEL_CHECK(check_protection(wanted, node_->asks_for_password()));
  SEMEL_CHECK(server_->listen_on(wanted.addresses, wanted.port));
  note_port();
  log_listeners(wanted);
  // Clients are served in any case.
  if (const Status written = write_ready(); !written) {
    watch_.log().warning("ready_file_not_written", {{"reason", written.error().detail}});
  }
  return Done{};
}

void NodeRun::note_port() {
  // mo: relaxed: shown only
  node_->facts.tcp_port.store(server_->port(), std::memory_order_relaxed);
}

Status NodeRun::write_ready() {
  const std::string path = settings_.text(Setting::ready_file);
  if (path.empty()) return Done{};
  return net::write_ready_file(path, server_->ready_text() + watch_.ready_text());
}

void NodeRun::log_listeners(const net::ServerOptions& options) {
  const auto listening = [this](std::string_view kind, const std::string& address) {
    watch_.log().info("listening", {{"for", kind}, {"address", address}});
  };
  for (const std::string& address : options.addresses) {
    const bool is_six = address.find(':') != std::string::npos;
    const std::string host = is_six ? "[" + address + "]" : address;
    if (options.port) listening("clients", fmt::format("{}:{}", host, server_->port()));
    if (options.tls_port) {
      listening("clients over TLS", fmt::format("{}:{}", host, server_->tls_port()));
    }
  }
  if (!options.unix_path.empty()) listening("clients", options.unix_path);
}

}  // namespace semel::tool
