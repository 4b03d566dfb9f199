// One thread and its connections.
//
// The thread's epoll set is its loop: one wait for up to 256 ready sockets, for the wakeups of
// other threads and for the timer, without a handler or an operation per socket (decision 0011).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/server/connection_table.hpp"
#include "net/server/options.hpp"
#include "net/server/socket_connection.hpp"
#include "net/server/waker.hpp"
#include "net/server/watched_descriptors.hpp"

namespace semel::net {

class IoThread {
 public:
  /// All arguments must outlive this.
  struct Context {
    const ServerOptions& options;
    const ServerHooks& hooks;
    const Clock& clock;
    /// Called on this thread, when the last connection of a drained thread has gone.
    std::function<void()> drained;
  };

  IoThread(Context outer, std::size_t index);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  /// None: ready for start(). Otherwise the error of the system.
  [[nodiscard]] Status open();
  void start();
  /// Cuts all connections and joins the thread. Functions posted later never run.
  void stop();

  // From any thread.
  template <class Function>
  void post(Function&& function) {
    posted_.add(std::forward<Function>(function));
  }
  /// Requests drain() on the thread. Needs no memory: a node without memory must still end in
  /// order.
  void request_drain(Timestamp deadline) noexcept;
  /// Adds an accepted connection. Counts it at once, so that the next one goes to another thread.
  void adopt(Descriptor socket, std::uint64_t id, Transport transport,
             std::shared_ptr<const TlsContext> tls);
  [[nodiscard]] std::size_t connections() const noexcept {
    return load_.load(std::memory_order_relaxed);  // mo: relaxed: a count, not an order
  }
  [[nodiscard]] const ConnectionCounters& counters() const noexcept { return shared_.counters; }

  // On the thread itself, or before start().
  [[nodiscard]] WatchedDescriptors& watched() noexcept { return watched_; }
  void on_each_tick(std::function<void()> function) { ticks_.push_back(std::move(function)); }
  /// Called before the thread drains.
  void on_drain(std::function<void()> function) { before_drain_ = std::move(function); }
  void tick();
  void drain(Timestamp deadline);
  void set_limits(const ConnectionLimits& limits) { shared_.limits = limits; }
  [[nodiscard]] Timestamp now() const noexcept { return outer_.clock.now(); }

 private:
  static constexpr std::size_t ready_max = 256;  // sockets a round
  void wait_for_tick();
  void serve();
  void serve_one(ConnectionName name, std::uint32_t events);
  void serve_wakeups();
  void begin_connection(Descriptor socket, std::uint64_t id, Transport transport,
                        const TlsContext* tls);
  void remove_if_done(std::size_t slot);
  void check_drained();
  void cut_all(Ended why);

  const Context outer_;
  Descriptor epoll_;
  Descriptor timer_;  // of the next tick
  std::shared_ptr<WakeQueue> wakes_;
  PostedFunctions posted_;
  std::atomic<bool> stops_{false};
  ConnectionShared shared_;
  ConnectionTable table_;
  std::vector<ConnectionName> woken_;
  WatchedDescriptors watched_;
  std::vector<std::function<void()>> ticks_;
  std::size_t bucket_ = 0;  // the bucket whose deadlines the next tick checks
  std::function<void()> before_drain_;
  static constexpr std::int64_t no_request = std::numeric_limits<std::int64_t>::min();
  std::atomic<std::int64_t> drain_request_{no_request};  // the deadline, in ms
  std::optional<Timestamp> drain_until_;
  bool has_reported_drained_ = false;
  std::atomic<std::size_t> load_{0};
  std::thread thread_;
};

}  // namespace semel::net
