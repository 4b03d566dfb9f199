// Whether a client may: the users of net/acl, asked about one call; and ACL and AUTH in the table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/acl/acl_command.hpp"
#include "net/acl/catalog.hpp"
#include "net/command.hpp"

namespace semel::net {

/// The table as the catalog of the users' rights: numbers are places in all_commands().
[[nodiscard]] std::vector<AclCommand> acl_commands();

/// False: the reply says that the client must log in, or what it has no permission for; the latter
/// stands in the log. Of a client whose user has all rights this is a load and two branches.
[[nodiscard]] bool may_run(Call& call);

/// Of a command that a script asks for: why the user may not, in redis-server's words; empty: it
/// may. A refusal stands in the log.
[[nodiscard]] std::string_view denial_in_script(Call& call);
/// Whether the user may run the words of `call`, whose row is looked up. None: there is no such
/// command.
[[nodiscard]] std::optional<bool> could_run(const Call& call);

/// What ACL and AUTH need of the node around them.
class NodeAclHost final : public AclHost {
 public:
  explicit NodeAclHost(Call& call) noexcept : call_(call) {}
  [[nodiscard]] AclLookup look_up(std::span<const std::string_view> words) override;
  [[nodiscard]] std::string client_info() override;
  [[nodiscard]] std::string file_name() override;
  [[nodiscard]] Read read_file() override;
  [[nodiscard]] bool write_file(std::string_view text) override;
  void login_denied(std::string_view user) override;

 private:
  Call& call_;
  std::vector<std::string> claims_;  // what a lookup's keys may point into
};

[[nodiscard]] AclCall acl_call(Call& call, AclHost& host);
/// CLIENT LIST shows from now on who the client has logged in as.
void note_user(ClientState& client);

}  // namespace semel::net
