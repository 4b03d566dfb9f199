#include "tools/semel/node/node_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/file_text.hpp"
#include "net/config/rewrite.hpp"
#include "net/server/process.hpp"
#include "net/stats/process_facts.hpp"
#include "tools/semel/node/node_crash.hpp"
#include "tools/semel/node/node_libraries.hpp"
#include "tools/semel/node/node_metrics.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/service_memory.hpp"
#include "tools/semel/shared/service_signals.hpp"

namespace semel::tool {
namespace {

using net::Setting;

/// Runs the same program with the same arguments in this process. Returns if that fails.
void begin_anew() {
  std::string text = base::read_file("/proc/self/cmdline").value_or("");
  std::vector<char*> words;
  for (std::size_t at = 0; at < text.size(); at += std::strlen(text.data() + at) + 1) {
    words.push_back(text.data() + at);
  }
  words.push_back(nullptr);
  if (words.size() > 1) execv("/proc/self/exe", words.data());
}

bool writes_redis_log(const net::Settings& settings) {
  return settings.choice<net::LogForm>(Setting::log_format) == net::LogForm::redis;
}

constexpr Millis drain_within{10'000};  // for requests under way, when the node shuts down

/// The engine holds the limit however little memory there is, so a start takes it: addresses are
/// all that the engine needs at first, and a configuration may move to a smaller machine.
void log_memory(const net::Settings& settings, net::Log& log) {
  const std::int64_t maxmemory = settings.integer(Setting::maxmemory);
  const std::uint64_t machine = net::process_facts().system_memory_bytes;
  if (machine == 0 || static_cast<std::uint64_t>(maxmemory) <= machine) return;
  log.warning("maxmemory_above_machine", {{"maxmemory", maxmemory}, {"machine", machine}});
}

}  // namespace

NodeRun::NodeRun(net::Settings& settings, std::string file, std::string redis_conf,
                 std::vector<net::DeclaredNamespace> declared)
    : settings_(settings),
      file_(std::move(file)),
      redis_conf_(std::move(redis_conf)),
      declared_(std::move(declared)),
      watch_(settings, system_clock_),
      engine_(settings, file_, system_clock_),
      console_(settings, watch_, system_clock_) {}

NodeRun::~NodeRun() {
  console_.end();  // its sessions are connections
  watch_.forget();
  peers_.end();
  engine_.group().stop();  // its thread wakes connections
  ticker_.reset();
  ports_.reset();  // their threads use everything else
}

// --- the parts ------------------------------------------------------------------------------

Status NodeRun::open_watch() {
  SEMEL_CHECK(NodeConsole::check(settings_));
  const std::string ready_file = settings_.text(Setting::ready_file);
  if (!ready_file.empty()) SEMEL_CHECK(net::remove_old_ready_file(ready_file));
  return watch_.open();
}

Status NodeRun::open_node() {
  // Before the node's own, which gives the engine its limit.
  constexpr std::array of_memory = {Setting::maxmemory};
  settings_.apply_with(of_memory, [this] { return engine_.check_memory(); });
  node_ = std::make_unique<net::Node>(engine_.engine(), settings_, engine_.test_clock());
  std::error_code unknown;
  node_->facts.executable = std::filesystem::read_symlink("/proc/self/exe", unknown);
  node_->facts.journals = engine_.storage().is_open();
  node_->facts.config_file = file_.empty() ? redis_conf_ : file_;
  // mo: relaxed: shown only
  node_->facts.tcp_port.store(
      static_cast<std::uint16_t>(std::max(settings_.integer(Setting::port), std::int64_t{0})),
      std::memory_order_relaxed);
  set_hooks();
  if (!engine_.group().is_open()) {
    follower_ = std::make_unique<net::Follower>(*node_);
    node_->set_following(*follower_);
  }
  if (engine_.storage().is_open()) set_backup_hooks();
  SEMEL_CHECK(node_->open_users());
  SEMEL_CHECK(node_->memory.open());
  ports_ = std::make_unique<NodePorts>(NodePorts::Terms{.settings = settings_,
                                                        .watch = watch_,
                                                        .node = *node_,
                                                        .level = engine_.level(),
                                                        .is_fixed = engine_.group().is_open()});
  return ports_->check();
}

void NodeRun::set_hooks() {
  node_->hooks.run_aside = [this](std::function<void()> work) {
    return peers_.run(std::move(work));
  };
  node_->hooks.connect_peer = [this](const net::PeerAddress& address) {
    return peers_.connect(address);
  };
  node_->hooks.shutdown = [] { ask_for_end(); };
  node_->hooks.replace_file = [](const std::string& path, std::string_view text) {
    return net::replace_file(path, text).ok();
  };
  node_->hooks.rewrite_config = [this]() -> Status {
    SEMEL_CHECK(ports_->check_next_start());
    const bool has_redis_conf = file_.empty() && !redis_conf_.empty();
    return has_redis_conf ? net::rewrite_redis_conf(settings_, redis_conf_)
                          : net::rewrite_config(settings_, file_);
  };
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

void NodeRun::set_backup_hooks() {
  backup_ = std::make_unique<NodeBackup>(
      engine_.engine().clock(),
      [this](const std::string& folder, const std::string& directory,
             const NodeBackup::Step& step) {
        return engine_.storage().backup(folder, directory, [&step](const BackupProgress& progress) {
          return step(progress.bytes, progress.bytes_total);
        });
      },
      [this](const net::BackupState& ended) {
        const bool good = ended.error.empty();
        watch_.log().add(good ? net::LogLevel::notice : net::LogLevel::warning, "backup",
                         {{"name", ended.name},
                          {"seconds", ended.seconds},
                          {"result", good ? "done" : ended.error}});
      });
  node_->hooks.start_backup = [this](const std::string& name) {
    return backup_->start(settings_.text(Setting::backup_dir), name,
                          engine_.engine().stats().changes);
  };
  node_->hooks.backup_state = [this] { return backup_->state(); };
  node_->hooks.cancel_backup = [this] { return backup_->cancel(); };
}

Status NodeRun::start_group() {
  if (!engine_.group().is_open()) return Done{};
  SEMEL_CHECK(engine_.check_declared(declared_));
  return engine_.group().start(*node_);
}

Status NodeRun::open_ports() {
  SEMEL_CHECK(ports_->open());
  certificates_ = std::make_unique<NodeCertificates>(
      settings_, watch_.log(), client_certificates(settings_, ports_->server()));
  group_certificates_ = std::make_unique<NodeCertificates>(settings_, watch_.log(),
                                                           group_certificates(engine_.group()));
  follow_settings();
  failures_.emplace(settings_, watch_, engine_.storage(), engine_.group());
  ticker_ = std::make_unique<net::Ticker>(*node_, [this] {
    arm_thread();
    watch_.pulse().beat(Pulse::ticker, std::chrono::steady_clock::now());
    watch_.tick();
    certificates_->tick();
    group_certificates_->tick();
    failures_->look();
  });
  return Done{};
}

/// Settings that CONFIG SET changes, beside those that other parts follow themselves.
void NodeRun::follow_settings() {
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

// --- the run --------------------------------------------------------------------------------

/// Logs which scripts run and which are refused, once at the start and after each change.
void NodeRun::log_scripts() {
  const net::ScriptPolicy policy = node_->scripts.policy();
  const bool is_chosen =
      settings_.choice<net::ScriptPolicy>(Setting::scripts) == net::ScriptPolicy::automatic;
  watch_.log().info("scripts", {{"policy", net::word_of(policy)},
                                {"by", is_chosen ? "the addresses" : "the setting"},
                                {"text", net::what_runs(policy)}});
}

/// Whether requests are served.
Status NodeRun::serving() {
  SEMEL_CHECK(engine_.group().ready());
  // A disk may be slow for a moment: the node stays ready.
  constexpr std::chrono::seconds storage_silent_after{30};
  if (const Millis busy = engine_.storage().busy_for(); busy > storage_silent_after) {
    return file_error(
        fmt::format("the storage has been in one operation for {} s", busy.count() / 1000));
  }
  const auto stats = engine_.storage().stats();
  if (!stats || stats->accepting) return Done{};
  return file_error("the storage accepts no writes: " + stats->trouble);
}

Status NodeRun::announce_ready() {
  ports_->log_addresses();
  log_memory(settings_, watch_.log());
  log_scripts();
  watch_.serves({.values =
                     [this](net::MetricValues& values) {
                       fill_metrics(*node_, ports_->server(), engine_.storage(), values);
                     },
                 .serving = [this] { return serving(); }});
  console_.serve(*node_, engine_.level());
  SEMEL_CHECK(ports_->write_ready());
  // Programs that start a redis-server wait for these words.
  watch_.log().info(writes_redis_log(settings_) ? "Ready to accept connections" : "serving");
  return Done{};
}

void NodeRun::wait_for_end() {
  for (;;) {
    const Wished wished = wait_for_wish();
    if (wished.wish == Wish::end) return;
    if (wished.wish == Wish::none) {
      watch_.log().info("signal_ignored", {{"signal", wished.signal}});
      continue;
    }
    // Their results are logged.
    static_cast<void>(certificates_->reload());
    static_cast<void>(group_certificates_->reload());
    if (const Status reopened = watch_.log().reopen(); !reopened.ok()) {
      watch_.log().warning("log_not_reopened", {{"reason", reopened.error().detail}});
    } else {
      watch_.log().info("log_reopened");
    }
  }
}

Exit NodeRun::end() {
  let_signals_kill();
  net::NodeGroup& group = engine_.group();
  group.hand_over();
  ports_->remove_ready();
  watch_.drains();
  if (follower_ != nullptr) follower_->end();
  console_.end();
  ticker_->end_waits();
  const std::size_t cut = ports_->server().drain(drain_within);
  if (cut != 0) watch_.log().warning("cut_off", {{"connections", cut}});
  Exit exit = failures_->storage_failed() ? Exit::file : Exit::ok;
  if (engine_.storage().is_open()) {
    const Status synced = engine_.engine().confirm(Durability::synced);
    if (!synced) {
      const Error error = with_whole_text(synced.error(), settings_.text(Setting::dir));
      watch_.fail("the latest writes may not be on the disk: " + error.detail);
      exit = Exit::file;
    }
  }
  if (failures_->group_ended()) {
    if (!group.ending().needs_reopen) exit = Exit::file;
    group.stop();
    watch_.log().info("ended", {{"code", static_cast<int>(exit)}});
    if (exit == Exit::ok) begin_anew();
  }
  watch_.log().info("ended", {{"code", static_cast<int>(exit)}});
  return exit;
}

Status NodeRun::prepare() {
  const EndAtOnce while_nobody_is_served;
  SEMEL_CHECK(open_watch());
  SEMEL_CHECK(engine_.open(watch_.log()));
  SEMEL_CHECK(open_node());
  SEMEL_CHECK(engine_.recover(watch_));
  if (engine_.storage().is_open() && !engine_.group().is_open()) {
    SEMEL_CHECK(keep_libraries(*node_, settings_.text(Setting::dir)));
  }
  SEMEL_CHECK(start_group());
  SEMEL_CHECK(engine_.declare(declared_, watch_));
  return follower_ == nullptr ? Status{Done{}} : follower_->begin();
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
  for (const auto step : {&NodeRun::prepare, &NodeRun::open_ports, &NodeRun::announce_ready}) {
    const Status status = (this->*step)();
    if (status) continue;
    watch_.fail(status.error().detail);
    return exit_of(status.error().code);
  }
  if (!writes_redis_log(settings_)) ports_->greet();
  wait_for_end();
  return end();
}

}  // namespace semel::tool
