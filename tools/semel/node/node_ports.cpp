#include "tools/semel/node/node_ports.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

#include "net/resp/reply_error.hpp"
#include "net/server/node_session.hpp"
#include "net/server/process.hpp"
#include "semel/version.hpp"
#include "tools/semel/node/node_crash.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {

using net::Setting;

NodePorts::NodePorts(const Terms& terms)
    : settings_(terms.settings),
      watch_(terms.watch),
      node_(terms.node),
      level_(terms.level),
      is_fixed_(terms.is_fixed),
      options_(server_options(terms.settings)) {}

// --- checks ---------------------------------------------------------------------------------

Status NodePorts::check() const {
  SEMEL_CHECK(net::check_options(options_));
  SEMEL_CHECK(check_protection(options_, node_.asks_for_password()));
  if (options_.tls_port) {
    const auto loaded = net::TlsContext::load(options_.tls);
    if (!loaded) return file_error(loaded.error().detail);
  }
  return Done{};
}

/// With protected-mode, no other machine may connect without a password or a certificate.
Status NodePorts::check_protection(const net::ServerOptions& options, bool has_password) const {
  if (!settings_.boolean(Setting::protected_mode)) return Done{};
  // As redis-server, it starts and serves this machine alone: each connection is asked about.
  if (settings_.boolean(Setting::stand_in)) return Done{};
  return net::check_exposure(
      {.addresses = options.addresses,
       .has_plain_port = options.port.has_value(),
       .has_tls_port = options.tls_port.has_value(),
       .has_password = has_password,
       .requires_certificates = options.tls.clients == net::ClientCertificates::required});
}

/// protected-mode may be set, and the password removed, while the node runs: it serves this machine
/// alone then. A start refuses the same.
Status NodePorts::check_next_start() const {
  const bool has_password = node_.asks_for_password() ||
                            !settings_.text(Setting::requirepass).empty() ||
                            !settings_.text(Setting::requirepass_file).empty();
  const Status allowed = check_protection(server_options(settings_), has_password);
  if (allowed) return Done{};
  return net::reply_error("ERR Rewriting config file: the node would not start with it: " +
                          allowed.error().detail);
}

// --- serving --------------------------------------------------------------------------------

net::ServerHooks NodePorts::hooks() {
  batches_.resize(net::io_threads_max);
  net::ServerHooks hooks;
  hooks.make_session = [this](const net::SessionInfo& info,
                              std::shared_ptr<net::SessionHost> host) {
    // Runs on the thread of that index, which alone uses this entry.
    std::unique_ptr<net::Batch>& batch = batches_[info.thread];
    if (batch == nullptr) batch = std::make_unique<net::Batch>();
    return net::make_node_session(node_, *batch, level_, info, std::move(host));
  };
  hooks.on_tick = [this](std::size_t thread) {
    arm_thread();
    watch_.pulse().beat(thread, std::chrono::steady_clock::now());
  };
  hooks.log = [this](net::LogLevel level, std::string_view line) {
    watch_.log().add(level, "server", {{"text", line}});
  };
  return hooks;
}

Status NodePorts::open() {
  auto started = net::Server::start(options_, hooks());
  if (!started) return file_error(started.error().detail);
  server_ = *std::move(started);
  note_port();
  note_maxclients();
  follow_settings();
  return Done{};
}

void NodePorts::greet() const {
  std::string where;
  std::string how;
  if (options_.port) {
    where = fmt::format("port {}", server().port());
    how = fmt::format("-p {}", server().port());
  } else if (options_.tls_port) {
    where = fmt::format("TLS port {}", server().tls_port());
    how = fmt::format("--tls -p {}", server().tls_port());
  } else {
    where = options_.unix_path;
    how = "-s " + where;
  }
  print_out("semel {} serves Redis' protocol on {}, process {}\n", version, where, getpid());
  print_out("try: redis-cli {} SET job:1 mine NX GET PX 60000\n", how);
  print_out("stop it with Ctrl-C or SIGTERM; all flags: semel node --help\n");
  std::fflush(stdout);
}

std::string NodePorts::ready_text() const {
  return server().ready_text() + watch_.ready_text();
}

Status NodePorts::write_ready() const {
  const std::string path = settings_.text(Setting::ready_file);
  if (path.empty()) return Done{};
  return net::write_ready_file(path, ready_text());
}

void NodePorts::remove_ready() const {
  const std::string path = settings_.text(Setting::ready_file);
  if (!path.empty()) net::remove_own_ready_file(path, ready_text());
}

void NodePorts::log_listeners(const net::ServerOptions& options) const {
  const auto listening = [this](std::string_view kind, const std::string& address) {
    watch_.log().info("listening", {{"for", kind}, {"address", address}});
  };
  for (const std::string& address : options.addresses) {
    const bool is_six = address.find(':') != std::string::npos;
    const std::string host = is_six ? "[" + address + "]" : address;
    if (options.port) listening("clients", fmt::format("{}:{}", host, server().port()));
    if (options.tls_port) {
      listening("clients over TLS", fmt::format("{}:{}", host, server().tls_port()));
    }
  }
  if (!options.unix_path.empty()) listening("clients", options.unix_path);
}

// --- settings that change -------------------------------------------------------------------

void NodePorts::follow_settings() {
  for (const Setting setting :
       {Setting::timeout, Setting::request_deadline, Setting::client_query_buffer_limit,
        Setting::client_output_buffer_limit}) {
    settings_.on_change(setting, [this] { server().set_limits(connection_limits(settings_)); });
  }
  constexpr std::array of_clients = {Setting::maxclients};
  settings_.apply_with(of_clients, [this]() -> Status {
    const auto count = static_cast<std::size_t>(settings_.integer(Setting::maxclients));
    if (server().set_maxclients(count)) return Done{};
    return Error{ErrorCode::bad_option,
                 fmt::format("the limit of open files is too low for {} connections (ulimit -n); "
                             "it stays {}",
                             count, server().maxclients())};
  });
  settings_.on_change(Setting::tcp_keepalive, [this] {
    server().set_keepalive(
        std::chrono::duration_cast<Millis>(settings_.duration(Setting::tcp_keepalive)));
  });
  // Each finds the work of the other done. The texts begin as redis-server's, which programs know.
  const auto listen = [this](Setting setting, std::string what) {
    const std::array settings = {setting};
    settings_.apply_with(settings, [this, what = std::move(what)]() -> Status {
      const Status done = listen_anew();
      if (done) return done;
      return Error{done.error().code, what + ": " + done.error().detail};
    });
  };
  listen(Setting::bind, "Failed to bind to specified addresses");
  listen(Setting::port, "Unable to listen on this port");
}

/// CONFIG SET bind and port, one at a time.
Status NodePorts::listen_anew() {
  if (is_fixed_) {
    return Error{ErrorCode::bad_option,
                 "a node of a group announces its address when it starts: set it there"};
  }
  const net::ServerOptions wanted = server_options(settings_);
  SEMEL_CHECK(net::check_options(wanted));
  SEMEL_CHECK(check_protection(wanted, node_.asks_for_password()));
  SEMEL_CHECK(server().listen_on(wanted.addresses, wanted.port));
  note_port();
  log_listeners(wanted);
  // Clients are served in any case.
  if (const Status written = write_ready(); !written) {
    watch_.log().warning("ready_file_not_written", {{"reason", written.error().detail}});
  }
  return Done{};
}

void NodePorts::note_port() {
  // mo: relaxed: shown only
  node_.facts.tcp_port.store(server().port(), std::memory_order_relaxed);
}

/// The server lowers it if the limit of open files cannot be raised. CONFIG GET and INFO show the
/// effective value, as in Redis, and CONFIG REWRITE keeps the requested one in the file.
void NodePorts::note_maxclients() {
  const std::size_t present = server().maxclients();
  if (present == options_.maxclients) return;
  // Not less than 1, which is all that the row asks for.
  static_cast<void>(settings_.assign(Setting::maxclients, std::to_string(present),
                                     settings_.origin(Setting::maxclients)));
}

}  // namespace semel::tool
