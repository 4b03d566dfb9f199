#include "tools/semel/node/node_run.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "net/claims/claim_spaces.hpp"
#include "net/config/rewrite.hpp"
#include "net/server/node_peer.hpp"
#include "net/server/process.hpp"
#include "semel/version.hpp"
#include "tools/semel/node/node_crash.hpp"
#include "tools/semel/node/node_figures.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/node/node_signals.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {
namespace {

using net::Setting;

/// A large buffer of a connection goes back to the system as soon as it is let go of. Left to
/// itself glibc keeps what has the size of one that was freed before.
void give_back_large_buffers() {
  constexpr int large_bytes = 128 << 10;
  static_cast<void>(mallopt(M_MMAP_THRESHOLD, large_bytes));
}

constexpr Millis drain_within{10'000};  // for requests under way, when the node is told to end

}  // namespace

NodeRun::NodeRun(net::Settings& settings, std::string file,
                 std::vector<net::DeclaredNamespace> declared)
    : settings_(settings),
      file_(std::move(file)),
      declared_(std::move(declared)),
      watch_(settings, system_clock_) {}

NodeRun::~NodeRun() {
  watch_.forget();
  ticker_.reset();
  server_.reset();  // its threads use everything else
}

// --- the parts ------------------------------------------------------------------------------

Failure NodeRun::open_watch() {
  return watch_.open();
}

Failure NodeRun::open_engine(bool with_storage) {
  if (settings_.boolean(Setting::test_clock)) {
    test_clock_ = std::make_unique<net::TestClock>(system_clock_);
  }
  const Clock& clock = test_clock_ != nullptr ? static_cast<const Clock&>(*test_clock_)
                                              : static_cast<const Clock&>(system_clock_);
  Options options{.clock = &clock,
                  .memory_bytes = static_cast<std::size_t>(settings_.integer(Setting::maxmemory)),
                  .value_bytes_max = limits::value_bytes_max,
                  .shard_count = static_cast<unsigned>(settings_.integer(Setting::shards)),
                  .background = std::nullopt};  // the Ticker's
  storage_ = std::make_unique<NodeStorage>(settings_, clock);
  if (with_storage && settings_.boolean(Setting::storage_enabled)) {
    if (Failure failure = storage_->open(options); failure.exit != Exit::ok) return failure;
    level_ = options.durability;
    // Callers of `synced` are answered when the disk has; the thread that serves them goes on.
    if (level_ > Durability::logged) options.durability = Durability::logged;
  }
  auto opened = Engine::open(options);
  if (!opened) return failure_of(opened.error());
  engine_ = *std::move(opened);
  return {};
}

Failure NodeRun::open_node() {
  node_ = std::make_unique<net::Node>(*engine_, settings_, test_clock_.get());
  std::error_code unknown;
  node_->facts.executable = std::filesystem::read_symlink("/proc/self/exe", unknown);
  node_->facts.journals = storage_->is_open();
  node_->facts.config_file = file_;
  node_->facts.tcp_port =
      static_cast<std::uint16_t>(std::max(settings_.integer(Setting::port), std::int64_t{0}));
  set_hooks();
  if (auto problem = node_->open_users()) return {Exit::usage, *std::move(problem)};
  return {};
}

void NodeRun::set_hooks() {
  node_->hooks.shutdown = [] { ask_for_end(); };
  node_->hooks.replace_file = [](const std::string& path, std::string_view text) {
    return !net::replace_file(path, text);
  };
  node_->hooks.rewrite_config = [this] { return net::rewrite_config(settings_, file_); };
  node_->hooks.script_log = [this](lua::LogLevel level, std::string_view text) {
    // Both list the same levels in the same order.
    watch_.log().add(static_cast<net::LogLevel>(level), "script", {{"text", text}});
  };
  node_->hooks.event = [this](const net::NodeEvent& event) {
    watch_.log().add(event.level, event.name,
                     {{"address", event.address}, {"user", event.user}, {"text", event.text}});
  };
  node_->hooks.login_denied = [this](std::string_view user, std::string_view address) {
    watch_.log().warning("login_denied", {{"user", user}, {"address", address}});
  };
}

Failure NodeRun::check_doors() {
  doors_ = server_options(settings_);
  if (auto wrong = net::check_options(doors_)) return {Exit::usage, *std::move(wrong)};
  auto exposed = net::check_exposure(
      {.addresses = doors_.addresses,
       .has_plain_port = doors_.port.has_value(),
       .has_tls_port = doors_.tls_port.has_value(),
       .has_password = node_->asks_for_password(),
       .requires_certificates = doors_.tls.clients == net::ClientCertificates::required});
  if (exposed && settings_.boolean(Setting::protected_mode)) {
    return {Exit::usage, *std::move(exposed)};
  }
  std::string problem;
  if (doors_.tls_port && net::TlsContext::load(doors_.tls, problem) == nullptr) {
    return {Exit::file, std::move(problem)};
  }
  return {};
}

Failure NodeRun::recover() {
  if (!storage_->is_open()) return {};
  watch_.recovers(settings_.text(Setting::dir));
  RecoveryReport report;
  Failure failure = storage_->recover(
      *engine_, [this](const RecoveryProgress& progress) { watch_.recovering(progress); }, report);
  if (failure.exit != Exit::ok) return failure;
  watch_.recovered(report);
  return open_namespaces();
}

/// Release 0.1 kept namespaces in a file of their own. Once the storage has them, synced, the file
/// is put aside: one that is dropped must not come back with the next start.
Failure NodeRun::open_namespaces() {
  const std::string path = settings_.text(Setting::dir) + "/namespaces";
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return {};
  std::ifstream file{path, std::ios::binary};
  if (!file) return {Exit::file, path + " cannot be read"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  if (auto wrong = net::import_namespaces(*engine_, text)) {
    return {Exit::file, path + ", " + *wrong};
  }
  if (const Status synced = engine_->confirm(Durability::synced); !synced) {
    return {Exit::file, path + ": " + synced.error().message()};
  }
  std::filesystem::rename(path, path + ".imported", code);
  if (code) return {Exit::file, path + " cannot be renamed: " + code.message()};
  return {};
}

/// Those of the configuration, which says what holds now, whatever was declared in an earlier life.
Failure NodeRun::declare_namespaces() {
  for (const net::DeclaredNamespace& space : declared_) {
    const Result<Claims> claims = engine_->claims(space.name, space.policy);
    if (claims) continue;
    const Error* error = &claims.error();
    Result<std::string> changed{std::string{}};
    if (error->code == ErrorCode::namespace_differs) {
      changed = engine_->change_namespace(space.name, space.policy);
      if (changed) {
        watch_.log().add(net::LogLevel::notice, "namespace changed",
                         {{"name", space.name}, {"by", space.place}, {"changed", *changed}});
        continue;
      }
      error = &changed.error();
    }
    return {Exit::usage, space.place + ": namespace '" + space.name + "': " + error->detail};
  }
  return {};
}

Failure NodeRun::open_server() {
  batches_.resize(net::io_threads_max);
  net::ServerHooks hooks;
  hooks.make_peer = [this](const net::PeerInfo& info, std::shared_ptr<net::PeerHost> host) {
    // On the thread that it is for, which alone touches this place.
    std::unique_ptr<net::Batch>& batch = batches_[info.thread];
    if (batch == nullptr) batch = std::make_unique<net::Batch>();
    return net::make_node_peer(*node_, *batch, level_, info, std::move(host));
  };
  hooks.on_tick = [this](std::size_t thread) {
    arm_thread();
    watch_.pulse().beat(thread, std::chrono::steady_clock::now());
  };
  hooks.log = [this](net::LogLevel level, std::string_view line) {
    watch_.log().add(level, "server", {{"text", line}});
  };
  std::string problem;
  server_ = net::Server::start(doors_, std::move(hooks), problem);
  if (server_ == nullptr) return {Exit::file, std::move(problem)};
  if (doors_.port) node_->facts.tcp_port = server_->port();
  certificates_ = std::make_unique<NodeCertificates>(settings_, watch_.log(), *server_);
  follow_settings();
  ticker_ = std::make_unique<Ticker>(*node_, [this] {
    arm_thread();
    watch_.pulse().beat(Pulse::ticker, std::chrono::steady_clock::now());
    watch_.tick();
    certificates_->tick();
  });
  return {};
}

void NodeRun::follow_settings() {
  net::Server* const server = server_.get();
  for (const Setting setting :
       {Setting::timeout, Setting::request_deadline, Setting::client_query_buffer_limit,
        Setting::client_output_buffer_limit}) {
    settings_.on_change(setting, [this, server] { server->set_limits(link_limits(settings_)); });
  }
  settings_.on_change(Setting::maxclients, [this, server] {
    const auto count = static_cast<std::size_t>(settings_.integer(Setting::maxclients));
    if (server->set_maxclients(count)) return;
    watch_.log().warning("maxclients_not_changed",
                         {{"wanted", count},
                          {"in_use", server->maxclients()},
                          {"reason", "the limit of open files has no room"}});
  });
  settings_.on_change(Setting::scripts, [this] { log_scripts(); });
  constexpr std::array of_tls = {Setting::tls_cert_file,     Setting::tls_key_file,
                                 Setting::tls_key_file_pass, Setting::tls_ca_cert_file,
                                 Setting::tls_ca_cert_dir,   Setting::tls_auth_clients,
                                 Setting::tls_protocols,     Setting::tls_ciphers,
                                 Setting::tls_ciphersuites,  Setting::tls_prefer_server_ciphers};
  settings_.apply_with(of_tls, [this]() -> std::optional<std::string> {
    if (certificates_->reload()) return std::nullopt;
    return "Unable to update TLS configuration. Check server logs.";
  });
}

// --- the run --------------------------------------------------------------------------------

void NodeRun::log_doors() {
  const auto listening = [this](std::string_view kind, const std::string& address) {
    watch_.log().info("listening", {{"for", kind}, {"address", address}});
  };
  for (const std::string& address : doors_.addresses) {
    const bool is_six = address.find(':') != std::string::npos;
    const std::string host = is_six ? "[" + address + "]" : address;
    if (doors_.port) listening("clients", fmt::format("{}:{}", host, server_->port()));
    if (doors_.tls_port) {
      listening("clients over TLS", fmt::format("{}:{}", host, server_->tls_port()));
    }
  }
  if (!doors_.unix_path.empty()) listening("clients", doors_.unix_path);
}

/// Which scripts run, and what is refused, once at the start and after each change.
void NodeRun::log_scripts() {
  const net::ScriptPolicy policy = node_->scripts.policy();
  const bool is_chosen =
      settings_.choice<net::ScriptPolicy>(Setting::scripts) == net::ScriptPolicy::automatic;
  watch_.log().info("scripts", {{"policy", net::word_of(policy)},
                                {"by", is_chosen ? "the addresses" : "the setting"},
                                {"text", net::what_runs(policy)}});
}

Failure NodeRun::tell_ready() {
  log_doors();
  log_scripts();
  watch_.serves({.figures =
                     [this](net::MetricFigures& figures) {
                       fill_figures(*node_, *server_, *storage_, figures);
                     },
                 .trouble = [this]() -> std::optional<std::string> {
                   // A disk that is slow for a moment is no reason to send clients away.
                   constexpr std::chrono::seconds storage_silent_after{30};
                   if (const Millis busy = storage_->busy_for(); busy > storage_silent_after) {
                     return fmt::format("the storage has been at one piece of work for {} s",
                                        busy.count() / 1000);
                   }
                   const auto stats = storage_->stats();
                   if (!stats || stats->accepting) return std::nullopt;
                   return "the storage takes no work: " + stats->trouble;
                 }});
  const std::string path = settings_.text(Setting::ready_file);
  if (!path.empty()) {
    const std::string text = server_->ready_text() + watch_.ready_text();
    if (auto problem = net::write_ready_file(path, text)) {
      return {Exit::file, *std::move(problem)};
    }
  }
  watch_.log().info("serving");
  return {};
}

void NodeRun::greet() const {
  std::string where;
  std::string how;
  if (doors_.port) {
    where = fmt::format("port {}", server_->port());
    how = fmt::format("-p {}", server_->port());
  } else if (doors_.tls_port) {
    where = fmt::format("TLS port {}", server_->tls_port());
    how = fmt::format("--tls -p {}", server_->tls_port());
  } else {
    where = doors_.unix_path;
    how = "-s " + where;
  }
  print_out("semel {} serves Redis' protocol on {}, process {}\n", version, where, getpid());
  print_out("try: redis-cli {} SET job:1 mine NX GET PX 60000\n", how);
  print_out("stop it with Ctrl-C or SIGTERM; everything it can be told: semel node --help\n");
  std::fflush(stdout);
}

void NodeRun::wait_for_end() {
  for (;;) {
    const Wished wished = wait_for_wish();
    if (wished.wish == Wish::end) return;
    if (wished.wish == Wish::none) {
      watch_.log().info("signal_ignored", {{"signal", wished.signal}});
      continue;
    }
    static_cast<void>(certificates_->reload());  // the log is told
    if (const auto problem = watch_.log().reopen()) {
      watch_.log().warning("log_not_reopened", {{"reason", *problem}});
    } else {
      watch_.log().info("log_reopened");
    }
  }
}

Exit NodeRun::end() {
  let_signals_kill();
  watch_.drains();
  ticker_->end_waits();
  const std::size_t cut = server_->drain(drain_within);
  if (cut != 0) watch_.log().warning("cut_off", {{"connections", cut}});
  Exit exit = Exit::ok;
  if (storage_->is_open()) {
    const Status synced = engine_->confirm(Durability::synced);
    if (!synced) {
      const Failure failure = failure_of(synced.error(), settings_.text(Setting::dir));
      watch_.fail("what was written last may not be on the disk: " + failure.text);
      exit = Exit::file;
    }
  }
  watch_.log().info("ended", {{"code", static_cast<int>(exit)}});
  return exit;
}

Failure NodeRun::prepare() {
  const EndAtOnce while_nobody_is_served;
  for (const auto step : {&NodeRun::open_watch, &NodeRun::open_stores, &NodeRun::open_node,
                          &NodeRun::check_doors, &NodeRun::recover, &NodeRun::declare_namespaces}) {
    if (Failure failure = (this->*step)(); failure.exit != Exit::ok) return failure;
  }
  return {};
}

Exit NodeRun::run() {
  Engine::prepare_process();  // while there is one thread
  give_back_large_buffers();
  block_signals();
  report_crashes(settings_.text(Setting::log_file));
  const pid_t parent = getppid();
  if (settings_.boolean(Setting::exit_with_parent) && !net::exit_with_parent(parent)) {
    return Exit::ok;
  }
  for (const auto step : {&NodeRun::prepare, &NodeRun::open_server, &NodeRun::tell_ready}) {
    const Failure failure = (this->*step)();
    if (failure.exit == Exit::ok) continue;
    watch_.fail(failure.text);
    return failure.exit;
  }
  greet();
  wait_for_end();
  return end();
}

}  // namespace semel::tool
