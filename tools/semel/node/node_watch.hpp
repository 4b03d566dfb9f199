// What an operator sees of a node: its log, its port for health and metrics, what systemd is told.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/admin/admin_server.hpp"
#include "net/admin/log.hpp"
#include "net/admin/metrics.hpp"
#include "net/admin/systemd.hpp"
#include "net/settings/settings.hpp"
#include "semel/clock.hpp"
#include "semel/storage.hpp"
#include "tools/semel/node/node_pulse.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

class NodeWatch {
 public:
  /// Asked by the port's thread.
  struct Sources {
    std::function<void(net::MetricFigures&)> figures{};
    std::function<std::optional<std::string>()> trouble{};  ///< why no work is taken; none: it is
  };

  /// Both must outlive this.
  NodeWatch(net::Settings& settings, const Clock& clock);
  ~NodeWatch();
  NodeWatch(const NodeWatch&) = delete;
  NodeWatch& operator=(const NodeWatch&) = delete;

  /// Opens the log and the port, if there is to be one. Returns what is wrong.
  [[nodiscard]] Failure open();
  /// Once open() has gone well.
  [[nodiscard]] net::Log& log() noexcept { return *log_; }
  /// Tells the person who started the node, and a log that is not in front of them, why it ends.
  void fail(const std::string& text);
  /// Of the port for health and metrics, for a ready file; empty: there is none.
  [[nodiscard]] std::string ready_text() const;

  // --- the life of a node -------------------------------------------------------------------
  void recovers(const std::string& directory);
  void recovering(const RecoveryProgress& progress);
  void recovered(const RecoveryReport& report);
  /// It takes work from now on.
  void serves(Sources sources);
  void drains();
  /// The sources are not asked any more when this returns.
  void forget();

  /// Where threads say that they go round: if one does not, neither is the node ready nor systemd
  /// told that it is well.
  [[nodiscard]] Pulse& pulse() noexcept { return pulse_; }

  /// To be called a few times a second while the node is well.
  void tick();

 private:
  using Time = std::chrono::steady_clock::time_point;

  [[nodiscard]] Failure open_admin();
  [[nodiscard]] std::string metrics();
  [[nodiscard]] std::optional<std::string> not_ready();
  [[nodiscard]] std::optional<std::string> not_ready_locked() const;
  void set_state(std::string why_not);
  void check(const std::optional<std::string>& untold);

  net::Settings& settings_;
  const Clock& clock_;
  const Time began_ = std::chrono::steady_clock::now();
  const std::int64_t began_unix_ms_;
  const net::Systemd systemd_;
  std::unique_ptr<net::Log> log_;
  Pulse pulse_;
  bool was_silent_ = false;  // of tick(): the log has been told
  std::mutex mutex_;
  std::string why_not_ = "starting";  // empty: ready; under mutex_
  Sources sources_;                   // under mutex_, also while they are asked
  double told_seconds_ = 0;           // of the recovery; one thread at a time
  Time log_ticked_{};                 // these two of tick()
  Time watchdog_fed_{};
  std::unique_ptr<net::AdminServer> admin_;  // asks this, so it ends first
};

}  // namespace semel::tool
