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
#include "net/claims/claim_spaces.hpp"
#include "net/config/rewrite.hpp"
#include "net/server/node_session.hpp"
#include "net/server/process.hpp"
#include "net/stats/process_facts.hpp"
#include "semel/version.hpp"
#include "tools/semel/node/node_crash.hpp"
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

/// The limit up to which CONFIG SET can raise maxmemory: the memory of the machine.
std::size_t memory_room(std::size_t memory_bytes) {
  const std::uint64_t machine = net::process_facts().system_memory_bytes;
  return std::clamp<std::size_t>(machine, memory_bytes, limits::memory_bytes_max);
}

constexpr Millis drain_within{10'000};  // for requests under way, when the node shuts down

}  // namespace

NodeRun::NodeRun(net::Settings& settings, std::string file,
                 std::vector<net::DeclaredNamespace> declared)
    : settings_(settings),
      file_(std::move(file)),
      declared_(std::move(declared)),
      watch_(settings, system_clock_),
      group_(settings),
      console_(settings, watch_, system_clock_) {}

NodeRun::~NodeRun() {
  console_.end();  // its sessions are connections
  watch_.forget();
  group_.stop();  // its thread wakes connections
  ticker_.reset();
  server_.reset();  // its threads use everything else
}

// --- the parts ------------------------------------------------------------------------------

Status NodeRun::open_watch() {
  SEMEL_CHECK(NodeConsole::check(settings_));
  return watch_.open();
}

const Clock& NodeRun::clock() const noexcept {
  if (test_clock_ != nullptr) return *test_clock_;
  return system_clock_;
}

Options NodeRun::engine_options() const {
  const auto memory_bytes = static_cast<std::size_t>(settings_.integer(Setting::maxmemory));
  const auto log_bytes = static_cast<std::size_t>(settings_.integer(Setting::decision_log_size));
  return {.clock = &clock(),
          .memory_bytes = memory_bytes,
          .value_bytes_max = limits::value_bytes_max,
          .decision_log_bytes = std::min(log_bytes, memory_bytes / 16),
          .counts_by_namespace = true,
          .shard_count = static_cast<unsigned>(settings_.integer(Setting::shards)),
          .background = std::nullopt};  // the Ticker's
}

Status NodeRun::open_engine(bool with_storage) {
  if (settings_.boolean(Setting::test_clock)) {
    test_clock_ = std::make_unique<net::TestClock>(system_clock_);
  }
  Options options = engine_options();
  if (!group_.is_wanted()) options.memory_room_bytes = memory_room(options.memory_bytes);
  storage_ = std::make_unique<NodeStorage>(settings_, file_, clock());
  if (with_storage && settings_.boolean(Setting::storage_enabled)) {
    SEMEL_CHECK(storage_->open(options));
    level_ = options.durability;
    // Callers of `synced` are answered after the sync; the thread that serves them continues.
    if (level_ > Durability::logged) options.durability = Durability::logged;
  }
  if (with_storage && group_.is_wanted()) {
    SEMEL_CHECK(group_.open(options, [this](const net::NodeGroup::Event& event) {
      watch_.log().add(event.is_warning ? net::LogLevel::warning : net::LogLevel::notice,
                       event.name, {{"term", event.term}, {"text", event.text}});
    }));
    engine_ = &group_.engine();
    return Done{};
  }
  auto opened = Engine::open(options);
  if (!opened && opened.error().code == ErrorCode::out_of_address_space) {
    options.memory_room_bytes = 0;  // CONFIG SET can only lower maxmemory then
    opened = Engine::open(options);
  }
  if (!opened) return with_whole_text(opened.error());
  memory_bytes_max_ = std::max(options.memory_bytes, options.memory_room_bytes);
  own_engine_ = *std::move(opened);
  engine_ = own_engine_.get();
  return Done{};
}

Status NodeRun::open_node() {
  // Before the node's own, which gives the engine its limit.
  constexpr std::array of_memory = {Setting::maxmemory};
  settings_.apply_with(of_memory, [this] { return check_memory(); });
  node_ = std::make_unique<net::Node>(*engine_, settings_, test_clock_.get());
  std::error_code unknown;
  node_->facts.executable = std::filesystem::read_symlink("/proc/self/exe", unknown);
  node_->facts.journals = storage_->is_open();
  node_->facts.config_file = file_;
  // mo: relaxed: shown only
  node_->facts.tcp_port.store(
      static_cast<std::uint16_t>(std::max(settings_.integer(Setting::port), std::int64_t{0})),
      std::memory_order_relaxed);
  set_hooks();
  return node_->open_users();
}

void NodeRun::set_hooks() {
  node_->hooks.shutdown = [] { ask_for_end(); };
  node_->hooks.replace_file = [](const std::string& path, std::string_view text) {
    return net::replace_file(path, text).ok();
  };
  node_->hooks.rewrite_config = [this]() -> Status {
    if (const Status startable = check_next_start(); !startable) return startable;
    return net::rewrite_config(settings_, file_);
  };
  node_->hooks.script_log = [this](lua::LogLevel level, std::string_view text) {
    // Both list the same levels in the same order.
    watch_.log().add(static_cast<net::LogLevel>(level), "script", {{"text", text}});
  };
  node_->hooks.event = [this](const net::NodeEvent& event) {
    watch_.log().add(event.level, event.name,
                     {{"address", event.address}, {"user", event.user}, {"text", event.text}});
  };
  if (storage_->is_open()) {
    backup_ = std::make_unique<NodeBackup>(
        engine_->clock(),
        [this](const std::string& folder, const std::string& directory,
               const NodeBackup::Step& step) {
          return storage_->backup(folder, directory, [&step](const BackupProgress& progress) {
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
      return backup_->start(settings_.text(Setting::backup_dir), name, engine_->stats().changes);
    };
    node_->hooks.backup_state = [this] { return backup_->state(); };
    node_->hooks.cancel_backup = [this] { return backup_->cancel(); };
  }
  node_->hooks.login_denied = [this](std::string_view user, std::string_view address) {
    watch_.log().warning("login_denied", {{"user", user}, {"address", address}});
  };
}

Status NodeRun::check_server_options() {
  server_options_ = server_options(settings_);
  SEMEL_CHECK(net::check_options(server_options_));
  SEMEL_CHECK(check_protection(server_options_, node_->asks_for_password()));
  if (server_options_.tls_port) {
    const auto loaded = net::TlsContext::load(server_options_.tls);
    if (!loaded) return file_error(loaded.error().detail);
  }
  return Done{};
}

Status NodeRun::recover() {
  if (!storage_->is_open()) return Done{};
  watch_.recovers(settings_.text(Setting::dir));
  SEMEL_TRY(report, storage_->recover(*engine_, [this](const RecoveryProgress& progress) {
    watch_.recovering(progress);
  }));
  watch_.recovered(report);
  SEMEL_CHECK(check_databases());
  return open_namespaces();
}

/// As redis-server: refuses a start with keys that no client could select.
Status NodeRun::check_databases() const {
  const std::int64_t count = settings_.integer(Setting::databases);
  for (auto db = static_cast<std::size_t>(count); db < limits::db_count; ++db) {
    const std::uint64_t keys = engine_->size(static_cast<std::uint8_t>(db));
    if (keys == 0) continue;
    return usage_error(
        fmt::format("databases is {}, but there are {} keys in database {}: set "
                    "databases to {} or more",
                    count, keys, db, db + 1));
  }
  return Done{};
}

/// Release 0.1 kept namespaces in a file of their own. It is imported, synced and renamed, so that
/// a namespace that is dropped later does not return with the next start.
Status NodeRun::open_namespaces() {
  const std::string path = settings_.text(Setting::dir) + "/namespaces";
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return Done{};
  const std::optional<std::string> text = base::read_file(path);
  if (!text) return file_error(path + " cannot be read");
  if (const Status imported = net::import_namespaces(*engine_, *text); !imported) {
    return file_error(path + ", " + imported.error().detail);
  }
  if (const Status synced = engine_->confirm(Durability::synced); !synced) {
    return file_error(path + ": " + synced.error().message());
  }
  std::filesystem::rename(path, path + ".imported", code);
  if (code) return file_error(path + " cannot be renamed: " + code.message());
  return Done{};
}

Status NodeRun::check_declared() const {
  if (declared_.empty()) return Done{};
  return usage_error(declared_.front().location +
                     ": in a group namespaces are declared with SEMEL.NAMESPACE");
}

/// Before the first client, and after everything that its thread uses.
Status NodeRun::start_group() {
  if (!group_.is_open()) return Done{};
  SEMEL_CHECK(check_declared());
  return group_.start(*node_);
}

/// Declares the namespaces of the configuration. They override declarations from before a restart.
Status NodeRun::declare_namespaces() {
  for (const net::DeclaredNamespace& space : declared_) {
    const Result<Claims> claims = engine_->claims(space.name, space.policy);
    if (claims) continue;
    const Error* error = &claims.error();
    Result<std::string> changed{std::string{}};
    if (error->code == ErrorCode::namespace_differs) {
      changed = engine_->change_namespace(space.name, space.policy);
      if (changed) {
        watch_.log().add(net::LogLevel::notice, "namespace changed",
                         {{"name", space.name}, {"by", space.location}, {"changed", *changed}});
        continue;
      }
      error = &changed.error();
    }
    return usage_error(space.location + ": namespace '" + space.name + "': " + error->detail);
  }
  return Done{};
}

Status NodeRun::open_server() {
  batches_.resize(net::io_threads_max);
  net::ServerHooks hooks;
  hooks.make_session = [this](const net::SessionInfo& info,
                              std::shared_ptr<net::SessionHost> host) {
    // Runs on the thread of that index, which alone uses this entry.
    std::unique_ptr<net::Batch>& batch = batches_[info.thread];
    if (batch == nullptr) batch = std::make_unique<net::Batch>();
    return net::make_node_session(*node_, *batch, level_, info, std::move(host));
  };
  hooks.on_tick = [this](std::size_t thread) {
    arm_thread();
    watch_.pulse().beat(thread, std::chrono::steady_clock::now());
  };
  hooks.log = [this](net::LogLevel level, std::string_view line) {
    watch_.log().add(level, "server", {{"text", line}});
  };
  auto started = net::Server::start(server_options_, std::move(hooks));
  if (!started) return file_error(started.error().detail);
  server_ = *std::move(started);
  note_port();
  note_maxclients();
  certificates_ = std::make_unique<NodeCertificates>(settings_, watch_.log(),
                                                     client_certificates(settings_, *server_));
  group_certificates_ =
      std::make_unique<NodeCertificates>(settings_, watch_.log(), group_certificates(group_));
  follow_settings();
  ticker_ = std::make_unique<Ticker>(*node_, [this] {
    arm_thread();
    watch_.pulse().beat(Pulse::ticker, std::chrono::steady_clock::now());
    watch_.tick();
    certificates_->tick();
    group_certificates_->tick();
    end_if_storage_failed();
    end_if_group_failed();
  });
  return Done{};
}

/// A failed storage works again only after it is opened anew: the node ends with an error, and its
/// supervisor restarts it.
void NodeRun::end_if_storage_failed() {
  constexpr unsigned ticks_between = 10;  // a second: the statistics lock parts of the storage
  if (++ticks_ % ticks_between != 0) return;
  // mo: relaxed: only the ticker sets it
  if (storage_failed_.load(std::memory_order_relaxed) ||
      !settings_.boolean(Setting::exit_on_storage_failure))
    return;
  const auto stats = storage_->stats();
  if (!stats || !stats->failed) return;
  // mo: relaxed: ask_for_end() orders it before the end
  storage_failed_.store(true, std::memory_order_relaxed);
  watch_.fail("the storage has failed, and the node ends: " + stats->trouble);
  ask_for_end();
}

/// Restarts with the snapshot that was received, or exits for its supervisor to restart it.
void NodeRun::end_if_group_failed() {
  // mo: relaxed: only the ticker sets it
  if (!group_.is_open() || group_ended_.load(std::memory_order_relaxed)) return;
  const net::NodeGroup::Ending ending = group_.ending();
  if (ending.reason.empty()) return;
  // mo: relaxed: ask_for_end() orders it before the end
  group_ended_.store(true, std::memory_order_relaxed);
  if (!ending.needs_reopen) watch_.fail("the node ends: " + ending.reason);
  ask_for_end();
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

Status NodeRun::announce_ready() {
  log_listeners(server_options_);
  log_memory();
  log_scripts();
  watch_.serves(
      {.values =
           [this](net::MetricValues& values) { fill_metrics(*node_, *server_, *storage_, values); },
       .serving = [this]() -> Status {
         SEMEL_CHECK(group_.ready());
         // A disk may be slow for a moment: the node stays ready.
         constexpr std::chrono::seconds storage_silent_after{30};
         if (const Millis busy = storage_->busy_for(); busy > storage_silent_after) {
           return file_error(
               fmt::format("the storage has been in one operation for {} s", busy.count() / 1000));
         }
         const auto stats = storage_->stats();
         if (!stats || stats->accepting) return Done{};
         return file_error("the storage accepts no writes: " + stats->trouble);
       }});
  console_.serve(*node_, level_);
  SEMEL_CHECK(write_ready());
  watch_.log().info("serving");
  return Done{};
}

void NodeRun::greet() const {
  std::string where;
  std::string how;
  if (server_options_.port) {
    where = fmt::format("port {}", server_->port());
    how = fmt::format("-p {}", server_->port());
  } else if (server_options_.tls_port) {
    where = fmt::format("TLS port {}", server_->tls_port());
    how = fmt::format("--tls -p {}", server_->tls_port());
  } else {
    where = server_options_.unix_path;
    how = "-s " + where;
  }
  print_out("semel {} serves Redis' protocol on {}, process {}\n", version, where, getpid());
  print_out("try: redis-cli {} SET job:1 mine NX GET PX 60000\n", how);
  print_out("stop it with Ctrl-C or SIGTERM; all flags: semel node --help\n");
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
  group_.hand_over();
  watch_.drains();
  console_.end();
  ticker_->end_waits();
  const std::size_t cut = server_->drain(drain_within);
  if (cut != 0) watch_.log().warning("cut_off", {{"connections", cut}});
  // mo: relaxed: as where it is set
  Exit exit = storage_failed_.load(std::memory_order_relaxed) ? Exit::file : Exit::ok;
  if (storage_->is_open()) {
    const Status synced = engine_->confirm(Durability::synced);
    if (!synced) {
      const Error error = with_whole_text(synced.error(), settings_.text(Setting::dir));
      watch_.fail("the latest writes may not be on the disk: " + error.detail);
      exit = Exit::file;
    }
  }
  // mo: relaxed: as where it is set
  if (group_ended_.load(std::memory_order_relaxed)) {
    if (!group_.ending().needs_reopen) exit = Exit::file;
    group_.stop();
    watch_.log().info("ended", {{"code", static_cast<int>(exit)}});
    if (exit == Exit::ok) begin_anew();
  }
  watch_.log().info("ended", {{"code", static_cast<int>(exit)}});
  return exit;
}

Status NodeRun::prepare() {
  const EndAtOnce while_nobody_is_served;
  for (const auto step : {&NodeRun::open_watch, &NodeRun::open_stores, &NodeRun::open_node,
                          &NodeRun::check_server_options, &NodeRun::recover, &NodeRun::start_group,
                          &NodeRun::declare_namespaces}) {
    SEMEL_CHECK((this->*step)());
  }
  return Done{};
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
  for (const auto step : {&NodeRun::prepare, &NodeRun::open_server, &NodeRun::announce_ready}) {
    const Status status = (this->*step)();
    if (status) continue;
    watch_.fail(status.error().detail);
    return exit_of(status.error().code);
  }
  greet();
  wait_for_end();
  return end();
}

}  // namespace semel::tool
