#include "net/commands/access.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/file_text.hpp"
#include "net/acl/acl.hpp"
#include "net/commands/handlers.hpp"
#include "net/commands/node_hooks.hpp"
#include "net/events/pubsub.hpp"
#include "net/resp/reply_error.hpp"
#include "net/session/clients.hpp"
#include "net/session/node_role.hpp"
#include "net/settings/settings.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {
namespace {

/// What a call would touch. Its views are into the words, and those of claims into `claims`.
struct Touched {
  std::string_view patterns_word;  ///< of UsedKeys
  std::vector<std::string> claims;
  std::vector<AclKey> keys;
  std::vector<AclChannel> channels;
};

/// As in redis-server: a key whose value is not accessed, as in EXISTS, needs a matching pattern,
/// but no permission to read.
constexpr KeyAccess access_of(std::uint16_t flags) noexcept {
  const bool reads = (flags & key_access) != 0;
  const bool writes = (flags & (key_update | key_insert | key_delete)) != 0;
  return reads ? (writes ? KeyAccess::both : KeyAccess::read)
               : (writes ? KeyAccess::write : KeyAccess::none);
}

Touched touched_by(const CommandRow& row, std::span<const std::string_view> words) {
  UsedKeys used = used_keys(row.keys, words);
  Touched touched;
  touched.patterns_word = used.patterns_word;
  touched.claims = std::move(used.composed);  // the strings stay where they are
  for (const UsedKey& key : used.keys) touched.keys.push_back({key.name, access_of(key.flags)});
  for (const UsedKey& channel : used.channels) {
    touched.channels.push_back({channel.name, (channel.flags & key_pattern) != 0});
  }
  return touched;
}

bool may_receive_all(const User& user, const Subscriber& subscriber) {
  for (const Topic topic : {Topic::channel, Topic::pattern, Topic::shard}) {
    for (const std::string_view name : subscriber.of(topic)) {
      if (!user.may_hear({name, topic == Topic::pattern})) return false;
    }
  }
  return true;
}

bool may_monitor(const User& user) {
  return user.check({.command = static_cast<std::uint32_t>(index_of(monitor_row()))}).ok();
}

AclRequest request_of(const CommandRow& row, std::span<const std::string_view> words,
                      const Touched& touched) {
  // The number of a command in the catalog is its index in the table, from which that was made.
  return {.command = static_cast<std::uint32_t>(index_of(row)),
          .argument = words.size() > 1 ? words[1] : std::string_view{},
          .keys = touched.keys,
          .channels = touched.channels};
}

}  // namespace

std::vector<AclCommand> acl_commands() {
  std::vector<AclCommand> commands;
  for (const CommandRow& row : all_commands()) {
    commands.push_back({row.name, row.categories, row.is(flag_no_auth)});
  }
  return commands;
}

namespace {

constexpr const char* must_log_in = "NOAUTH Authentication required.";

DenialContext context_of(const ClientState& client) noexcept {
  if (client.context->is_script()) return DenialContext::lua;
  const bool in_transaction = client.context->is_part() || client.transaction != nullptr;
  return in_transaction ? DenialContext::multi : DenialContext::toplevel;
}

struct Judgement {
  AclDenied denied = AclDenied::ok;
  std::string line{};  ///< the reply of a command that is denied before it is queued or run

  [[nodiscard]] bool ok() const noexcept { return denied == AclDenied::ok; }
};

Judgement denial(Call& call, const Verdict& verdict, const AclRequest& request) {
  NodeAclHost host{call};
  AclCall about = acl_call(call, host);
  log_denial(about, verdict, request);
  return {verdict.denied, noperm_text(verdict, request, call.services.acl.catalog())};
}

/// Whether a command that removes keys would remove claims: one of its keys is a claim now, or it
/// names no keys and there are namespaces.
bool removes_claims(Call& call, const Touched& touched) {
  if (touched.keys.empty()) return !call.engine.namespaces().empty();
  return std::any_of(touched.keys.begin(), touched.keys.end(), [&](const AclKey& key) {
    StoreOutcome seen;
    call.engine.host().apply({.verb = Verb::exists, .db = call.client.db, .key = key.name}, seen);
    return seen.found && seen.kind == Kind::claim;
  });
}

/// Whether the user's rights, or those of one selector, allow all of the request and that every key
/// is read.
bool may_read_all_keys(const User& user, const AclRequest& request) {
  const auto may = [&](const Rights& rights) {
    return rights.reads_all_keys() && rights.check(request).ok();
  };
  return user.is_unlimited() || may(user.rights()) || std::ranges::any_of(user.selectors(), may);
}

/// What the user's rights say to a call, and an entry of the log if it is no.
Judgement judge(Call& call) {
  const User& user = call.client.user.user();
  if (user.is_unlimited()) [[likely]]
    return {};
  const Touched touched = touched_by(*call.row, call.args);
  const AclRequest request = request_of(*call.row, call.args, touched);
  const Verdict verdict = user.check(request);
  if (!verdict.ok()) return denial(call, verdict, request);
  // In a group the handler runs without the user's rights; elsewhere the handler checks this, after
  // its words.
  const bool is_of_group = call.services.group != nullptr && !touched.patterns_word.empty();
  if (is_of_group && !may_read_all_keys(user, request)) {
    return {AclDenied::key, patterns_text(touched.patterns_word)};
  }
  if (!call.row->has(fact_removes) || !removes_claims(call, touched)) return {};
  const AclRequest forget{.command = static_cast<std::uint32_t>(index_of(forget_row()))};
  const Verdict may_forget = user.check(forget);
  return may_forget.ok() ? Judgement{} : denial(call, may_forget, forget);
}

/// The same after a check for changes of the user. A deleted user has no rights.
Judgement judge_again(Call& call) {
  if (call.services.acl.refresh(call.client.user) != AclChange::gone) return judge(call);
  call.client.closes = true;
  return {AclDenied::command, must_log_in};
}

}  // namespace

Status may_run(Call& call) {
  AclSession& session = call.client.user;
  if (call.services.acl.refresh(session) == AclChange::gone) {
    call.client.closes = true;
    return reply_error(must_log_in);
  }
  if (session.needs_auth()) {
    if (call.row->is(flag_no_auth)) return Done{};
    return reply_error(must_log_in);
  }
  if (session.user().is_unlimited()) [[likely]]
    return Done{};
  Judgement judged = judge(call);
  if (judged.ok()) [[likely]]
    return Done{};
  return reply_error(std::move(judged.line));
}

Status may_run_queued(Call& call) {
  const Judgement judged = judge_again(call);
  if (judged.ok()) return Done{};
  std::string line =
      "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
      "call. This command is no longer allowed for the following reason: ";
  switch (judged.denied) {
    case AclDenied::key:
      line += "no permission to touch the specified keys";
      break;
    case AclDenied::channel:
      line += "no permission to access one of the channels used as arguments to the command";
      break;
    default:
      line += "no permission to execute the command or subcommand";
  }
  return reply_error(std::move(line));
}

Status may_run_in_script(Call& call) {
  switch (judge_again(call).denied) {
    case AclDenied::ok:
      return Done{};
    case AclDenied::key:
      return reply_error(
          "ERR The user executing the script can't access at least one of the keys mentioned in "
          "the command arguments");
    case AclDenied::channel:
      return reply_error(
          "ERR The user executing the script can't publish to the channel mentioned in the "
          "command");
    default:
      return reply_error("ERR The user executing the script can't run this command or subcommand");
  }
}

void review_wait(Services& services, ClientState& client) {
  if (client.waits_for == nullptr) return;
  if (services.acl.generation() == client.waits_since) return;
  client.waits_since = services.acl.generation();
  const std::vector<std::string>& kept = client.waits_for->words;
  const std::vector<std::string_view> words{kept.begin(), kept.end()};
  std::string unused;
  RespWriter discarded{unused, client.dialect};
  Call call{services, services.engine, client, words, discarded, client.waits_for->row};
  const Judgement judged = judge_again(call);
  if (judged.ok()) return;
  std::string reply;
  RespWriter{reply, client.dialect}.error(judged.line);
  // If the claim was granted before this, it is released when the unread reply is dropped.
  if (!client.handle->end_wait(reply)) client.handle->kill();
}

bool may_still_hear(const ClientState& client) {
  const User& user = client.user.user();
  const Subscriber* const subscriber = client.subscriber.get();
  if (subscriber != nullptr && !may_receive_all(user, *subscriber)) return false;
  return !client.monitors || may_monitor(user);
}

std::string patterns_text(std::string_view option) {
  return "ERR " + std::string{option} +
         " option of SORT denied due to insufficient ACL permissions.";
}

bool may_read_all_keys(const Call& call) {
  const User& user = call.client.user.user();
  if (user.is_unlimited()) return true;
  const Touched touched = touched_by(*call.row, call.args);
  return may_read_all_keys(user, request_of(*call.row, call.args, touched));
}

std::optional<bool> could_run(const Call& call) {
  const CommandRow* row = find_command(call.args[0]);
  if (row != nullptr && is_container(*row) && call.args.size() > 1) {
    row = find_subcommand(*row, call.args[1]);
  }
  if (row == nullptr) return std::nullopt;
  const Touched touched = touched_by(*row, call.args);
  return call.client.user.user().check(request_of(*row, call.args, touched)).ok();
}

// --- the role of the node ----------------------------------------------------------------------

std::string_view refusal_of_write(const Call& call) {
  if (call.client.is_master || !call.row->is(flag_write)) return {};
  // A full sync replaces the databases in which claims are.
  if (call.row->name.starts_with("semel.")) {
    return "READONLY a node that follows another one has no claims";
  }
  if (!call.services.settings.boolean(Setting::replica_read_only)) return {};
  return read_only_text;
}

bool lacks_master(const Call& call) {
  const NodeRole& role = call.services.role;
  return role.follows() && !call.client.is_master && !role.is_linked() &&
         !call.services.settings.boolean(Setting::replica_serve_stale_data);
}

std::string_view refusal_by_role(const Call& call) {
  if (call.client.is_master) return {};
  if (const std::string_view reason = refusal_of_write(call); !reason.empty()) return reason;
  if (call.row->has(fact_executes) && call.client.transaction != nullptr) {
    for (const QueuedCommand& queued : call.client.transaction->commands) {
      const Call inner{call.services, call.engine, call.client, call.args, call.reply, queued.row};
      const std::string_view reason = refusal_of_write(inner);
      if (!reason.empty()) return reason;
    }
  }
  // Operators get through: only they can end either state.
  if (call.row->is(flag_admin)) return {};
  if (!call.row->is(flag_stale) && lacks_master(call)) return no_master_text;
  if (call.services.role.state() == NodeRole::State::loads && !call.row->is(flag_loading)) {
    return "LOADING Redis is loading the dataset in memory";
  }
  return {};
}

// --- ACL and AUTH ------------------------------------------------------------------------------

AclLookup NodeAclHost::look_up(std::span<const std::string_view> words) {
  AclLookup found;
  const CommandRow* row = find_command(words[0]);
  if (row != nullptr && is_container(*row) && words.size() > 1) {
    const CommandRow* const sub = find_subcommand(*row, words[1]);
    row = sub != nullptr ? sub : row;
  }
  if (row == nullptr) return found;
  found.found = row->takes(words.size()) ? AclLookup::Found::yes : AclLookup::Found::wrong_arity;
  found.command = static_cast<std::uint32_t>(index_of(*row));
  if (words.size() > 1) found.argument = words[1];
  if (found.found == AclLookup::Found::wrong_arity) return found;
  Touched touched = touched_by(*row, words);
  claims_ = std::move(touched.claims);  // the strings stay where they are
  found.keys = std::move(touched.keys);
  found.channels = std::move(touched.channels);
  return found;
}

std::string NodeAclHost::client_info() {
  return describe(call_.client, call_.engine.clock().now());
}
std::string NodeAclHost::file_name() {
  return call_.services.settings.text(Setting::aclfile);
}

Result<std::string> NodeAclHost::read_file() {
  const std::string name = file_name();
  std::optional<std::string> text = base::read_file(name);
  if (text) return *std::move(text);
  return Error{ErrorCode::bad_option, "Error loading ACLs, opening file '" + name + "'"};
}

bool NodeAclHost::write_file(std::string_view text) {
  return call_.services.hooks.replace_file && call_.services.hooks.replace_file(file_name(), text);
}

void NodeAclHost::login_denied(std::string_view user) {
  const auto& hook = call_.services.hooks.login_denied;
  if (hook) hook(user, call_.client.handle->origin.address);
}

AclCall acl_call(Call& call, AclHost& host) {
  return {.acl = call.services.acl,
          .session = call.client.user,
          .args = call.args,
          .reply = call.reply,
          .host = host,
          .now = call.engine.now(),
          .context = context_of(call.client)};
}

void note_user(ClientState& client) {
  const std::string& name = client.user.user().name();
  client.handle->change_names([&](ClientHandle::Names& names) { names.user = name; });
}

void note_login(Call& call) {
  note_user(call.client);
  // A deletion of the user before this line has not found this connection.
  if (call.services.acl.refresh(call.client.user) == AclChange::gone) call.client.closes = true;
}

namespace {

/// Called after a change of users, before its reply: events after it do not reach clients that lost
/// the right to them. All other rights, and those of the client of `call` itself, are checked soon
/// after by the clients' own threads (NodeControl::users_changed).
void review_others(Call& call) {
  const Acl& acl = call.services.acl;
  const auto may_stay = [&](const ClientHandle& handle, auto&& check) {
    if (&handle == call.client.handle.get()) return true;
    const SharedUser user = acl.find(handle.names().user);
    return user != nullptr && check(*user);
  };
  for (const auto& handle : call.services.clients.all()) {
    // mo: relaxed: a client that begins to monitor after the load is judged by its new rights.
    const bool monitors = handle->shown.monitors.load(std::memory_order_relaxed);
    const bool stays =
        may_stay(*handle, [&](const User& user) { return !monitors || may_monitor(user); });
    if (!stays) handle->kill();
  }
  call.services.pubsub.close_unless([&](const Subscriber& subscriber) {
    return may_stay(*subscriber.handle,
                    [&](const User& user) { return may_receive_all(user, subscriber); });
  });
}

void run_acl(Call& call, void (*run)(AclCall&)) {
  NodeAclHost host{call};
  AclCall about = acl_call(call, host);
  const std::uint64_t before = call.services.acl.generation();
  run(about);
  if (call.services.acl.generation() == before) return;
  review_others(call);
  call.services.control.users_changed();
  // A user that has deleted itself gets this reply; then the connection is closed.
  if (call.services.acl.refresh(call.client.user) == AclChange::gone) call.client.closes = true;
}

}  // namespace

namespace handlers {

void acl_cat(Call& call) {
  run_acl(call, acl_subcommands::cat);
}
void acl_deluser(Call& call) {
  run_acl(call, acl_subcommands::deluser);
}
void acl_dryrun(Call& call) {
  run_acl(call, acl_subcommands::dryrun);
}
void acl_genpass(Call& call) {
  run_acl(call, acl_subcommands::genpass);
}
void acl_getuser(Call& call) {
  run_acl(call, acl_subcommands::getuser);
}
void acl_help(Call& call) {
  run_acl(call, acl_subcommands::help);
}
void acl_list(Call& call) {
  run_acl(call, acl_subcommands::list);
}
void acl_load(Call& call) {
  run_acl(call, acl_subcommands::load);
}
void acl_log(Call& call) {
  run_acl(call, acl_subcommands::log);
}
void acl_save(Call& call) {
  run_acl(call, acl_subcommands::save);
}
void acl_setuser(Call& call) {
  run_acl(call, acl_subcommands::setuser);
}
void acl_users(Call& call) {
  run_acl(call, acl_subcommands::users);
}
void acl_whoami(Call& call) {
  run_acl(call, acl_subcommands::whoami);
}

void auth(Call& call) {
  NodeAclHost host{call};
  AclCall about = acl_call(call, host);
  auth_command(about);
  note_login(call);
}

}  // namespace handlers
}  // namespace semel::net
