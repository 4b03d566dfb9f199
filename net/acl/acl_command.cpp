#include "net/acl/acl_command.hpp"

#include <algorithm>

#include "net/acl/acl_limits.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

constexpr std::string_view default_name = "default";
constexpr std::size_t shown_bytes_max = 128;  // of an unknown subcommand

void fail_syntax(AclCall& call) {
  std::string text = "ERR unknown subcommand or wrong number of arguments for '";
  text += up_to_nul(call.args[1]).substr(0, shown_bytes_max);
  call.reply.error(text + "'. Try ACL HELP.");
}

std::string in_quotes(std::string_view before, std::string_view word, std::string_view behind) {
  std::string text{before};
  return text.append("'").append(up_to_nul(word)).append("'").append(behind);
}

void write_rights(RespWriter& reply, const Rights& rights) {
  reply.bulk("commands"), reply.bulk(rights.commands_text());
  reply.bulk("keys"), reply.bulk(rights.keys_text());
  reply.bulk("channels"), reply.bulk(rights.channels_text());
}

void write_names(RespWriter& reply, std::span<const std::string_view> names) {
  reply.array(names.size());
  for (const std::string_view name : names) reply.bulk(name);
}

void write_entry(AclCall& call, const DenialLog::Entry& entry) {
  constexpr std::size_t fields = 7;
  RespWriter& reply = call.reply;
  reply.map(fields);
  reply.bulk("count"), reply.integer(static_cast<std::int64_t>(entry.count));
  reply.bulk("reason"), reply.bulk(name_of(entry.reason));
  reply.bulk("context"), reply.bulk(name_of(entry.context));
  reply.bulk("object"), reply.bulk(entry.object);
  reply.bulk("username"), reply.bulk(entry.username);
  const Millis age = call.now - entry.at;
  reply.bulk("age-seconds"), reply.number(static_cast<double>(age.count()) / 1'000);
  reply.bulk("client-info"), reply.bulk(entry.client);
}

void fail_without_file(AclCall& call) {
  call.reply.error(
      "ERR This Redis instance is not configured to use an ACL file. You may want to specify users "
      "via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis "
      "configuration file set) in order to store users in the Redis configuration.");
}

}  // namespace

namespace acl_subcommands {

void cat(AclCall& call) {
  if (call.args.size() > 3) return fail_syntax(call);
  if (call.args.size() == 2) return write_names(call.reply, acl_categories);
  const auto category = acl_category_of(call.args[2]);
  if (!category) return call.reply.error(in_quotes("ERR Unknown category ", call.args[2], ""));
  write_names(call.reply, call.acl.commands_in(*category));
}

void deluser(AclCall& call) {
  const Result<std::size_t> deleted = call.acl.delete_users(call.args.subspan(2));
  if (!deleted.ok()) return call.reply.error(deleted.error().detail);
  call.reply.integer(static_cast<std::int64_t>(*deleted));
}

void dryrun(AclCall& call) {
  const SharedUser user = call.acl.find(call.args[2]);
  if (user == nullptr) {
    return call.reply.error(in_quotes("ERR User ", call.args[2], " not found"));
  }
  const AclLookup asked = call.host.look_up(call.args.subspan(3));
  if (asked.found == AclLookup::Found::no) {
    return call.reply.error(in_quotes("ERR Command ", call.args[3], " not found"));
  }
  const AclCatalog& catalog = call.acl.catalog();
  if (asked.found == AclLookup::Found::wrong_arity) {
    return call.reply.error(in_quotes("ERR wrong number of arguments for ",
                                      catalog.name_of(asked.command), " command"));
  }
  const AclRequest request = asked.request();
  const Verdict verdict = user->check(request);
  if (verdict.ok()) return call.reply.ok();
  const std::string_view object = object_of(verdict, request, catalog);
  const std::string who = "This user has no permissions to ";
  if (verdict.denied == AclDenied::command) {
    return call.reply.bulk(in_quotes(who + "run the ", object, " command"));
  }
  const bool is_key = verdict.denied == AclDenied::key;
  call.reply.bulk(in_quotes(who + "access the ", object, is_key ? " key" : " channel"));
}

void genpass(AclCall& call) {
  constexpr std::int64_t bits_if_unset = 256;
  constexpr std::int64_t bits_of_digit = 4;
  if (call.args.size() > 3) return fail_syntax(call);
  const auto bits = call.args.size() == 3 ? integer_of(call.args[2]) : bits_if_unset;
  if (!bits) return call.reply.error("ERR value is not an integer or out of range");
  if (*bits <= 0 || *bits > acl_limits::password_bits_max) {
    return call.reply.error(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
        "number up to " +
        std::to_string(acl_limits::password_bits_max));
  }
  const auto digits = static_cast<std::size_t>((*bits + bits_of_digit - 1) / bits_of_digit);
  const auto password = random_hex(digits);
  if (!password) return call.reply.error("ERR The machine has no random numbers to give");
  call.reply.bulk(*password);
}

void getuser(AclCall& call) {
  const SharedUser user = call.acl.find(call.args[2]);
  if (user == nullptr) return call.reply.null();
  constexpr std::size_t fields = 6;
  constexpr std::size_t fields_of_selector = 3;
  call.reply.map(fields);
  const auto flags = user->flags();
  call.reply.bulk("flags"), call.reply.set(flags.size());
  for (const std::string_view flag : flags) call.reply.bulk(flag);
  call.reply.bulk("passwords"), call.reply.array(user->passwords().size());
  for (const PasswordHash& hash : user->passwords()) call.reply.bulk(hex_of(hash));
  write_rights(call.reply, user->rights());
  call.reply.bulk("selectors"), call.reply.array(user->selectors().size());
  for (const Rights& selector : user->selectors()) {
    call.reply.map(fields_of_selector);
    write_rights(call.reply, selector);
  }
}

void help(AclCall& call) {
  constexpr std::string_view lines[] = {
      "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
      "CAT [<category>]",
      "    The categories, or the commands of one.",
      "DELUSER <username> [<username> ...]",
      "    Removes users; their connections are closed.",
      "DRYRUN <username> <command> [<arg> ...]",
      "    Tells whether the user may run the command, which is not run.",
      "GENPASS [<bits>]",
      "    A random password of 256 bits, or of so many.",
      "GETUSER <username>",
      "    What a user is and may do.",
      "LIST",
      "    All users, as lines of an aclfile.",
      "LOAD",
      "    Reads the users anew from the aclfile.",
      "LOG [<count> | RESET]",
      "    What was refused lately, the newest first.",
      "SAVE",
      "    Writes the users to the aclfile.",
      "SETUSER <username> <attribute> [<attribute> ...]",
      "    Creates or changes a user.",
      "USERS",
      "    The names of all users.",
      "WHOAMI",
      "    The name of this connection's user.",
      "HELP",
      "    These lines.",
  };
  call.reply.array(std::size(lines));
  for (const std::string_view line : lines) call.reply.simple(line);
}

void list(AclCall& call) {
  const std::vector<std::string> lines = call.acl.list();
  call.reply.array(lines.size());
  for (const std::string& line : lines) call.reply.bulk(line);
}

void load(AclCall& call) {
  const std::string name = call.host.file_name();
  if (name.empty()) return fail_without_file(call);
  const Result<std::string> text = call.host.read_file();
  if (!text.ok()) {
    return call.reply.error(in_quotes("ERR Error loading ACLs, opening file ", name, ": ") +
                            text.error().detail);
  }
  const Status loaded = call.acl.load_file(*text, name);
  loaded ? call.reply.ok() : call.reply.error(loaded.error().detail);
}

void log(AclCall& call) {
  constexpr std::int64_t entries_if_unset = 10;
  if (call.args.size() > 3) return fail_syntax(call);
  if (call.args.size() == 3 && is_word(call.args[2], "reset")) {
    call.acl.log().clear();
    return call.reply.ok();
  }
  const auto count = call.args.size() == 3 ? integer_of(call.args[2]) : entries_if_unset;
  if (!count) return call.reply.error("ERR value is not an integer or out of range");
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(*count, 0));
  const std::vector<DenialLog::Entry> entries = call.acl.log().newest(wanted);
  call.reply.array(entries.size());
  for (const DenialLog::Entry& entry : entries) write_entry(call, entry);
}

void save(AclCall& call) {
  if (call.host.file_name().empty()) return fail_without_file(call);
  if (call.host.write_file(call.acl.file_text())) return call.reply.ok();
  call.reply.error(
      "ERR There was an error trying to save the ACLs. Please check the server logs for more "
      "information");
}

void setuser(AclCall& call) {
  const Status status = call.acl.set_user(call.args[2], call.args.subspan(3));
  status ? call.reply.ok() : call.reply.error(status.error().detail);
}

void users(AclCall& call) {
  const std::vector<SharedUser> all = call.acl.users();
  call.reply.array(all.size());
  for (const SharedUser& user : all) call.reply.bulk(user->name());
}

void whoami(AclCall& call) {
  call.reply.bulk(call.session.user().name());
}

}  // namespace acl_subcommands

void auth_command(AclCall& call) {
  if (call.args.size() < 2) {
    return call.reply.error("ERR wrong number of arguments for 'auth' command");
  }
  if (call.args.size() > 3) return call.reply.error("ERR syntax error");
  const bool is_named = call.args.size() == 3;
  if (!is_named && call.acl.find(default_name)->has_nopass()) {
    return call.reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  const std::string_view name = is_named ? call.args[1] : default_name;
  if (log_in_or_refuse(call, name, call.args.back())) call.reply.ok();
}

bool log_in_or_refuse(AclCall& call, std::string_view name, std::string_view password) {
  if (call.acl.log_in(call.session, name, password)) return true;
  const std::string client = call.host.client_info();
  call.acl.log().add({.reason = DenialReason::auth,
                      .context = call.context,
                      .object = call.args[0],
                      .username = name,
                      .client = client},
                     call.now);
  call.host.login_denied(name);
  call.reply.error("WRONGPASS invalid username-password pair or user is disabled.");
  return false;
}

void log_denial(AclCall& call, const Verdict& verdict, const AclRequest& request) {
  const AclCatalog& catalog = call.acl.catalog();
  DenialReason reason = DenialReason::command;
  if (verdict.denied == AclDenied::key) reason = DenialReason::key;
  if (verdict.denied == AclDenied::channel) reason = DenialReason::channel;
  const std::string client = call.host.client_info();
  call.acl.log().add({.reason = reason,
                      .context = call.context,
                      .object = object_of(verdict, request, catalog),
                      .username = call.session.user().name(),
                      .client = client},
                     call.now);
}

void refuse(AclCall& call, const Verdict& verdict, const AclRequest& request) {
  log_denial(call, verdict, request);
  call.reply.error(noperm_text(verdict, request, call.acl.catalog()));
}

}  // namespace semel::net
