// What an admin port serves: a table of routes, and the requests and responses of their handlers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/result.hpp"

namespace semel::net {

namespace admin_limits {

inline constexpr std::size_t header_bytes_max = 8 * 1024;
/// Connections open at a time. One that has no whole request, or does not read its response, gives
/// way to a new one; see base/giving_way.hpp.
inline constexpr std::size_t connections_max = 16;
inline constexpr std::size_t addresses_max = 16;
inline constexpr std::size_t hosts_max = 16;
inline constexpr std::size_t host_bytes_max = 253;

}  // namespace admin_limits

struct AdminRequest {
  std::string method{"GET"};
  std::string path{};   ///< the target without its query
  std::string query{};  ///< without '?'
  std::string peer{};   ///< "127.0.0.1:4711", "[::1]:4711"
  std::string peer_address{};
  bool peer_is_local = false;
  std::uint16_t local_port = 0;  ///< of this connection
  std::string host{};
  std::string origin{};
  std::string cookie{};
  std::string content_type{};
  std::string csrf_token{};  ///< X-Semel-Csrf
  std::string fetch_site{};  ///< Sec-Fetch-Site
  std::string authorization{};
  std::string semel_admin{};  ///< Semel-Admin
  /// One of these headers that came more than once, so that two readers may see two values.
  std::string_view repeated_header{};
  bool is_admitted = false;  ///< the port's guard has admitted it
  std::string body{};

  [[nodiscard]] bool is_post() const noexcept { return method == "POST"; }
  /// HEAD is answered as GET, without the body.
  [[nodiscard]] bool is_read() const noexcept { return method == "GET" || method == "HEAD"; }
};

struct AdminResponse {
  unsigned status = 200;
  std::string content_type{"text/plain; charset=utf-8"};
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

/// To be called once, at once or later, on the thread of the server. Without effect when the client
/// is gone.
using AdminRespond = std::function<void(AdminResponse)>;

struct AdminRoute {
  enum class Methods : std::uint8_t { read, post, read_and_post };  ///< read: GET and HEAD
  enum class Access : std::uint8_t {
    open,     ///< to every client
    guarded,  ///< to requests that the port's guard admits
    own,      ///< the handler decides
  };

  std::string path{};
  bool has_below = false;  ///< paths below it, too: "/console/api"
  Methods methods = Methods::read;
  Access access = Access::guarded;
  std::size_t body_bytes_max = 0;  ///< of a POST; 0: it has none
  /// Called on the thread of the server, one at a time. What it throws ends the connection.
  std::function<void(AdminRequest, AdminRespond)> handle{};

  [[nodiscard]] bool allows(const AdminRequest& request) const noexcept;
  [[nodiscard]] bool serves(std::string_view path) const noexcept;
};

/// All of it is called on the thread of the server, one at a time.
struct AdminSite {
  std::vector<AdminRoute> routes{};
  /// Called for each request that gets no handler, with the status of its response; may be empty.
  std::function<void(const AdminRequest&, unsigned status)> refused{};
  std::function<void()> tick{};  ///< about once a second; may be empty
};

/// The routes of every admin port: /livez and /healthz, /readyz, /metrics. The detail of an error
/// of `ready` is the text of the response, for requests that the guard admits.
[[nodiscard]] std::vector<AdminRoute> common_routes(std::function<std::string()> metrics,
                                                    std::function<Status()> ready);

[[nodiscard]] AdminResponse text_response(unsigned status, std::string text);

}  // namespace semel::net
