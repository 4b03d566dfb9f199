// What systemd wants to be told by a service of Type=notify: one datagram to the socket that it
// names in the environment. Without that socket every call does nothing.
//
// Source: man 3 sd_notify, man 3 sd_watchdog_enabled
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace semel::net {

inline constexpr std::size_t systemd_status_bytes_max = 1024;  ///< the rest is left out

/// The variables as they stand; empty: not set.
struct SystemdEnvironment {
  std::string notify_socket{};
  std::string watchdog_usec{};
  std::string watchdog_pid{};

  [[nodiscard]] static SystemdEnvironment read();
};

class Systemd {
 public:
  /// Nothing is checked before it is used: the environment is no reason not to start.
  explicit Systemd(SystemdEnvironment environment) : environment_(std::move(environment)) {}

  [[nodiscard]] bool listens() const noexcept { return !environment_.notify_socket.empty(); }

  // Each says why it could not be told; none: told, or nobody listens. Safe from any thread.
  // Progress: blocks only while systemd's queue is full.
  std::optional<std::string> ready(std::string_view status = {}) const;
  std::optional<std::string> stopping(std::string_view status = {}) const;
  std::optional<std::string> status(std::string_view text) const;
  std::optional<std::string> watchdog() const;

  /// watchdog() must be called at least twice within systemd's limit: this often. None: it does not
  /// watch this process.
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog_every() const;

 private:
  [[nodiscard]] std::optional<std::string> tell(std::string_view state,
                                                std::string_view status) const;

  SystemdEnvironment environment_;
};

}  // namespace semel::net
