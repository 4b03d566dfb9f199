// The settings of a gateway. Flags change those of a file; see docs/gateway.md for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/guard/guards.hpp"
#include "gateway/rules/route.hpp"
#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::gateway {

/// "host:port", "[::1]:port" or ":port", which is all addresses.
struct Address {
  std::string host{};  ///< empty: all
  std::uint16_t port = 0;
};
/// Errors: bad_option (names the text).
[[nodiscard]] Result<Address> parse_address(std::string_view text);

/// "http://host:port" or "https://host"; without a path.
struct UpstreamAddress {
  std::string host{};
  std::string port{};
  bool is_tls = false;
};
/// Errors: bad_option (names the text).
[[nodiscard]] Result<UpstreamAddress> parse_upstream(std::string_view text);

/// A node, or the nodes of a group, used as the store.
struct NodeSettings {
  std::vector<std::string> addresses{};  ///< "host:port"; empty: the store is in this process
  std::string user{};                    ///< empty: the default one
  std::string password{};                ///< empty: no login
  std::string password_file{};           ///< its source, read again when it is refused
  bool is_tls = false;
  std::string ca{};    ///< PEM file; empty: the system's authorities
  std::string cert{};  ///< PEM files, for nodes that ask for one; both or none
  std::string key{};
  Millis timeout{2'000};      ///< for an answer, from when the command was sent
  Millis patience{5'000};     ///< how long a claim is retried
  std::size_t queue = 4'096;  ///< commands of a thread that wait for an answer
  [[nodiscard]] bool is_used() const noexcept { return !addresses.empty(); }
};

struct Settings {
  std::string listen{};
  std::string upstream{};
  std::string upstream_ca{};    ///< PEM file; empty: the system's authorities
  bool upstream_verify = true;  ///< of https: certificate and name
  std::string tls_cert{};       ///< PEM files; both or none: plain HTTP
  std::string tls_key{};
  std::string admin{};                     ///< address of metrics, health and resolve; empty: none
  std::vector<std::string> admin_hosts{};  ///< names in Host that are answered without a token
  std::string admin_token{};  ///< the token of operators there; empty: loopback addresses only

  std::string store{};  ///< directory; empty: in memory
  NodeSettings node{};  ///< instead of it
  Durability durability = Durability::synced;
  std::size_t memory_bytes = std::size_t{256} << 20;

  std::string access_log{};  ///< file, "-" is standard output; empty: none
  unsigned threads = 0;      ///< 0: one for each processor
  std::size_t connections = 1'024;
  std::size_t upstream_connections = 64;  ///< in use at once
  std::size_t upstream_queue = 1'024;     ///< requests that wait for one
  std::size_t head_bytes = std::size_t{32} * 1024;
  std::size_t body_memory = std::size_t{256} << 20;  ///< see gateway/guard/memory.hpp
  Millis head_timeout{10'000};       ///< from the first byte of a request to the end of its head
  Millis body_timeout{30'000};       ///< without progress while a body is read or written
  Millis transfer_timeout{300'000};  ///< for the whole of a body that is held in memory
  Millis idle_timeout{60'000};       ///< before the next request of a connection
  Millis connect_timeout{3'000};
  Millis queue_timeout{5'000};
  Millis upstream_idle{4'000};  ///< an unused connection is not used again after that
  Millis drain_timeout{30'000};
  bool trust_forwarded = false;  ///< X-Forwarded-* of clients are passed on
  bool preserve_host = true;     ///< the upstream sees the client's Host
  /// For requests without a route: pass or refuse. Required if any route guards; else pass.
  std::optional<Guard> default_guard{};

  std::vector<Route> routes{};
  std::vector<SigningKey> keys{};
};

/// The first line of `path`. Errors: bad_option (names the file).
[[nodiscard]] Result<std::string> read_password(const std::string& path);

}  // namespace semel::gateway
