// Health and metrics over HTTP, apart from the clients: one thread and one io_context of its own,
// so that it answers while the node is busy, and costs it nothing.
//
//   GET /metrics   200, what AdminAnswers::metrics gives
//   GET /livez     200 "ok", while the process answers at all
//   GET /readyz    200 "ok", or 503 and the reason why not
//
// HEAD as GET. Another path is 404, another method 405, what is no request (or one with a body, or
// with a header of more than admin_limits::header_bytes_max) 400.
//
// Non-goals: TLS, passwords. Whoever reaches the port reads the figures, hence loopback only unless
// AdminOptions::remote says otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace semel::net {

namespace admin_limits {

inline constexpr std::size_t header_bytes_max = 8 * 1024;
/// Open at a time. A further one takes the place of the one that has been idle longest, so that
/// idle ones cannot keep a probe out; when all are in use it is closed at once.
inline constexpr std::size_t connections_max = 16;
inline constexpr std::size_t addresses_max = 16;

}  // namespace admin_limits

struct AdminOptions {
  std::vector<std::string> addresses{"127.0.0.1"};  ///< IP addresses, 1..addresses_max
  std::uint16_t port = 0;                           ///< of all of them; 0: each gets a free one
  bool remote = false;                              ///< also addresses that other machines reach
  /// From the first byte of a request to its last, and as long again for the answer. 1 ms..1 h.
  std::chrono::milliseconds request_within{5'000};
  std::chrono::milliseconds idle_within{30'000};  ///< before the first byte. 1 ms..1 h.
};

/// Called on the server's thread, one at a time; while one works, others wait.
struct AdminAnswers {
  std::function<std::string()> metrics{};
  std::function<std::optional<std::string>()> not_ready{};  ///< the reason; none: ready
};

struct AdminEndpoint {
  std::string address{};
  std::uint16_t port = 0;

  [[nodiscard]] std::string text() const;  ///< "127.0.0.1:9100", "[::1]:9100"
};

class AdminServer {
 public:
  /// What is wrong with `options`, naming the value and its limit; none: nothing.
  [[nodiscard]] static std::optional<std::string> check(const AdminOptions& options);
  /// Listens and answers when it returns. None: `error` says why. Both answers must be given.
  [[nodiscard]] static std::unique_ptr<AdminServer> start(const AdminOptions& options,
                                                          AdminAnswers answers, std::string& error);
  /// Closes everything at once; waits only for an answer that is being made.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  /// In the order of AdminOptions::addresses.
  [[nodiscard]] const std::vector<AdminEndpoint>& endpoints() const noexcept;

 private:
  class Impl;
  explicit AdminServer(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::net
