// Health and metrics over HTTP, separate from the clients: it has its own thread and io_context, so
// that it responds while the node is busy and does not slow it down.
//
//   GET /metrics   200 and the text of AdminAnswers::metrics; 403 under a name of somebody else
//   GET /livez     200 "ok", while the process responds at all
//   GET /readyz    200 "ok", or 503 and the reason
//
//   /console..     as AdminAnswers::pages responds, if it is given: GET, and POST with a body
//
// HEAD is supported, too. Another path is 404, another method 405. Bytes that are not a request, a
// body where none belongs or one longer than admin_limits::body_bytes_max, or a header longer than
// admin_limits::header_bytes_max are 400.
//
// Non-goals: TLS, passwords. All clients that can connect can read the metrics, so only loopback
// addresses are allowed unless AdminOptions::remote is set.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/admin/admin_page.hpp"
#include "semel/result.hpp"

namespace semel::net {

struct AdminOptions {
  std::vector<std::string> addresses{"127.0.0.1"};  ///< IP addresses, 1..addresses_max
  std::uint16_t port = 0;                           ///< for all of them; 0: each gets a free port
  /// Names in Host that get the metrics, besides addresses and localhost; hosts_max.
  std::vector<std::string> hosts{};
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
  /// Listens and responds when it returns. Both answers must be given. The detail of an error is
  /// the whole text for the operator.
  [[nodiscard]] static Result<std::unique_ptr<AdminServer>> start(const AdminOptions& options,
                                                                  AdminAnswers answers);
  /// Closes all connections at once; waits only for a running call of an answer.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  /// In the order of AdminOptions::addresses.
  [[nodiscard]] const std::vector<AdminEndpoint>& endpoints() const noexcept;
  /// For what has to run where the answers are called.
  [[nodiscard]] std::shared_ptr<AdminThread> thread() const noexcept;

 private:
  class Impl;
  explicit AdminServer(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::net
