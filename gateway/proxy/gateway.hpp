// A gateway: threads that listen, the engine behind them, and the port for operators.
//
//   clients -> Worker (one thread: io_context, socket, sessions, pool) x n -> upstream
//                 |                                  ^
//                 +-- Guards -> Engine -> Storage ---+ callbacks, over a Bridge
//                     (or nodes: ClaimBackend)
//
// Order of shutdown: workers stop, bridges close, then guards, engine and storage end, which answer
// pending calls into the closed bridges, and the io_contexts last.
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
  /// Opens the store and listens; serves once it has returned. Errors: bad_option (names the
  /// setting), those of Storage::open(), recover() and Engine::open(), no_thread. The detail is the
  /// complete text for the user.
  [[nodiscard]] static Result<std::unique_ptr<Gateway>> start(Settings settings);
  /// Returns every error that start() would refuse before it touches a store or a port, a line for
  /// each: settings, files of TLS, terms of routes. Empty: all are valid.
  [[nodiscard]] static std::vector<std::string> check(const Settings& settings);
  /// Ends at once the requests that drain() has left.
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  /// The port of the listening sockets; the admin port, 0 if there is none.
  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::uint16_t admin_port() const noexcept;
  /// Requests that begin after this use the routes, keys and default of `fresh`, and new
  /// connections its certificates; requests under way keep theirs. Returns the names of changed
  /// settings that need a restart. Errors: as start(); nothing has changed. Not thread-safe.
  [[nodiscard]] Result<std::vector<std::string>> reload(const Settings& fresh);
  /// Reopens the access log by its name, after the file has been renamed. Errors: storage_failed.
  [[nodiscard]] Status reopen_log();
  /// Accepts no more, ends idle connections, and waits for requests under way, at most
  /// drain_timeout. False: some were not finished; their claims stay held, and end by on-lease-end.
  bool drain();

 private:
  class Impl;
  explicit Gateway(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::gateway
