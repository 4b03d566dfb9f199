// What a route of the gateway does with its requests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "semel/claim.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::gateway {

namespace limits {
inline constexpr std::size_t routes_max = 1'024;
inline constexpr std::size_t key_bytes_max = 255;                       ///< of an Idempotency-Key
inline constexpr std::size_t header_bytes_max = std::size_t{32} << 10;  ///< of all of a request
inline constexpr std::size_t body_bytes_max = std::size_t{64} << 20;    ///< that a route may allow
inline constexpr std::size_t reply_bytes_max = std::size_t{8} << 20;    ///< that a route may keep
inline constexpr Millis timeout_max{3'600'000};
}  // namespace limits

struct RoutePolicy {
  /// Whose keys are which: two clients with one key must not get each other's replies.
  enum class Scope { credential, header, none };
  /// What is believed when the upstream may have done its work.
  enum class Unknown { in_doubt, release };
  enum class ServerError { record, in_doubt, release };

  std::string name{};                                 ///< of the claims' namespace
  std::string path{"/"};                              ///< the beginning of the request's path
  std::vector<std::string> methods{"POST", "PATCH"};  ///< others pass through unguarded
  bool required = true;                               ///< false: without a key it passes through
  Scope scope = Scope::credential;
  std::string scope_header{};
  // Of the fingerprint: the method and the path always.
  bool uses_query = true;
  bool uses_body = true;
  std::vector<std::string> uses_headers{};
  Millis wait{0};           ///< of a duplicate for the one that runs; 0: 409 at once
  Millis keep{86'400'000};  ///< the reply, from its end
  Millis timeout{30'000};   ///< of the upstream, for all of its reply
  Unknown on_unknown = Unknown::in_doubt;
  ServerError on_server_error = ServerError::record;
  std::size_t request_bytes_max = std::size_t{1} << 20;  ///< of a guarded body; beyond: 413
  std::size_t reply_bytes_max = std::size_t{1} << 20;    ///< of a body that is kept

  [[nodiscard]] bool guards(std::string_view method) const;
  /// Of the namespace. The lease is longer than an upstream may take, so that it never ends under a
  /// request that runs; an owner that died leaves what `on_unknown` says.
  [[nodiscard]] Policy claim_policy() const;
};

/// The routes of a gateway, the most exact path first.
class Routes {
 public:
  /// Errors: bad_option: names the route, the value and its limit.
  [[nodiscard]] static Result<Routes> make(std::vector<RoutePolicy> policies);
  /// Null: no route has a path that begins so, and the request passes through.
  [[nodiscard]] const RoutePolicy* find(std::string_view path) const;
  [[nodiscard]] const std::vector<RoutePolicy>& all() const noexcept { return policies_; }

 private:
  std::vector<RoutePolicy> policies_;
};

/// Of a file in TOML, see docs/gateway.md. `name`: of the file, for errors. Errors: bad_option,
/// with line and column.
[[nodiscard]] Result<Routes> read_routes(std::string_view text, const std::string& name);

}  // namespace semel::gateway
