// The sockets of a node: listens, keeps connections within their limits, and gives each a session.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "net/server/counters.hpp"
#include "net/server/listener.hpp"
#include "net/server/options.hpp"
#include "semel/result.hpp"

namespace semel::net {

class Acceptor;
class IoThread;

class Server {
 public:
  /// Listens and serves from now on. Raises the limit of open files as `maxclients` needs; if the
  /// system does not allow it, lowers `maxclients` to fit, and logs a warning. Error: the detail
  /// names the value and the limit.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(ServerOptions options,
                                                             ServerHooks hooks);
  /// Cuts all connections. Sessions and hooks are not called after its end.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// 0: there is no such port.
  [[nodiscard]] std::uint16_t port() const noexcept {
    return port_.load(std::memory_order_relaxed);  // mo: relaxed: shown only
  }
  [[nodiscard]] std::uint16_t tls_port() const noexcept { return tls_port_; }
  [[nodiscard]] std::size_t threads() const noexcept { return threads_.size(); }
  /// For a ready file: lines of name=value, "port", "tls_port", "unix" and "pid".
  [[nodiscard]] std::string ready_text() const;

  /// Closes the listeners and all connections without a request under way, lets the others finish,
  /// and then cuts off the rest. Returns how many were cut off. Not from an io thread.
  /// Progress: blocks, by the server's clock at most for `within` and a tick.
  std::size_t drain(Millis within);

  // From any thread.
  /// Runs on that thread soon; never, when the server ends before.
  void post(std::size_t thread, std::function<void()> function);
  /// Runs on every thread, one after the other, and returns when it has. Not from an io thread.
  void run_on_each(const std::function<void(std::size_t thread)>& function);
  /// One tick of every thread now; returns when they are done. Not from an io thread.
  void tick();
  void set_limits(const ConnectionLimits& limits);
  /// False: the limit of open files is too low for this number; nothing changed.
  [[nodiscard]] bool set_maxclients(std::size_t maxclients);
  [[nodiscard]] std::size_t maxclients() const noexcept;
  void set_keepalive(Millis keepalive) noexcept;
  /// Listens on these addresses and this port (0: any that is free) in the place of the present
  /// ones. Connections stay, and so do listeners that are still wanted. On an error, which names
  /// the address and the reason, the present ones stay.
  [[nodiscard]] Status listen_on(const std::vector<std::string>& addresses,
                                 std::optional<std::uint16_t> port);
  /// Connections accepted from now on use these files. On an error nothing changes.
  [[nodiscard]] Status reload_tls(const TlsFiles& files);
  [[nodiscard]] ServerStats stats() const;

 private:
  Server(ServerOptions options, ServerHooks hooks);
  [[nodiscard]] Status open();
  /// Lowers maxclients if the limit of open files cannot be raised.
  [[nodiscard]] Status fit_files();
  void note_drained();
  /// Gives up the listeners, which the accepting thread closes.
  void forget_listeners();

  ServerOptions options_;
  const ServerHooks hooks_;
  const std::unique_ptr<Clock> own_clock_;
  std::atomic<std::uint16_t> port_{0};
  std::uint16_t tls_port_ = 0;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::unique_ptr<Acceptor> acceptor_;
  mutable base::Mutex listening_;
  Listeners listeners_ SEMEL_GUARDED_BY(listening_);
  std::optional<std::uint16_t> wanted_port_ SEMEL_GUARDED_BY(listening_);
  bool listens_ SEMEL_GUARDED_BY(listening_) = false;
  base::Mutex mutex_;
  base::Condition drained_;
  std::size_t drained_count_ SEMEL_GUARDED_BY(mutex_) = 0;  // of threads
};

}  // namespace semel::net
