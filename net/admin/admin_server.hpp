// An HTTP server for operators, separate from the clients of the program: it has its own thread and
// io_context, so that it responds while the program is busy and does not slow it down. What it
// serves is a table of routes, AdminSite.
//
// HEAD is served as GET. Requests are refused in this order: 400 for bytes that are not a request
// or a header longer than admin_limits::header_bytes_max; 401 or 403 by AdminGuard; 404 for another
// path; 405 for another method; 400 for a body where the route has none or a longer one.
//
// Without memory only the connection ends whose request needed it.
//
// Non-goals: TLS, passwords. Without a token all clients that can connect can read the metrics, so
// only loopback addresses are allowed unless AdminOptions::remote is set.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/admin/admin_guard.hpp"
#include "net/admin/admin_route.hpp"
#include "net/admin/admin_thread.hpp"
#include "semel/result.hpp"

namespace semel::net {

struct AdminOptions {
  std::vector<std::string> addresses{"127.0.0.1"};  ///< IP addresses, 1..addresses_max
  std::uint16_t port = 0;                           ///< for all of them; 0: each gets a free port
  bool dual_stack = false;                          ///< `::` includes all addresses of IPv4
  AdminGuard guard{};                               ///< at most hosts_max names
  bool remote = false;  ///< allow addresses that other machines can reach
  /// From the first byte of a request to its last, and the same again for the response. 1 ms..1 h.
  std::chrono::milliseconds request_within{5'000};
  std::chrono::milliseconds idle_within{30'000};  ///< before the first byte. 1 ms..1 h.
};

struct AdminEndpoint {
  std::string address{};
  std::uint16_t port = 0;

  [[nodiscard]] std::string text() const;  ///< "127.0.0.1:9100", "[::1]:9100"
};

class AdminServer {
 public:
  /// Whether `options` are valid. The detail of an error names the value and its limit.
  [[nodiscard]] static Status check(const AdminOptions& options);
  /// Listens and responds when it returns. Errors: bad_option, no_thread; the detail is the whole
  /// text for the operator.
  [[nodiscard]] static Result<std::unique_ptr<AdminServer>> start(const AdminOptions& options,
                                                                  AdminSite site);
  /// Closes all connections at once; waits only for a running handler.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  /// In the order of AdminOptions::addresses.
  [[nodiscard]] const std::vector<AdminEndpoint>& endpoints() const noexcept;
  /// Runs work where the handlers are called.
  [[nodiscard]] std::shared_ptr<AdminThread> thread() const noexcept;

 private:
  class Impl;
  explicit AdminServer(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::net
