// AUTH and ACL as commands: words in, replies out. What they need of a connection and of the
// machine comes in as arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/acl/acl.hpp"
#include "net/resp/resp_writer.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::net {

/// A request as the command table sees it. The views are into the words asked about.
struct AclLookup {
  enum class Found : std::uint8_t { yes, no, wrong_arity };
  Found found = Found::no;
  std::uint32_t command = 0;  ///< but for `no`
  std::string_view argument{};
  std::vector<AclKey> keys{};
  std::vector<AclChannel> channels{};

  [[nodiscard]] AclRequest request() const noexcept {
    return {.command = command, .argument = argument, .keys = keys, .channels = channels};
  }
};

/// What only the node around the commands can do.
class AclHost {
 public:
  virtual ~AclHost() = default;

  /// Of DRYRUN; words[0] is the name.
  [[nodiscard]] virtual AclLookup look_up(std::span<const std::string_view> words) = 0;
  /// A line about the client, as CLIENT INFO has it, for the log of denials.
  [[nodiscard]] virtual std::string client_info() = 0;
  /// Of the aclfile; empty: the node has none, and the next two are never called.
  [[nodiscard]] virtual std::string file_name() = 0;
  /// The detail of an error says why it cannot be read.
  [[nodiscard]] virtual Result<std::string> read_file() = 0;
  /// Atomic, also if the machine stops during the call: the file has all of `text` or is unchanged.
  /// False: it could not be written.
  [[nodiscard]] virtual bool write_file(std::string_view text) = 0;
  /// A login as `user` was refused.
  virtual void login_denied(std::string_view user) { static_cast<void>(user); }
};

struct AclCall {
  Acl& acl;
  AclSession& session;
  std::span<const std::string_view> args;  ///< of the request; args[0] is the name
  RespWriter& reply;
  AclHost& host;
  Timestamp now;
  DenialContext context = DenialContext::toplevel;
};

/// ACL's subcommands, by their names. The number of words has been checked. One reply is written. A
/// user is shown as redis-server 7.0 does it.
namespace acl_subcommands {
void cat(AclCall& call);
void deluser(AclCall& call);
void dryrun(AclCall& call);
void genpass(AclCall& call);
void getuser(AclCall& call);
void help(AclCall& call);
void list(AclCall& call);
void load(AclCall& call);
void log(AclCall& call);
void save(AclCall& call);
void setuser(AclCall& call);
void users(AclCall& call);
void whoami(AclCall& call);
}  // namespace acl_subcommands

/// AUTH password, AUTH name password. One reply is written.
void auth_command(AclCall& call);

/// Of AUTH and HELLO: logs the session in, or writes the error and an entry of the log. True: it
/// is logged in, and nothing was written.
[[nodiscard]] bool log_in_or_refuse(AclCall& call, std::string_view name,
                                    std::string_view password);

/// After a verdict that is not ok: an entry of the log.
void log_denial(AclCall& call, const Verdict& verdict, const AclRequest& request);
/// The same, and the error reply.
void refuse(AclCall& call, const Verdict& verdict, const AclRequest& request);

}  // namespace semel::net
