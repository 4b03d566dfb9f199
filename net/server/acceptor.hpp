// Accepts connections and distributes them.
//
// One thread accepts for all and gives each connection to the thread with the fewest. With
// SO_REUSEPORT the kernel would choose by a hash of the addresses: clients that keep a few
// connections for long, as Redis' do, would often leave half of the threads idle, and a Unix socket
// cannot be distributed that way at all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "net/server/io_thread.hpp"
#include "net/server/listener.hpp"

namespace semel::net {

class Acceptor {
 public:
  static constexpr int accepts_max = 64;  ///< of one listener in one round
  static constexpr Millis pause{100};     ///< when no descriptor is left

  /// `threads` must outlive this; the first one accepts.
  Acceptor(const ServerOptions& options, const ServerHooks& hooks,
           std::vector<std::unique_ptr<IoThread>>& threads, std::size_t maxclients);

  /// Before the threads start.
  [[nodiscard]] Status begin(const std::vector<SharedListener>& listeners);
  /// On the accepting thread: accepts from these from now on, and closes the others. After close()
  /// it does nothing.
  void replace(const std::vector<SharedListener>& listeners);
  /// On the accepting thread: accepts no more connections.
  void close() noexcept;

  // From any thread.
  void set_tls(std::shared_ptr<const TlsContext> tls);
  void set_maxclients(std::size_t maxclients) noexcept {
    maxclients_.store(maxclients, std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  /// Applies to connections accepted from now on; 0: none.
  void set_keepalive(Millis keepalive) noexcept {
    keepalive_ms_.store(keepalive.count(), std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  [[nodiscard]] std::size_t maxclients() const noexcept {
    return maxclients_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  [[nodiscard]] std::size_t clients() const noexcept;
  void add_to(ServerStats& stats) const noexcept;

 private:
  struct Open {
    SharedListener listener;
    std::size_t watched;
  };

  [[nodiscard]] Status open(const SharedListener& listener);
  void accept_from(const Listener& listener);
  void welcome(Descriptor socket, Transport transport);
  void turn_away(Descriptor socket, Transport transport);
  void out_of_files(const Listener& listener);
  void take_reserve();
  void tick();
  [[nodiscard]] IoThread& least_loaded();
  [[nodiscard]] std::shared_ptr<const TlsContext> tls();

  LogGate log_;
  std::vector<std::unique_ptr<IoThread>>& threads_;
  IoThread& home_;
  std::vector<Open> open_;
  Descriptor reserve_;  // closed to accept one client and send it the error
  bool paused_ = false;
  bool complained_ = false;
  bool closed_ = false;
  Timestamp paused_until_{};
  std::size_t next_ = 0;
  std::uint64_t last_id_ = 0;
  std::atomic<std::size_t> maxclients_;
  std::atomic<std::int64_t> keepalive_ms_;
  base::Mutex mutex_;
  std::shared_ptr<const TlsContext> tls_ SEMEL_GUARDED_BY(mutex_);
  Figure accepted_;
  Figure rejected_full_;
  Figure rejected_files_;
  Figure pauses_;
};

}  // namespace semel::net
