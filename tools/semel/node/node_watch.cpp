#include "tools/semel/node/node_watch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "semel/version.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {

using net::Setting;

namespace {

// Longer than any call of a healthy node takes, also on a machine that is short of processors.
constexpr std::chrono::seconds silent_after{5};

}  // namespace

NodeWatch::NodeWatch(net::Settings& settings, const Clock& clock)
    : settings_(settings),
      clock_(clock),
      began_unix_ms_(clock.unix_ms()),
      systemd_(net::SystemdEnvironment::read()) {}

NodeWatch::~NodeWatch() = default;

Status NodeWatch::open() {
  auto log = net::Log::open(log_options(settings_), clock_);
  if (!log.ok()) return file_error(log.error().detail);
  log_ = *std::move(log);
  settings_.on_change(Setting::log_level, [this] {
    log_->set_level(settings_.choice<net::LogLevel>(Setting::log_level));
  });
  settings_.on_change(Setting::log_keys,
                      [this] { log_->set_keys(settings_.boolean(Setting::log_keys)); });
  log_->info("starting", {{"version", version}, {"process", getpid()}});
  return open_admin();
}

Status NodeWatch::open_admin() {
  const auto options = admin_options(settings_);
  if (!options) return Done{};
  SEMEL_CHECK(net::AdminServer::check(*options));
  net::AdminSite site{.routes = net::common_routes(
                          [this] {
                            return net::metrics_text(
                                values(),
                                {.redis_names = settings_.boolean(Setting::redis_metric_names)});
                          },
                          [this] { return ready(); })};
  if (settings_.boolean(Setting::console)) {
    site.routes.push_back(
        net::console_route([this](net::AdminRequest request, net::AdminRespond then) {
          respond(std::move(request), std::move(then));
        }));
    site.tick = [this] {
      if (const auto shown = console()) shown->tick();
    };
  }
  auto admin = net::AdminServer::start(*options, std::move(site));
  if (!admin.ok()) return file_error(admin.error().detail);
  admin_ = *std::move(admin);
  for (const net::AdminEndpoint& endpoint : admin_->endpoints()) {
    const std::string address = endpoint.text();
    log_->info("listening", {{"for", "health and metrics"}, {"address", address}});
  }
  return Done{};
}

void NodeWatch::fail(const std::string& text) {
  print_error("semel node: {}\n", text);
  if (log_ != nullptr && !settings_.text(Setting::log_file).empty()) {
    log_->error("failed", {{"reason", text}});
  }
}

std::string NodeWatch::ready_text() const {
  if (admin_ == nullptr) return {};
  return fmt::format("admin_port={}\n", admin_->endpoints().front().port);
}

// --- the life of a node -----------------------------------------------------------------------

void NodeWatch::set_not_ready(std::string state) {
  const base::MutexLock lock{mutex_};
  state_ = not_ready(std::move(state));
}

void NodeWatch::check(const Status& notified) {
  if (!notified.ok()) log_->warning("systemd_not_notified", {{"reason", notified.error().detail}});
}

void NodeWatch::recovers(const std::string& directory) {
  constexpr std::string_view text = "recovering";
  set_not_ready(std::string{text});
  log_->info("recovery_begins", {{"dir", directory}});
  check(systemd_.status(text));
}

void NodeWatch::recovering(const RecoveryProgress& progress) {
  constexpr double often_seconds = 1;
  constexpr double whole = 100;
  if (progress.bytes_total == 0 || progress.seconds - reported_seconds_ < often_seconds) return;
  reported_seconds_ = progress.seconds;
  const double share =
      static_cast<double>(progress.bytes) / static_cast<double>(progress.bytes_total);
  std::string text = fmt::format("recovering: {:.0f}%, about {:.0f} s to go",
                                 std::min(share, 1.0) * whole, progress.eta);
  log_->info("recovering", {{"bytes", progress.bytes},
                            {"bytes_total", progress.bytes_total},
                            {"mutations", progress.mutations},
                            {"seconds_to_go", progress.eta}});
  check(systemd_.status(text));
  set_not_ready(std::move(text));
}

void NodeWatch::recovered(const RecoveryReport& report) {
  log_->info("recovered", {{"mutations", report.mutations},
                           {"ended", report.ended},
                           {"unfinished", report.unfinished},
                           {"bytes", report.bytes},
                           {"bytes_skipped", report.bytes_skipped}});
  for (const auto& [name, claims] : report.unknown_namespaces) {
    log_->warning("namespace_unknown", {{"name", name}, {"claims", claims}});
  }
}

void NodeWatch::serves(Sources sources) {
  {
    const base::MutexLock lock{mutex_};
    sources_ = std::move(sources);
    state_ = Done{};
  }
  check(systemd_.ready("serving"));
}

void NodeWatch::drains() {
  set_not_ready("draining");
  log_->info("draining");
  check(systemd_.stopping("draining"));
}

void NodeWatch::forget() {
  const base::MutexLock lock{mutex_};
  sources_ = {};
}

void NodeWatch::show(std::shared_ptr<net::Console> console) {
  const base::MutexLock lock{mutex_};
  console_ = std::move(console);
}

void NodeWatch::tick() {
  constexpr std::chrono::seconds log_every{1};
  const Time now = std::chrono::steady_clock::now();
  if (now - log_ticked_ >= log_every) {
    log_ticked_ = now;
    log_->tick();
  }
  const Status alive = pulse_.check(now, silent_after);
  if (alive.ok() == was_silent_) {
    was_silent_ = !alive.ok();
    if (was_silent_) {
      log_->error("thread_silent", {{"text", alive.error().detail}});
    } else {
      log_->info("threads_answer");
    }
  }
  const auto watchdog_every = systemd_.watchdog_every();
  if (watchdog_every && now - watchdog_fed_ >= *watchdog_every &&
      pulse_.check(now, *watchdog_every)) {
    watchdog_fed_ = now;
    check(systemd_.watchdog());
  }
}

// --- called by the port -----------------------------------------------------------------------

Status NodeWatch::ready_locked() const {
  SEMEL_CHECK(state_);
  SEMEL_CHECK(pulse_.check(std::chrono::steady_clock::now(), silent_after));
  return sources_.serving ? sources_.serving() : Status{Done{}};
}

Status NodeWatch::ready() {
  const base::MutexLock lock{mutex_};
  return ready_locked();
}

net::MetricValues NodeWatch::values() {
  constexpr double ms_per_second = 1000;
  net::MetricValues values;
  values.version = version;
  values.process_id = static_cast<std::uint64_t>(getpid());
  values.started_unix_seconds = static_cast<double>(began_unix_ms_) / ms_per_second;
  values.uptime_seconds = uptime_.seconds();
  values.process = net::read_process_metrics();
  {
    const base::MutexLock lock{mutex_};
    values.ready = ready_locked().ok();
    if (sources_.values) sources_.values(values);
  }
  return values;
}

std::shared_ptr<net::Console> NodeWatch::console() {
  const base::MutexLock lock{mutex_};
  return console_;
}

void NodeWatch::respond(net::AdminRequest request, net::AdminRespond then) {
  if (const auto shown = console()) return shown->respond(std::move(request), std::move(then));
  const Status state = ready();
  then({.status = 503, .body = (state ? std::string{"starting"} : state.error().detail) + "\n"});
}

}  // namespace semel::tool
