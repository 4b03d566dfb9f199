// What a gateway serves to operators, on an AdminServer: the common routes, and
//
//   POST /resolve?route=NAME&key=KEY&as=done|released
//        ends a doubt; with the token, or else the header "Semel-Admin: yes", which a page of
//        another origin cannot send
//
// With a token other machines may reach the port, and all paths but health need the token.
// Without one it is on loopback only, and all paths but health need a Host that names this machine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/config/settings.hpp"
#include "gateway/guard/admin_token.hpp"
#include "gateway/proxy/access_log.hpp"
#include "net/admin/admin_server.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

/// Called on the thread of the port, one at a time.
struct AdminCalls {
  /// Called for each POST, and for each request refused for its token. The time is not set.
  std::function<void(AuditLine)> audit{};
  std::function<std::string()> metrics{};
  std::function<Status()> ready{};
  std::function<Status(std::string_view route, std::string_view key, bool is_done)> resolve{};
};

/// Of settings that have been checked. `token`: the one that they have.
[[nodiscard]] Result<net::AdminOptions> admin_options(const Settings& settings,
                                                      std::optional<AdminToken> token);
/// `needs_header`: /resolve needs Semel-Admin, as there is no token.
[[nodiscard]] net::AdminSite admin_site(AdminCalls calls, bool needs_header);

}  // namespace semel::gateway
