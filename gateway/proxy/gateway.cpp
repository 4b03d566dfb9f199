#include "gateway/proxy/gateway.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/stopwatch.hpp"
#include "gateway/proxy/access_log.hpp"
#include "gateway/proxy/admin_port.hpp"
#include "gateway/proxy/worker.hpp"
#include "gateway/store/embedded_store.hpp"
#include "gateway/store/node_setup.hpp"
#include "gateway/store/node_store.hpp"
#include "semel/storage.hpp"

namespace semel::gateway {
namespace {

constexpr Millis watch_every{250};  // leases are 1 s at least

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
        counters_(settings_.routes),
        memory_(settings_.body_memory) {
    default_route_.name = "default";
    default_route_.guard = settings_.default_guard;
  }
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] Status open_store();
  [[nodiscard]] Status open_node();
  [[nodiscard]] StoreMaker store_maker();
  [[nodiscard]] Status open_workers();
  [[nodiscard]] Status open_admin();
  [[nodiscard]] Status ready() const;
  [[nodiscard]] Status resolve(std::string_view route, std::string_view key, bool is_done);
  void audit(AuditLine line);
  bool drain();

  std::uint16_t port_ = 0;
  std::uint16_t admin_port_ = 0;

 private:
  Settings settings_;
  Route default_route_;
  UpstreamAddress upstream_;
  SystemClock clock_;
  Counters counters_;
  LastTrouble store_trouble_;
  MemoryBudget memory_;
  HeldReplies held_{memory_};
  std::unique_ptr<AccessLog> log_;
  std::unique_ptr<AccessLog> audit_;  // where there is no access log
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<NodeContext> node_;    // instead of storage, engine and guards
  std::unique_ptr<RequestRules> rules_;  // likewise
  // Declared first, destroyed last: an engine that ends answers into closed bridges.
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Guards> guards_;
  std::unique_ptr<AdminPort> admin_;
  Counter draining_;
};

Gateway::Impl::~Impl() {
  admin_.reset();
  for (const auto& worker : workers_) worker->stop();
  guards_.reset();
  engine_.reset();
  storage_.reset();
}

Status Gateway::Impl::open_store() {
  if (settings_.node.is_used()) return open_node();
  Options options{.clock = &clock_,
                  .memory_bytes = settings_.memory_bytes,
                  .value_bytes_max = semel::limits::value_bytes_max};
  if (!settings_.store.empty()) {
    auto opened = Storage::open({.directory = settings_.store}, clock_);
    if (!opened) {
      return Error{opened.error().code,
                   "store '" + settings_.store + "': " + opened.error().message()};
    }
    storage_ = *std::move(opened);
    options.journal = storage_.get();
    options.first_version = storage_->first_version();
  }
  // At the level memory, so that no call waits: requests wait for confirm_async(), see session.hpp.
  auto engine = Engine::open(options);
  if (!engine) return Error{engine.error().code, "the engine: " + engine.error().message()};
  engine_ = *std::move(engine);
  if (storage_ != nullptr) {
    const auto recovered = storage_->recover(*engine_);
    if (!recovered) {
      return Error{recovered.error().code,
                   "store '" + settings_.store + "': " + recovered.error().message()};
    }
  }
  auto guards = Guards::open(*engine_, settings_.routes, settings_.keys, watch_every);
  if (!guards) return guards.error();
  guards_ = *std::move(guards);
  if (storage_ == nullptr) return Done{};
  return engine_->confirm(settings_.durability);
}

Status Gateway::Impl::open_node() {
  SEMEL_TRY(tls, node_tls(settings_.node));
  node_ = std::make_unique<NodeContext>(NodeContext{.settings = settings_.node,
                                                    .tls = std::move(tls),
                                                    .connect_timeout = settings_.connect_timeout,
                                                    .counters = counters_,
                                                    .trouble = store_trouble_});
  SEMEL_TRY(rules, RequestRules::open(settings_.routes, settings_.keys));
  rules_ = std::move(rules);
  return set_up_node(*node_, *rules_);
}

StoreMaker Gateway::Impl::store_maker() {
  if (node_ != nullptr) {
    return [this](asio::io_context& io, const std::shared_ptr<Bridge>& /*bridge*/) {
      const auto store = std::make_shared<NodeStore>(io, *rules_, held_, *node_);
      store->start();
      return store;
    };
  }
  const Durability level = storage_ == nullptr ? Durability::memory : settings_.durability;
  return [this, level](asio::io_context& /*io*/, const std::shared_ptr<Bridge>& bridge) {
    return std::make_shared<EmbeddedStore>(*guards_, held_, level, bridge);
  };
}

Status Gateway::Impl::open_workers() {
  SEMEL_TRY(upstream, parse_upstream(settings_.upstream));
  upstream_ = std::move(upstream);
  SEMEL_TRY(log, AccessLog::open(settings_.access_log, counters_));
  log_ = std::move(log);
  SEMEL_TRY(for_clients, client_tls(settings_));
  SEMEL_TRY(for_upstream, upstream_tls(settings_));
  const unsigned threads = settings_.threads != 0 ? settings_.threads
                                                  : std::clamp(std::thread::hardware_concurrency(),
                                                               1U, limits::threads_max);
  shared_ = std::make_unique<Shared>(Shared{.settings = settings_,
                                            .upstream = upstream_,
                                            .clock = clock_,
                                            .default_route = default_route_,
                                            .counters = counters_,
                                            .memory = memory_,
                                            .log = *log_,
                                            .client_tls = for_clients,
                                            .upstream_tls = for_upstream,
                                            .thread_count = threads});
  const StoreMaker make_store = store_maker();
  SEMEL_TRY(at, endpoint_of(settings_.listen));
  for (unsigned i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(*shared_, make_store));
    SEMEL_CHECK(i == 0 ? workers_[0]->listen(at) : workers_[i]->listen_with(*workers_[0]));
  }
  port_ = workers_.front()->port();
  for (const auto& worker : workers_) worker->run();
  return Done{};
}

Status Gateway::Impl::open_admin() {
  if (settings_.admin.empty()) return Done{};
  SEMEL_TRY(at, parse_address(settings_.admin));
  std::optional<AdminToken> token;
  if (!settings_.admin_token.empty()) {
    SEMEL_TRY(made, AdminToken::make(settings_.admin_token));
    token = std::move(made);
  }
  if (!log_->is_on()) audit_ = AccessLog::to_standard_error(counters_);
  SEMEL_TRY(admin,
            AdminPort::start(
                at, {.token = std::move(token),
                     .audit = [this](AuditLine line) { audit(line); },
                     .metrics = [this] { return counters_.text(memory_); },
                     .ready = [this] { return ready(); },
                     .resolve = [this](std::string_view route, std::string_view key,
                                       bool is_done) { return resolve(route, key, is_done); }}));
  admin_ = std::move(admin);
  admin_port_ = admin_->port();
  return Done{};
}

Status Gateway::Impl::ready() const {
  if (draining_.get() != 0) return Error{ErrorCode::closing, "the gateway ends"};
  if (node_ != nullptr && counters_.store_connections.get() == 0) {
    return Error{ErrorCode::refused,
                 "there is no connection to a node of the store: " + store_trouble_.get()};
  }
  if (storage_ != nullptr && !storage_->accepts_writes()) {
    return Error{ErrorCode::refused, storage_->stats().trouble};
  }
  return Done{};
}

Status Gateway::Impl::resolve(std::string_view route, std::string_view key, bool is_done) {
  if (node_ != nullptr) return resolve_at_node(*node_, *rules_, route, key, is_done);
  SEMEL_CHECK(guards_->resolve(route, key, is_done));
  return storage_ == nullptr ? Status{Done{}} : engine_->confirm(settings_.durability);
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

Result<std::unique_ptr<Gateway>> Gateway::start(Settings settings) {
  SEMEL_CHECK(check_settings(settings));
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

bool Gateway::drain() {
  return impl_->drain();
}

}  // namespace semel::gateway
