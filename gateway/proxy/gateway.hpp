// A gateway: threads that listen, the engine behind them, and the port for operators.
//
//   clients -> Worker (one thread: io_context, socket, sessions, pool) x n -> upstream
//                 |                                  ^
//                 +-- Guards -> Engine -> Storage ---+ callbacks, over a Bridge
//                     (or nodes: ClaimBackend)
//
// The order in which it ends: workers stop, bridges close, then guards, engine and storage, which
// answer what still waits into the closed bridges, and the io_contexts last.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gateway/config/settings.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

class Gateway {
 public:
  /// Opens the store, listens and serves when it returns. Errors: bad_option (names the setting),
  /// those of Storage::open(), recover() and Engine::open(), no_thread. The detail is the whole
  /// text for the user.
  [[nodiscard]] static Result<std::unique_ptr<Gateway>> start(Settings settings);
  /// All that start() refuses before it touches a store or a port, a line for each: settings, files
  /// of TLS, terms of routes. None: they are right.
  [[nodiscard]] static std::vector<std::string> check(const Settings& settings);
  /// Ends at once what drain() has left.
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  /// Of the listening sockets; of the admin's, 0 if there is none.
  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::uint16_t admin_port() const noexcept;
  /// Requests that begin from now on have the routes, keys and default of `fresh`, and connections
  /// its certificates; those under way keep what they began with. Returns the names of settings
  /// that differ and stay until a restart. Errors: as start(); nothing has changed. Not
  /// thread-safe.
  [[nodiscard]] Result<std::vector<std::string>> reload(const Settings& fresh);
  /// The access log goes on in a file of its name, which may have been renamed. Errors:
  /// storage_failed.
  [[nodiscard]] Status reopen_log();
  /// Accepts no more, ends idle connections, and waits for requests under way, at most
  /// drain_timeout. False: some were not finished; their claims stay held, and end as
  /// on-lease-end says.
  bool drain();

 private:
  class Impl;
  explicit Gateway(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::gateway
