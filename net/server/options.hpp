// How the server listens, and its limits for a client.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/resp/log_level.hpp"
#include "net/server/session.hpp"
#include "net/server/tls.hpp"
#include "net/settings/setting_limits.hpp"
#include "semel/clock.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::net {

/// Pending output over these ends a connection. 0: no limit.
struct PendingLimit {
  std::size_t hard_bytes = 0;
  std::size_t soft_bytes = 0;  ///< over this for longer than soft_for
  Millis soft_for{0};
};

/// The limits of each connection. Times are checked once in `deadline_slack` at the latest.
struct ConnectionLimits {
  Millis idle{0};  ///< without a byte either way; 0: none. Not while a request waits
  /// From the first byte of a request to its last, and for a client to log in; 0: no limit.
  Millis request{60'000};
  Millis handshake{10'000};  ///< of TLS
  Millis linger{5'000};      ///< to take the last replies of a connection that closes
  std::size_t input_bytes = std::size_t{1} << 30;          ///< that a session may hold
  std::size_t output_pause_bytes = std::size_t{64} << 20;  ///< pending: no more is read
  std::size_t handshake_bytes = std::size_t{64} << 10;
  std::size_t unauthenticated_output_bytes = std::size_t{64} << 10;  ///< pending
  /// One limit per OutputClass.
  std::array<PendingLimit, output_classes> output{PendingLimit{.hard_bytes = std::size_t{1} << 30,
                                                               .soft_bytes = std::size_t{256} << 20,
                                                               .soft_for = Millis{60'000}},
                                                  PendingLimit{.hard_bytes = std::size_t{32} << 20,
                                                               .soft_bytes = std::size_t{8} << 20,
                                                               .soft_for = Millis{60'000}},
                                                  PendingLimit{.hard_bytes = std::size_t{256} << 20,
                                                               .soft_bytes = std::size_t{64} << 20,
                                                               .soft_for = Millis{60'000}}};
};

inline constexpr std::size_t maxclients_max = 1'000'000;

struct ServerOptions {
  std::vector<std::string> addresses{"127.0.0.1"};  ///< IPv4 or IPv6, as numbers
  std::optional<std::uint16_t> port{};              ///< 0: any that is free
  std::optional<std::uint16_t> tls_port{};          ///< 0: any that is free
  std::string unix_path{};                          ///< empty: no Unix socket
  mode_t unix_mode = 0700;
  int backlog = 511;
  std::size_t threads = 1;  ///< 1..io_threads_max; 0: one for each processor
  std::size_t maxclients = 10'000;
  std::size_t reserved_files = 64;  ///< open files that are left to the rest of the process
  Millis keepalive{300'000};        ///< of TCP; 0: none
  Millis tick{100};                 ///< 0: only Server::tick(), for tests
  TlsFiles tls{};
  ConnectionLimits limits{};
  const Clock* clock = nullptr;  ///< must outlive the server; null: the system's
};

/// Each connection is checked in one of this many ticks.
inline constexpr std::size_t deadline_buckets = 10;

/// The callbacks of the server. All but `make_session` may be empty.
struct ServerHooks {
  MakeSession make_session{};
  /// On each thread, after the ready sockets of a round have been served.
  std::function<void(std::size_t thread)> on_round{};
  /// On each thread, once a tick.
  std::function<void(std::size_t thread)> on_tick{};
  /// From any thread.
  std::function<void(LogLevel level, std::string_view line)> log{};
};

/// Whether `options` are valid. Error: the detail names the value and the limit.
[[nodiscard]] Status check_options(const ServerOptions& options);

/// Which clients can connect, and the barriers before them.
struct Exposure {
  std::vector<std::string> addresses{};
  bool has_plain_port = false;
  bool has_tls_port = false;
  bool has_password = false;
  bool requires_certificates = false;  ///< of clients, on the TLS port
};

/// Whether clients of other machines need a password or a certificate. If not, the server does not
/// start; the detail of the error names the open address and the remedies.
[[nodiscard]] Status check_exposure(const Exposure& exposure);

}  // namespace semel::net
