#include "gateway/proxy/gateway.hpp"

#include <poll.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <future>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "gateway/proxy/session.hpp"

namespace semel::gateway {

using asio::use_awaitable;

class Gateway::Inside {
 public:
  Inside(Engine& engine, const GatewayOptions& options)
      : shared{.engine = engine, .options = options} {}
  ~Inside() { stop(); }

  [[nodiscard]] Status open();
  void stop_listening();
  void drain_sessions();
  void stop();

  Shared shared;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> guards;
  std::vector<std::thread> threads;
  std::unique_ptr<Tcp::acceptor> acceptor;  // of the first worker
  std::uint16_t port = 0;
  bool is_stopped = false;

 private:
  [[nodiscard]] Status load_tls(const UpstreamAddress& address);
  [[nodiscard]] Status declare(const RoutePolicy& route);
  [[nodiscard]] Status listen();
  void take(Worker& worker, Tcp::socket socket);
  asio::awaitable<void> accept_all();
};

namespace {

Error wrong(const std::string& what) {
  return {ErrorCode::bad_option, what};
}

/// What is thrown, by an allocation, ends a handler and not the worker.
void run(asio::io_context& context) {
  for (;;) {
    try {
      context.run();
      return;
    } catch (const std::exception&) {
    }
  }
}

/// Runs on the worker's thread, and waits.
template <class Function>
void on(Worker& worker, Function&& function) {
  std::promise<void> done;
  asio::post(worker.context, [&] {
    function();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace

Status Gateway::Inside::load_tls(const UpstreamAddress& address) {
  using Context = asio::ssl::context;
  boost::system::error_code error;
  const GatewayOptions& options = shared.options;
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return wrong("a certificate and its key are needed together");
  }
  if (!options.tls_certificate.empty()) {
    shared.client_tls = std::make_unique<Context>(Context::tls_server);
    SSL_CTX_set_min_proto_version(shared.client_tls->native_handle(), TLS1_2_VERSION);
    shared.client_tls->use_certificate_chain_file(options.tls_certificate, error);
    if (error) return wrong("'" + options.tls_certificate + "': " + error.message());
    shared.client_tls->use_private_key_file(options.tls_key, Context::pem, error);
    if (error) return wrong("'" + options.tls_key + "': " + error.message());
  }
  if (!address.is_tls) return Done{};
  shared.upstream_tls = std::make_unique<Context>(Context::tls_client);
  SSL_CTX_set_min_proto_version(shared.upstream_tls->native_handle(), TLS1_2_VERSION);
  shared.upstream_tls->set_verify_mode(asio::ssl::verify_peer);
  if (options.upstream_authorities.empty()) {
    shared.upstream_tls->set_default_verify_paths(error);
  } else {
    shared.upstream_tls->load_verify_file(options.upstream_authorities, error);
  }
  if (error) return wrong("'" + options.upstream_authorities + "': " + error.message());
  return Done{};
}

Status Gateway::Inside::listen() {
  const std::string& text = shared.options.listen;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong("listen '" + text + "': ADDRESS:PORT is needed");
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) host = "::";
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  char* end = nullptr;
  const unsigned long number = std::strtoul(text.c_str() + colon + 1, &end, 10);
  if (error || *end != '\0' || end == text.c_str() + colon + 1 || number > 65'535) {
    return wrong("listen '" + text + "': ADDRESS:PORT is needed");
  }
  const Tcp::endpoint endpoint{address, static_cast<std::uint16_t>(number)};
  acceptor = std::make_unique<Tcp::acceptor>(workers.front()->context);
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(Tcp::acceptor::reuse_address{true}, error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error) return Error{ErrorCode::storage_in_use, "listen '" + text + "': " + error.message()};
  port = acceptor->local_endpoint().port();
  return Done{};
}

/// The directory may know the route with other times.
Status Gateway::Inside::declare(const RoutePolicy& route) {
  const Policy policy = route.claim_policy();
  auto found = shared.engine.claims(route.name, policy);
  if (!found.ok() && found.error().code == ErrorCode::namespace_differs) {
    SEMEL_CHECK(shared.engine.change_namespace(route.name, policy));
    found = shared.engine.claims(route.name);
  }
  if (!found.ok()) return found.error();
  shared.claims.emplace(route.name, *std::move(found));
  return Done{};
}

Status Gateway::Inside::open() {
  const GatewayOptions& options = shared.options;
  if (options.workers < 1 || options.workers > 64) {
    return wrong(std::to_string(options.workers) + " workers, valid is 1 to 64");
  }
  SEMEL_TRY(address, upstream_of(options.upstream));
  SEMEL_CHECK(load_tls(address));
  SEMEL_TRY(log, AccessLog::open(options.access_log));
  shared.log = std::move(log);
  for (const RoutePolicy& route : options.routes.all()) SEMEL_CHECK(declare(route));
  for (unsigned i = 0; i < options.workers; ++i) {
    workers.push_back(std::make_unique<Worker>(shared, address));
  }
  SEMEL_CHECK(listen());
  for (const auto& worker : workers) {
    guards.emplace_back(worker->context.get_executor());
    try {
      threads.emplace_back([&context = worker->context] { run(context); });
    } catch (const std::system_error&) {
      return Error{ErrorCode::no_thread, "a worker's thread"};
    }
  }
  asio::co_spawn(workers.front()->context, accept_all(), asio::detached);
  return Done{};
}

void Gateway::Inside::take(Worker& worker, Tcp::socket socket) {
  // mo: relaxed: a bound that may be off by who comes just now
  const bool is_full =
      shared.connections.fetch_add(1, std::memory_order_relaxed) >= shared.options.connections_max;
  Place place{shared.connections};
  if (is_full) return;
  boost::system::error_code ignored;
  socket.set_option(Tcp::no_delay{true}, ignored);
  asio::post(
      worker.context, [&worker, held = std::move(socket), place = std::move(place)]() mutable {
        const auto session = std::make_shared<Session>(worker, std::move(held), std::move(place));
        worker.sessions.insert(session);
        asio::co_spawn(worker.context, session->run(), asio::detached);
      });
}

asio::awaitable<void> Gateway::Inside::accept_all() {
  std::size_t next = 0;
  asio::steady_timer pause{workers.front()->context};
  while (acceptor->is_open()) {
    Worker& worker = *workers[next];
    next = (next + 1) % workers.size();
    bool is_refused = false;
    try {
      boost::system::error_code error;
      Tcp::socket socket = co_await acceptor->async_accept(
          worker.context, asio::redirect_error(use_awaitable, error));
      if (error == asio::error::operation_aborted || !acceptor->is_open()) co_return;
      is_refused = static_cast<bool>(error);  // no descriptors, perhaps
      if (!error) take(worker, std::move(socket));
    } catch (const std::exception&) {
      is_refused = true;  // no memory: the next one may find some
    }
    if (!is_refused) continue;
    boost::system::error_code ignored;
    pause.expires_after(Millis{20});
    co_await pause.async_wait(asio::redirect_error(use_awaitable, ignored));
  }
}

void Gateway::Inside::stop_listening() {
  on(*workers.front(), [&] {
    boost::system::error_code ignored;
    acceptor->close(ignored);
  });
}

void Gateway::Inside::drain_sessions() {
  for (std::size_t i = 0; i < threads.size(); ++i) {
    on(*workers[i], [&] {
      for (const auto& session : workers[i]->sessions) session->drain();
    });
  }
}

void Gateway::Inside::stop() {
  if (std::exchange(is_stopped, true)) return;
  const auto close_all = [this] {
    for (std::size_t i = 0; i < threads.size(); ++i) {  // others have none that runs them
      on(*workers[i], [&] {
        for (const auto& session : workers[i]->sessions) session->close();
        workers[i]->pool.close();
      });
    }
  };
  close_all();
  shared.blocking.join();  // what is being written down is
  close_all();             // a wait that had begun is known to its session by now
  guards.clear();
  for (const auto& worker : workers) worker->context.stop();
  for (std::thread& thread : threads) thread.join();
}

Result<std::unique_ptr<Gateway>> Gateway::start(Engine& engine, const GatewayOptions& options) {
  auto inside = std::make_unique<Inside>(engine, options);
  SEMEL_CHECK(inside->open());
  return std::unique_ptr<Gateway>{new Gateway{std::move(inside)}};
}

Gateway::Gateway(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
Gateway::~Gateway() {
  drain(Millis{0});
}
std::uint16_t Gateway::port() const noexcept {
  return inside_->port;
}
bool Gateway::is_draining() const noexcept {
  return inside_->shared.is_draining.load(std::memory_order_relaxed);  // mo: relaxed: a hint
}

std::string Gateway::metrics() const {
  // mo: relaxed: a figure
  const unsigned open = inside_->shared.connections.load(std::memory_order_relaxed);
  return inside_->shared.counters.text() +
         "# HELP semel_gateway_open_connections Connections of clients that are open.\n"
         "# TYPE semel_gateway_open_connections gauge\nsemel_gateway_open_connections " +
         std::to_string(open) +
         "\n# HELP semel_gateway_log_lost_total Lines of the access log that were lost.\n"
         "# TYPE semel_gateway_log_lost_total counter\nsemel_gateway_log_lost_total " +
         std::to_string(inside_->shared.log->lost()) + "\n";
}

void Gateway::drain(Millis within) {
  if (inside_->is_stopped) return;
  // mo: relaxed: sessions see it with their next request
  if (!inside_->shared.is_draining.exchange(true, std::memory_order_relaxed)) {
    inside_->stop_listening();
  }
  inside_->drain_sessions();
  const Timestamp deadline = deadline_after(inside_->shared.clock.now(), within);
  // mo: relaxed: it becomes 0 some time
  while (inside_->shared.connections.load(std::memory_order_relaxed) != 0 &&
         inside_->shared.clock.now() < deadline) {
    poll(nullptr, 0, 5);
    inside_->drain_sessions();
  }
  inside_->stop();
}

}  // namespace semel::gateway
