// Notifications to systemd from a service of Type=notify: each is one datagram to the socket that
// is named in the environment. Without that socket every call does nothing.
//
// Source: man 3 sd_notify, man 3 sd_watchdog_enabled
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "semel/result.hpp"

namespace semel::net {

inline constexpr std::size_t systemd_status_bytes_max = 1024;  ///< a longer one is cut

/// The variables, unchecked; empty: not set.
struct SystemdEnvironment {
  std::string notify_socket{};
  std::string watchdog_usec{};
  std::string watchdog_pid{};

  [[nodiscard]] static SystemdEnvironment read();
};

class Systemd {
 public:
  /// Checks nothing: a wrong environment must not keep the node from starting.
  explicit Systemd(SystemdEnvironment environment) : environment_(std::move(environment)) {}

  [[nodiscard]] bool listens() const noexcept { return !environment_.notify_socket.empty(); }

  // Success: sent, or there is no socket. The detail of an error says why it could not be sent.
  // Safe from any thread. Progress: blocks only while the queue of systemd is full.
  [[nodiscard]] Status ready(std::string_view status = {}) const;
  [[nodiscard]] Status stopping(std::string_view status = {}) const;
  [[nodiscard]] Status status(std::string_view text) const;
  [[nodiscard]] Status watchdog() const;

  /// The interval at which watchdog() must be called, half of systemd's limit. None: systemd does
  /// not watch this process.
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog_every() const;

 private:
  [[nodiscard]] Status notify(std::string_view state, std::string_view status) const;

  SystemdEnvironment environment_;
};

}  // namespace semel::net
