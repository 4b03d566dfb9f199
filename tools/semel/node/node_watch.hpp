// An operator's view of a node: the operator log, the port for health and metrics, the systemd
// status.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "base/stopwatch.hpp"
#include "net/admin/admin_server.hpp"
#include "net/admin/log.hpp"
#include "net/admin/metrics.hpp"
#include "net/admin/systemd.hpp"
#include "net/console/console.hpp"
#include "net/settings/settings.hpp"
#include "semel/clock.hpp"
#include "semel/result.hpp"
#include "semel/storage.hpp"
#include "tools/semel/node/node_pulse.hpp"

namespace semel::tool {

class NodeWatch {
 public:
  /// Called by the port's thread.
  struct Sources {
    std::function<void(net::MetricValues&)> values{};
    std::function<Status()> serving{};  ///< whether requests are served
  };

  /// Both must outlive this.
  NodeWatch(net::Settings& settings, const Clock& clock);
  ~NodeWatch();
  NodeWatch(const NodeWatch&) = delete;
  NodeWatch& operator=(const NodeWatch&) = delete;

  /// Opens the operator log, and the port if there is one. The detail of an error is its whole
  /// text.
  [[nodiscard]] Status open();
  /// Only after open() has succeeded.
  [[nodiscard]] net::Log& log() noexcept {
    SEMEL_ASSERT(log_ != nullptr);
    return *log_;
  }
  /// Writes the reason of the node's end to standard error, and to the operator log if that is a
  /// file.
  void fail(const std::string& text);
  /// The line of the port for health and metrics in a ready file; empty: none.
  [[nodiscard]] std::string ready_text() const;

  // --- the life of a node -------------------------------------------------------------------
  void recovers(const std::string& directory);
  void recovering(const RecoveryProgress& progress);
  void recovered(const RecoveryReport& report);
  /// The node serves from now on.
  void serves(Sources sources);
  void drains();
  /// The sources are not called after this returns.
  void forget();
  /// Sets the handler of the console's paths; null: none. The port may be in a call of the previous
  /// one when this returns.
  void show(std::shared_ptr<net::Console> console);
  /// The thread of the port for health and metrics; null: none.
  [[nodiscard]] std::shared_ptr<net::AdminThread> admin_thread() const {
    return admin_ == nullptr ? nullptr : admin_->thread();
  }

  // --- called by the port -------------------------------------------------------------------
  [[nodiscard]] net::MetricValues values();
  [[nodiscard]] Status ready();

  /// The heartbeats of the threads. If one stops, the node is not ready, and systemd's watchdog is
  /// not fed.
  [[nodiscard]] Pulse& pulse() noexcept { return pulse_; }

  /// To be called a few times a second while the node is well.
  void tick();

 private:
  using Time = std::chrono::steady_clock::time_point;

  [[nodiscard]] static Error not_ready(std::string state) {
    return {ErrorCode::closing, std::move(state)};
  }

  [[nodiscard]] Status open_admin();
  [[nodiscard]] std::shared_ptr<net::Console> console();
  void respond(net::AdminRequest request, net::AdminRespond then);
  [[nodiscard]] Status ready_locked() const SEMEL_REQUIRES(mutex_);
  void set_not_ready(std::string state);
  void check(const Status& notified);

  net::Settings& settings_;
  const Clock& clock_;
  const base::Stopwatch uptime_;
  const std::int64_t began_unix_ms_;
  const net::Systemd systemd_;
  std::unique_ptr<net::Log> log_;
  Pulse pulse_;
  bool was_silent_ = false;  // of tick(): it has been logged
  base::Mutex mutex_;
  Status state_ SEMEL_GUARDED_BY(mutex_) = not_ready("starting");
  Sources sources_ SEMEL_GUARDED_BY(mutex_);  // held while they are called, so that forget() waits
  std::shared_ptr<net::Console> console_ SEMEL_GUARDED_BY(mutex_);
  double reported_seconds_ = 0;  // of the recovery; one thread at a time
  Time log_ticked_{};            // these two of tick()
  Time watchdog_fed_{};
  std::unique_ptr<net::AdminServer> admin_;  // asks this, so it ends first
};

}  // namespace semel::tool
