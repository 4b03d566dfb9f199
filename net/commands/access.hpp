// Whether a client may: the users of net/acl, asked about one call; and ACL and AUTH in the table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/acl/acl_command.hpp"
#include "net/acl/catalog.hpp"
#include "net/commands/command.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// The table as the catalog of the users' rights: numbers are places in all_commands().
[[nodiscard]] std::vector<AclCommand> acl_commands();

/// An error says that the client must log in, or what it has no permission for; the latter stands
/// in the log. Its detail is the whole reply. Of a client whose user has all rights this is a load
/// and two branches.
[[nodiscard]] Status may_run(Call& call);

/// The same of a command that EXEC is about to run: rights may have changed since it was queued,
/// and an earlier command of the transaction may have been AUTH.
[[nodiscard]] Status may_run_queued(Call& call);
/// The same of a command that a script asks for, in redis-server's words.
[[nodiscard]] Status may_run_in_script(Call& call);
/// The rights may have changed of a client whose command waits: if it may not have the answer any
/// more the wait ends with an error, or the connection if it is too late for that.
void review_wait(Services& services, ClientState& client);
/// The same of subscriptions and MONITOR. False: it may not receive from some of them any more.
[[nodiscard]] bool may_still_hear(const ClientState& client);
/// Whether the user may read every key by this command, whatever the keys that its words name are.
[[nodiscard]] bool may_read_all_keys(const Call& call);
/// The error for a user without the right to read all keys, whose command names keys by patterns.
[[nodiscard]] std::string patterns_text(std::string_view option);
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
  [[nodiscard]] Result<std::string> read_file() override;
  [[nodiscard]] bool write_file(std::string_view text) override;
  void login_denied(std::string_view user) override;

 private:
  Call& call_;
  std::vector<std::string> claims_;  // what a lookup's keys may point into
};

[[nodiscard]] AclCall acl_call(Call& call, AclHost& host);

/// Why a client may not run the command of `call.row` on a node that follows another server; empty:
/// it may. To be asked while NodeRole::follows().
[[nodiscard]] std::string_view refusal_by_role(const Call& call);
/// The same of a command that a script calls.
[[nodiscard]] std::string_view refusal_of_write(const Call& call);
/// Whether the node has lost the server that it follows, and a setting says not to answer then.
[[nodiscard]] bool lacks_master(const Call& call);
inline constexpr std::string_view no_master_text =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
inline constexpr std::string_view read_only_text =
    "READONLY You can't write against a read only replica.";

/// From now on CLIENT LIST shows the user that the client has logged in as.
void note_user(ClientState& client);
/// The same of one that has just logged in; it closes if its user is gone already.
void note_login(Call& call);

}  // namespace semel::net
