// The port for operators: metrics, health, and the resolution of doubts. With a token other
// machines may reach it, and all paths but health need the token. Without a token it is on loopback
// only, and all paths but health need a Host that names this machine: a DNS-rebinding page cannot
// send one.
//
//   GET  /metrics            Prometheus' text
//   GET  /healthz, /livez    200 while the process responds
//   GET  /readyz             200, or 503 and the reason
//   POST /resolve?route=NAME&key=KEY&as=done|released
//        ends a doubt; with the token, or else the header "Semel-Admin: yes", which a page of
//        another origin cannot send
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/settings.hpp"
#include "gateway/guard/admin_token.hpp"
#include "gateway/proxy/access_log.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

/// Called on the thread of the port, one at a time.
struct AdminCalls {
  std::optional<AdminToken> token{};
  std::vector<std::string> hosts{};  ///< names in Host that are answered without a token
  /// Called for each POST to /resolve, and for each request refused for its token. The time is not
  /// set.
  std::function<void(AuditLine)> audit{};
  std::function<std::string()> metrics{};
  std::function<Status()> ready{};
  std::function<Status(std::string_view route, std::string_view key, bool is_done)> resolve{};
};

class AdminPort {
 public:
  /// Errors: bad_option (the address), no_thread.
  [[nodiscard]] static Result<std::unique_ptr<AdminPort>> start(const Address& at,
                                                                AdminCalls calls);
  ~AdminPort();
  AdminPort(const AdminPort&) = delete;
  AdminPort& operator=(const AdminPort&) = delete;
  [[nodiscard]] std::uint16_t port() const noexcept;

 private:
  class Impl;
  explicit AdminPort(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::gateway
