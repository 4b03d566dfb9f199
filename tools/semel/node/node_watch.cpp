#include "tools/semel/node/node_watch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "semel/version.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {

using net::Setting;

namespace {

// Longer than any call that is no fault, and than a machine that is short of processors.
constexpr std::chrono::seconds silent_after{5};

}  // namespace

NodeWatch::NodeWatch(net::Settings& settings, const Clock& clock)
    : settings_(settings),
      clock_(clock),
      began_unix_ms_(clock.unix_ms()),
      systemd_(net::SystemdEnvironment::read()) {}

NodeWatch::~NodeWatch() = default;

Failure NodeWatch::open() {
  std::string problem;
  log_ = net::Log::open(log_options(settings_), clock_, problem);
  if (log_ == nullptr) return {Exit::file, std::move(problem)};
  settings_.on_change(Setting::log_level, [this] {
    log_->set_level(settings_.choice<net::LogLevel>(Setting::log_level));
  });
  settings_.on_change(Setting::log_keys,
                      [this] { log_->set_keys(settings_.boolean(Setting::log_keys)); });
  log_->info("starting", {{"version", version}, {"process", getpid()}});
  return open_admin();
}

Failure NodeWatch::open_admin() {
  const auto options = admin_options(settings_);
  if (!options) return {};
  if (auto wrong = net::AdminServer::check(*options)) return {Exit::usage, *std::move(wrong)};
  std::string problem;
  admin_ = net::AdminServer::start(
      *options,
      {.metrics = [this] { return metrics(); }, .not_ready = [this] { return not_ready(); }},
      problem);
  if (admin_ == nullptr) return {Exit::file, std::move(problem)};
  for (const net::AdminEndpoint& endpoint : admin_->endpoints()) {
    const std::string address = endpoint.text();
    log_->info("listening", {{"for", "health and metrics"}, {"address", address}});
  }
  return {};
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

void NodeWatch::set_state(std::string why_not) {
  const std::lock_guard lock{mutex_};
  why_not_ = std::move(why_not);
}

void NodeWatch::check(const std::optional<std::string>& untold) {
  if (untold) log_->warning("systemd_not_told", {{"reason", *untold}});
}

void NodeWatch::recovers(const std::string& directory) {
  constexpr std::string_view text = "recovering";
  set_state(std::string{text});
  log_->info("recovery_begins", {{"dir", directory}});
  check(systemd_.status(text));
}

void NodeWatch::recovering(const RecoveryProgress& progress) {
  constexpr double often_seconds = 1;
  constexpr double whole = 100;
  if (progress.bytes_total == 0 || progress.seconds - told_seconds_ < often_seconds) return;
  told_seconds_ = progress.seconds;
  const double share =
      static_cast<double>(progress.bytes) / static_cast<double>(progress.bytes_total);
  std::string text = fmt::format("recovering: {:.0f}%, about {:.0f} s to go",
                                 std::min(share, 1.0) * whole, progress.eta);
  log_->info("recovering", {{"bytes", progress.bytes},
                            {"bytes_total", progress.bytes_total},
                            {"mutations", progress.mutations},
                            {"seconds_to_go", progress.eta}});
  check(systemd_.status(text));
  set_state(std::move(text));
}

void NodeWatch::recovered(const RecoveryReport& report) {
  log_->info("recovered", {{"mutations", report.mutations},
                           {"ended", report.ended},
                           {"unfinished", report.unfinished},
                           {"bytes", report.bytes},
                           {"bytes_skipped", report.bytes_skipped}});
}

void NodeWatch::serves(Sources sources) {
  {
    const std::lock_guard lock{mutex_};
    sources_ = std::move(sources);
    why_not_.clear();
  }
  check(systemd_.ready("serving"));
}

void NodeWatch::drains() {
  set_state("draining");
  log_->info("draining");
  check(systemd_.stopping("draining"));
}

void NodeWatch::forget() {
  const std::lock_guard lock{mutex_};
  sources_ = {};
}

void NodeWatch::tick() {
  constexpr std::chrono::seconds log_every{1};
  const Time now = std::chrono::steady_clock::now();
  if (now - log_ticked_ >= log_every) {
    log_ticked_ = now;
    log_->tick();
  }
  const auto silent = pulse_.silent(now, silent_after);
  if (silent.has_value() != was_silent_) {
    was_silent_ = silent.has_value();
    if (silent) {
      log_->error("thread_silent", {{"text", *silent}});
    } else {
      log_->info("threads_answer");
    }
  }
  const auto watchdog_every = systemd_.watchdog_every();
  if (watchdog_every && now - watchdog_fed_ >= *watchdog_every &&
      !pulse_.silent(now, *watchdog_every)) {
    watchdog_fed_ = now;
    check(systemd_.watchdog());
  }
}

// --- asked by the port ------------------------------------------------------------------------

std::optional<std::string> NodeWatch::not_ready_locked() const {
  if (!why_not_.empty()) return why_not_;
  if (auto silent = pulse_.silent(std::chrono::steady_clock::now(), silent_after)) return silent;
  return sources_.trouble ? sources_.trouble() : std::nullopt;
}

std::optional<std::string> NodeWatch::not_ready() {
  const std::lock_guard lock{mutex_};
  return not_ready_locked();
}

std::string NodeWatch::metrics() {
  constexpr double ms_per_second = 1000;
  net::MetricFigures figures;
  figures.version = version;
  figures.process_id = static_cast<std::uint64_t>(getpid());
  figures.started_unix_seconds = static_cast<double>(began_unix_ms_) / ms_per_second;
  figures.uptime_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  figures.process = net::read_process_figures();
  {
    const std::lock_guard lock{mutex_};
    figures.ready = !not_ready_locked();
    if (sources_.figures) sources_.figures(figures);
  }
  return net::metrics_text(figures,
                           {.redis_names = settings_.boolean(Setting::redis_metric_names)});
}

}  // namespace semel::tool
