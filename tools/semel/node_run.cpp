#include "tools/semel/node_run.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "net/config/rewrite.hpp"
#include "net/server/node_peer.hpp"
#include "net/server/process.hpp"
#include "semel/version.hpp"
#include "tools/semel/node_storage.hpp"

namespace semel::tool {
namespace {

using net::Setting;

constexpr Millis drain_within{10'000};  // for requests under way, when the node is told to end

std::string text_of(const Error& error) {
  std::string text{sentence_of(error.code)};
  return error.detail.empty() ? text : text + ": " + error.detail;
}

/// They are waited for, not handled: set before the first thread is made, which inherits it.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

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

}  // namespace

// --- time -----------------------------------------------------------------------------------

Ticker::Ticker(Engine& engine, net::Node& node)
    : engine_(engine), node_(node), thread_([this] { run(); }) {}

Ticker::~Ticker() {
  {
    const std::lock_guard lock{mutex_};
    stops_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

void Ticker::run() {
  // Small parts and a pause between them: on one processor an io thread waits for each.
  constexpr std::size_t part = 2'000;
  constexpr auto pause = std::chrono::microseconds{200};
  constexpr auto rest = std::chrono::milliseconds{2};
  std::unique_lock lock{mutex_};
  bool more = false;
  while (!stopped_.wait_for(lock, more ? pause : std::chrono::microseconds{rest},
                            [this] { return stops_; })) {
    lock.unlock();
    more = engine_.advance(part) == 0;
    node_.tick();
    lock.lock();
  }
}

// --- the parts ------------------------------------------------------------------------------

NodeRun::NodeRun(net::Settings& settings, std::string file)
    : settings_(settings), file_(std::move(file)) {}
NodeRun::~NodeRun() {
  ticker_.reset();
  server_.reset();
}

std::string NodeRun::open_engine() {
  if (settings_.boolean(Setting::test_clock)) {
    test_clock_ = std::make_unique<net::TestClock>(system_clock_);
  }
  const Clock& clock = test_clock_ != nullptr ? static_cast<const Clock&>(*test_clock_)
                                              : static_cast<const Clock&>(system_clock_);
  Options options{.clock = &clock,
                  .memory_bytes = static_cast<std::size_t>(settings_.integer(Setting::maxmemory)),
                  .value_bytes_max = limits::value_bytes_max,
                  .shard_count = static_cast<unsigned>(settings_.integer(Setting::shards))};
  NodeStorage storage{settings_, clock};
  if (settings_.boolean(Setting::storage_enabled)) {
    if (std::string problem = storage.open(options); !problem.empty()) return problem;
    level_ = options.durability;
    // Callers of `synced` are answered when the disk has; the thread that serves them goes on.
    if (level_ > Durability::logged) options.durability = Durability::logged;
  }
  auto opened = Engine::open(options);
  if (!opened) return text_of(opened.error());
  engine_ = *std::move(opened);
  std::string problem = storage.recover(*engine_);
  storage_ = storage.take();
  return problem;
}

std::string NodeRun::open_node() {
  node_ = std::make_unique<net::Node>(*engine_, settings_, test_clock_.get());
  node_->facts.journals = settings_.boolean(Setting::storage_enabled);
  node_->facts.config_file = file_;
  node_->facts.tcp_port =
      static_cast<std::uint16_t>(std::max(settings_.integer(Setting::port), std::int64_t{0}));
  node_->hooks.shutdown = [] { kill(getpid(), SIGTERM); };
  node_->hooks.replace_file = [](const std::string& path, std::string_view text) {
    return !net::write_ready_file(path, text);
  };
  node_->hooks.rewrite_config = [this] { return net::rewrite_config(settings_, file_); };
  if (auto problem = node_->open_users()) return *problem;
  return {};
}

net::TlsFiles NodeRun::tls_files() const {
  net::TlsFiles files{.certificate = settings_.text(Setting::tls_cert_file),
                      .key = settings_.text(Setting::tls_key_file),
                      .authorities = settings_.text(Setting::tls_ca_cert_file)};
  const std::string clients = settings_.text(Setting::tls_auth_clients);
  files.clients = clients == "yes"        ? net::ClientCertificates::required
                  : clients == "optional" ? net::ClientCertificates::optional
                                          : net::ClientCertificates::none;
  return files;
}

net::LinkLimits NodeRun::link_limits() const {
  const auto ms = [this](Setting setting) {
    return std::chrono::duration_cast<Millis>(settings_.duration(setting));
  };
  net::LinkLimits limits{.idle = ms(Setting::timeout), .request = ms(Setting::request_deadline)};
  limits.input_bytes =
      static_cast<std::size_t>(settings_.integer(Setting::client_query_buffer_limit));
  const net::OutputLimits output = settings_.output_limits();
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

net::ServerOptions NodeRun::server_options() const {
  net::ServerOptions options;
  options.addresses = addresses_of(settings_.list(Setting::bind));
  const auto port = [this](Setting setting) -> std::optional<std::uint16_t> {
    const std::int64_t number = settings_.integer(setting);
    if (number < 0) return std::nullopt;
    return static_cast<std::uint16_t>(number);
  };
  options.port = port(Setting::port);
  options.tls_port = port(Setting::tls_port);
  options.unix_path = settings_.text(Setting::unix_socket);
  if (const auto mode = settings_.integer(Setting::unix_socket_mode); mode != 0) {
    options.unix_mode = static_cast<mode_t>(mode);
  }
  options.backlog = static_cast<int>(settings_.integer(Setting::tcp_backlog));
  options.threads = static_cast<std::size_t>(settings_.integer(Setting::io_threads));
  options.maxclients = static_cast<std::size_t>(settings_.integer(Setting::maxclients));
  options.keepalive =
      std::chrono::duration_cast<Millis>(settings_.duration(Setting::tcp_keepalive));
  options.tls = tls_files();
  options.limits = link_limits();
  return options;
}

std::string NodeRun::open_server() {
  const net::ServerOptions options = server_options();
  const auto exposed = net::check_exposure(
      {.addresses = options.addresses,
       .has_plain_port = options.port.has_value(),
       .has_tls_port = options.tls_port.has_value(),
       .has_password = node_->asks_for_password(),
       .requires_certificates = options.tls.clients == net::ClientCertificates::required});
  if (exposed && settings_.boolean(Setting::protected_mode)) return *exposed;
  for (std::size_t i = 0; i < net::io_threads_max; ++i) {
    batches_.push_back(std::make_unique<net::Batch>());
  }
  net::ServerHooks hooks;
  hooks.make_peer = [this](const net::PeerInfo& info, std::shared_ptr<net::PeerHost> host) {
    return std::make_unique<net::NodePeer>(*node_, *batches_[info.thread], level_, info,
                                           std::move(host));
  };
  hooks.log = [](net::LogLevel, std::string_view line) {
    fmt::print(stderr, "semel node: {}\n", line);
  };
  std::string problem;
  server_ = net::Server::start(options, std::move(hooks), problem);
  return server_ == nullptr ? problem : std::string{};
}

void NodeRun::follow_settings() {
  const auto limits = [this] { server_->set_limits(link_limits()); };
  for (const Setting setting :
       {Setting::timeout, Setting::request_deadline, Setting::client_query_buffer_limit,
        Setting::client_output_buffer_limit}) {
    settings_.on_change(setting, limits);
  }
  settings_.on_change(Setting::maxclients, [this] {
    static_cast<void>(
        server_->set_maxclients(static_cast<std::size_t>(settings_.integer(Setting::maxclients))));
  });
  const auto reload = [this] {
    if (const auto problem = server_->reload_tls(tls_files())) {
      fmt::print(stderr, "semel node: the certificate in use stays: {}\n", *problem);
    }
  };
  for (const Setting setting : {Setting::tls_cert_file, Setting::tls_key_file,
                                Setting::tls_ca_cert_file, Setting::tls_auth_clients}) {
    settings_.on_change(setting, reload);
  }
}

// --- the run --------------------------------------------------------------------------------

void NodeRun::greet() const {
  const std::string where = server_->port() != 0 ? fmt::format("port {}", server_->port())
                                                 : settings_.text(Setting::unix_socket);
  fmt::print("semel {} serves Redis' protocol on {}, process {}\n", version, where, getpid());
  if (server_->port() != 0) {
    fmt::print("try: redis-cli -p {} SET job:1 mine NX GET PX 60000\n", server_->port());
  }
  fmt::print("stop it with Ctrl-C or SIGTERM; everything it can be told: semel node --help\n");
  std::fflush(stdout);
}

void NodeRun::wait_for_end() {
  const sigset_t signals = block_signals();
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) return;
    if (const auto problem = server_->reload_tls(tls_files())) {
      fmt::print(stderr, "semel node: the certificate in use stays: {}\n", *problem);
    }
  }
}

Exit NodeRun::run() {
  static_cast<void>(block_signals());
  const pid_t parent = getppid();
  if (settings_.boolean(Setting::exit_with_parent) && !net::exit_with_parent(parent)) {
    return Exit::ok;
  }
  for (const auto step : {&NodeRun::open_engine, &NodeRun::open_node, &NodeRun::open_server}) {
    const std::string problem = (this->*step)();
    if (problem.empty()) continue;
    fmt::print(stderr, "semel node: {}\n", problem);
    return Exit::file;
  }
  follow_settings();
  ticker_ = std::make_unique<Ticker>(*engine_, *node_);
  const std::string ready = settings_.text(Setting::ready_file);
  if (!ready.empty()) {
    if (const auto problem = net::write_ready_file(ready, server_->ready_text())) {
      fmt::print(stderr, "semel node: {}\n", *problem);
      return Exit::file;
    }
  }
  greet();
  wait_for_end();
  const std::size_t cut = server_->drain(drain_within);
  if (cut != 0) fmt::print(stderr, "semel node: {} connections were cut off\n", cut);
  return Exit::ok;
}

}  // namespace semel::tool
