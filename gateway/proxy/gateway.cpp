#include "gateway/proxy/gateway.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/stopwatch.hpp"
#include "gateway/config/reload.hpp"
#include "gateway/config/settings_check.hpp"
#include "gateway/proxy/access_log.hpp"
#include "gateway/proxy/admin_routes.hpp"
#include "gateway/proxy/claim_backend.hpp"
#include "gateway/proxy/worker.hpp"

namespace semel::gateway {
namespace {

/// An address to bind to. Names are resolved: "localhost".
Result<tcp::endpoint> endpoint_of(const std::string& text) {
  SEMEL_TRY(address, parse_address(text));
  error_code error;
  if (address.host.empty()) return tcp::endpoint{tcp::v6(), address.port};
  const auto literal = asio::ip::make_address(address.host, error);
  if (!error) return tcp::endpoint{literal, address.port};
  asio::io_context io;
  tcp::resolver resolver{io};
  const auto found = resolver.resolve(address.host, std::to_string(address.port), error);
  if (error || found.empty()) {
    return Error{ErrorCode::bad_option, "listen '" + text + "': " + error.message()};
  }
  return found.begin()->endpoint();
}

}  // namespace

class Gateway::Impl {
 public:
  explicit Impl(Settings settings)
      : settings_(std::move(settings)),
        memory_(settings_.body_memory),
        backend_(settings_, clock_, counters_, memory_, node_tls_) {}
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] Status open_store();
  [[nodiscard]] Status open_workers();
  [[nodiscard]] Status open_admin();
  [[nodiscard]] Result<std::vector<std::string>> reload(const Settings& fresh);
  [[nodiscard]] Status reopen_log() { return log_->reopen(); }
  bool drain();

  std::uint16_t port_ = 0;
  std::uint16_t admin_port_ = 0;

 private:
  [[nodiscard]] Status ready() const;
  void audit(AuditLine line);

  const Settings settings_;
  UpstreamAddress upstream_;
  SystemClock clock_;
  Counters counters_;
  MemoryBudget memory_;
  CurrentTls client_tls_;
  CurrentTls upstream_tls_;
  CurrentTls node_tls_;
  std::unique_ptr<AccessLog> log_;
  std::unique_ptr<AccessLog> audit_;  // if there is no access log
  std::unique_ptr<Shared> shared_;
  // Closed before the workers are destroyed: an engine that ends answers into their closed bridges.
  ClaimBackend backend_;
  Terms terms_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<net::AdminServer> admin_;
  Counter draining_;
};

Gateway::Impl::~Impl() {
  admin_.reset();
  for (const auto& worker : workers_) worker->stop();
  backend_.close();
}

Status Gateway::Impl::open_store() {
  SEMEL_TRY(for_nodes, node_tls(settings_.node));
  node_tls_.set(std::move(for_nodes));
  SEMEL_CHECK(backend_.open());
  auto policy = std::make_shared<const RoutePolicy>(settings_, counters_);
  counters_.show(policy->counts());
  SEMEL_TRY(terms, backend_.prepare(std::move(policy), node_tls_));
  backend_.use();
  terms_ = std::move(terms);
  return Done{};
}

Status Gateway::Impl::open_workers() {
  SEMEL_TRY(upstream, parse_upstream(settings_.upstream));
  upstream_ = std::move(upstream);
  SEMEL_TRY(log, AccessLog::open(settings_.access_log, counters_));
  log_ = std::move(log);
  SEMEL_TRY(for_clients, client_tls(settings_));
  SEMEL_TRY(for_upstream, upstream_tls(settings_));
  client_tls_.set(std::move(for_clients));
  upstream_tls_.set(std::move(for_upstream));
  const unsigned threads = settings_.threads != 0 ? settings_.threads
                                                  : std::clamp(std::thread::hardware_concurrency(),
                                                               1U, limits::threads_max);
  shared_ = std::make_unique<Shared>(Shared{.settings = settings_,
                                            .upstream = upstream_,
                                            .clock = clock_,
                                            .counters = counters_,
                                            .memory = memory_,
                                            .log = *log_,
                                            .client_tls = client_tls_,
                                            .upstream_tls = upstream_tls_,
                                            .is_tls = client_tls_.get() != nullptr,
                                            .thread_count = threads});
  SEMEL_TRY(at, endpoint_of(settings_.listen));
  for (unsigned i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(*shared_, terms_));
    SEMEL_CHECK(i == 0 ? workers_[0]->listen(at) : workers_[i]->listen_with(*workers_[0]));
  }
  port_ = workers_.front()->port();
  for (const auto& worker : workers_) worker->run();
  return Done{};
}

Status Gateway::Impl::open_admin() {
  if (settings_.admin.empty()) return Done{};
  std::optional<AdminToken> token;
  if (!settings_.admin_token.empty()) {
    SEMEL_TRY(made, AdminToken::make(settings_.admin_token));
    token = std::move(made);
  }
  if (!log_->is_on()) audit_ = AccessLog::to_standard_error(counters_);
  const bool needs_header = !token.has_value();
  SEMEL_TRY(options, admin_options(settings_, std::move(token)));
  AdminCalls calls{
      .audit = [this](AuditLine line) { audit(line); },
      .metrics = [this] { return counters_.text(memory_); },
      .ready = [this] { return ready(); },
      .resolve = [this](std::string_view route, std::string_view key,
                        bool is_done) { return backend_.resolve(route, key, is_done); }};
  SEMEL_TRY(admin, net::AdminServer::start(options, admin_site(std::move(calls), needs_header)));
  admin_ = std::move(admin);
  admin_port_ = admin_->endpoints().front().port;
  return Done{};
}

Status Gateway::Impl::ready() const {
  if (draining_.get() != 0) return Error{ErrorCode::closing, "the gateway ends"};
  return backend_.ready();
}

Result<std::vector<std::string>> Gateway::Impl::reload(const Settings& fresh) {
  // Everything is made before any of it is used.
  Settings files = fresh;
  if (files.tls_cert.empty() != settings_.tls_cert.empty()) {
    files.tls_cert = settings_.tls_cert;
    files.tls_key = settings_.tls_key;
  }
  files.upstream = settings_.upstream;
  files.node.is_tls = settings_.node.is_tls;
  SEMEL_TRY(for_clients, client_tls(files));
  SEMEL_TRY(for_upstream, upstream_tls(files));
  SEMEL_TRY(for_nodes, node_tls(files.node));
  CurrentTls to_nodes;
  to_nodes.set(for_nodes);
  auto policy = std::make_shared<const RoutePolicy>(fresh, counters_);
  SEMEL_TRY(terms, backend_.prepare(policy, to_nodes));
  client_tls_.set(std::move(for_clients));
  upstream_tls_.set(std::move(for_upstream));
  node_tls_.set(std::move(for_nodes));
  counters_.show(policy->counts());
  backend_.use();
  for (const auto& worker : workers_) worker->use(terms);
  terms_ = std::move(terms);
  return fixed_differences(settings_, fresh);
}

void Gateway::Impl::audit(AuditLine line) {
  line.unix_ms = clock_.unix_ms();
  (audit_ != nullptr ? *audit_ : *log_).add(audit_json(line));
}

bool Gateway::Impl::drain() {
  draining_.add();
  for (const auto& worker : workers_) worker->drain();
  const base::Stopwatch since;
  base::Mutex mutex;
  base::Condition never;
  base::MutexLock lock{mutex};
  constexpr Millis look_every{20};
  while (counters_.connections.get() > 0) {
    if (since.passed() >= settings_.drain_timeout) return false;
    never.wait_for(lock, look_every);
  }
  return true;
}

Gateway::Gateway(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Gateway::~Gateway() = default;

std::vector<std::string> Gateway::check(const Settings& settings) {
  std::vector<std::string> errors = check_settings(settings);
  const std::vector<std::string> files = check_tls_files(settings);
  errors.insert(errors.end(), files.begin(), files.end());
  if (!errors.empty()) return errors;
  // An engine checks the routes' terms without a storage as well.
  const SystemClock clock;
  const auto engine =
      Engine::open({.clock = &clock, .memory_bytes = semel::limits::memory_bytes_min});
  if (!engine) return errors;
  const auto guards = Guards::open(**engine, settings.routes, settings.keys, std::nullopt);
  if (!guards) errors.push_back(guards.error().detail);
  return errors;
}

Result<std::unique_ptr<Gateway>> Gateway::start(Settings settings) {
  const std::vector<std::string> errors = check_settings(settings);
  if (!errors.empty()) return Error{ErrorCode::bad_option, errors.front()};
  // Asio throws if there is no descriptor left for it, std::thread if there is no thread.
  try {
    auto impl = std::make_unique<Impl>(std::move(settings));
    SEMEL_CHECK(impl->open_store());
    SEMEL_CHECK(impl->open_workers());
    SEMEL_CHECK(impl->open_admin());
    return std::unique_ptr<Gateway>{new Gateway{std::move(impl)}};
  } catch (const std::system_error& failed) {
    return Error{ErrorCode::no_thread, std::string{"cannot start: "} + failed.what()};
  }
}

std::uint16_t Gateway::port() const noexcept {
  return impl_->port_;
}

std::uint16_t Gateway::admin_port() const noexcept {
  return impl_->admin_port_;
}

Result<std::vector<std::string>> Gateway::reload(const Settings& fresh) {
  const std::vector<std::string> errors = check_settings(fresh);
  if (!errors.empty()) return Error{ErrorCode::bad_option, errors.front()};
  return impl_->reload(fresh);
}

Status Gateway::reopen_log() {
  return impl_->reopen_log();
}

bool Gateway::drain() {
  return impl_->drain();
}

}  // namespace semel::gateway
