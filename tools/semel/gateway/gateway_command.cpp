#include "tools/semel/gateway/gateway_command.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "net/admin/admin_server.hpp"
#include "net/server/process.hpp"
#include "semel/engine.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/stop_signals.hpp"
#include "tools/semel/shared/units.hpp"
#ifdef SEMEL_HAS_STORAGE
#include "semel/storage.hpp"
#endif

namespace semel::tool {

GatewayCommand::GatewayCommand(CLI::App& program)
    : app_(program.add_subcommand(
          "gateway", "let each HTTP request with an Idempotency-Key through to an upstream once")) {
  const auto text = [this](const char* name, std::string& to, const char* what) {
    return app_->add_option(name, to, what)->type_name("");
  };
  text("--listen", options_.listen,
       "ADDRESS:PORT for clients; port 0: a free one. Default: 127.0.0.1:8080");
  text("--upstream", options_.upstream, "http://HOST:PORT or https://HOST:PORT")->required();
  text("--routes", routes_file_, "File in TOML with the routes that are guarded")->required();
  text("--dir", directory_, "Directory for the claims; without it they are gone with the process");
  text("--memory", memory_, "Bound of the claims and kept replies. Default: 256MiB");
  app_->add_option("--workers", options_.workers, "Threads for connections. Default: 2")
      ->type_name("");
  app_->add_option("--connections", options_.connections_max,
                   "Connections of clients at a time. Default: 4096")
      ->type_name("");
  text("--tls-cert", options_.tls_certificate, "Certificate for clients, PEM");
  text("--tls-key", options_.tls_key, "Its key, PEM");
  text("--upstream-ca", options_.upstream_authorities, "Authorities of an https upstream, PEM");
  text("--access-log", options_.access_log,
       "File for a line of JSON a request; -: standard output");
  text("--admin-address", admin_address_,
       "Address for /metrics, /livez and /readyz. Default: 127.0.0.1");
  app_->add_option("--admin-port", admin_port_, "Its port; 0: a free one. Default: none")
      ->type_name("");
  text("--ready-file", ready_file_, "File that is written when it serves; it has the ports");
  app_->add_flag("--check", checks_, "report errors in the routes, and exit");
  app_->footer("See docs/gateway.md for the routes.");
}

Status GatewayCommand::read_routes() {
  std::ifstream file{routes_file_, std::ios::binary};
  if (!file) return file_error("routes '" + routes_file_ + "': it cannot be read");
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  SEMEL_TRY(routes, gateway::read_routes(text, routes_file_));
  options_.routes = std::move(routes);
  return Done{};
}

Exit GatewayCommand::run() {
  has_admin_ = app_->count("--admin-port") != 0;
  Status done = read_routes();
  if (done && checks_) return write_out("semel gateway: the routes are right\n");
  if (done) done = serve();
  if (done) return Exit::ok;
  print_error("semel gateway: {}\n", done.error().message());
  return exit_of(done.error().code);
}

Status GatewayCommand::serve() {
  SEMEL_TRY(memory, parse_memory(memory_));
  const SystemClock clock;
  Options options;
  options.clock = &clock;
  options.memory_bytes = memory;
  std::unique_ptr<Journal> journal;
  if (!directory_.empty()) {
#ifdef SEMEL_HAS_STORAGE
    SEMEL_TRY(storage, Storage::open({.directory = directory_}, clock));
    options.journal = storage.get();
    options.first_version = storage->first_version();
    options.durability = Durability::synced;  // before the upstream gets a byte
    options_.is_durable = true;
    Storage& opened = *storage;
    journal = std::move(storage);
    SEMEL_TRY(engine, Engine::open(options));
    SEMEL_CHECK(opened.recover(*engine));
    return serve_on(*engine);
#else
    return usage_error("--dir: this program was built without a storage");
#endif
  }
  SEMEL_TRY(engine, Engine::open(options));
  return serve_on(*engine);
}

Status GatewayCommand::serve_on(Engine& engine) {
  const StopSignals stop;
  SEMEL_TRY(started, gateway::Gateway::start(engine, options_));
  const std::unique_ptr<gateway::Gateway> served = std::move(started);
  std::unique_ptr<net::AdminServer> admin;
  std::string ports = "port " + std::to_string(served->port()) + "\n";
  if (has_admin_) {
    const auto is_ready = [&]() -> Status {
      if (!served->is_draining()) return Done{};
      return Error{ErrorCode::closing, "it is ending"};
    };
    SEMEL_TRY(opened, net::AdminServer::start(
                          {.addresses = {admin_address_}, .port = admin_port_},
                          {.metrics = [&] { return served->metrics(); }, .ready = is_ready}));
    admin = std::move(opened);
    ports += "admin " + std::to_string(admin->endpoints().front().port) + "\n";
  }
  if (!ready_file_.empty()) SEMEL_CHECK(net::write_ready_file(ready_file_, ports));
  print_error("semel gateway: serving on port {}\n", served->port());
  pollfd signal{.fd = stop.descriptor(), .events = POLLIN, .revents = 0};
  while (stop.received() == 0) poll(&signal, 1, -1);
  served->drain(options_.drain_within);
  return Done{};
}

}  // namespace semel::tool
