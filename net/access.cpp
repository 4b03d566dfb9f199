#include "net/access.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <vector>

#include "net/claim_words.hpp"
#include "net/command_docs.hpp"
#include "net/handlers.hpp"
#include "net/node.hpp"

namespace semel::net {
namespace {

/// Commands whose keys are used otherwise than their flags say: read only, written only.
struct Use {
  std::string_view name;
  KeyAccess first;
  KeyAccess others;
};

// Redis' key specifications: what looks only beside the value needs no permission to read it, and
// what answers with a part of the old value needs both.
constexpr std::array uses = {
    Use{"copy", KeyAccess::read, KeyAccess::write},
    Use{"decr", KeyAccess::both, KeyAccess::both},
    Use{"decrby", KeyAccess::both, KeyAccess::both},
    Use{"exists", KeyAccess::none, KeyAccess::none},
    Use{"expiretime", KeyAccess::none, KeyAccess::none},
    Use{"getdel", KeyAccess::both, KeyAccess::both},
    Use{"getex", KeyAccess::both, KeyAccess::both},
    Use{"getset", KeyAccess::both, KeyAccess::both},
    Use{"hexists", KeyAccess::none, KeyAccess::none},
    Use{"hincrby", KeyAccess::both, KeyAccess::both},
    Use{"hincrbyfloat", KeyAccess::both, KeyAccess::both},
    Use{"hlen", KeyAccess::none, KeyAccess::none},
    Use{"hstrlen", KeyAccess::none, KeyAccess::none},
    Use{"incr", KeyAccess::both, KeyAccess::both},
    Use{"incrby", KeyAccess::both, KeyAccess::both},
    Use{"incrbyfloat", KeyAccess::both, KeyAccess::both},
    Use{"memory|usage", KeyAccess::none, KeyAccess::none},
    Use{"move", KeyAccess::both, KeyAccess::both},
    Use{"object|encoding", KeyAccess::none, KeyAccess::none},
    Use{"object|freq", KeyAccess::none, KeyAccess::none},
    Use{"object|idletime", KeyAccess::none, KeyAccess::none},
    Use{"object|refcount", KeyAccess::none, KeyAccess::none},
    Use{"pexpiretime", KeyAccess::none, KeyAccess::none},
    Use{"pttl", KeyAccess::none, KeyAccess::none},
    Use{"rename", KeyAccess::both, KeyAccess::write},
    Use{"renamenx", KeyAccess::both, KeyAccess::write},
    Use{"strlen", KeyAccess::none, KeyAccess::none},
    Use{"touch", KeyAccess::none, KeyAccess::none},
    Use{"ttl", KeyAccess::none, KeyAccess::none},
    Use{"type", KeyAccess::none, KeyAccess::none},
    Use{"watch", KeyAccess::none, KeyAccess::none},
};
static_assert(std::is_sorted(uses.begin(), uses.end(),
                             [](const Use& a, const Use& b) { return a.name < b.name; }));

Use use_of(const CommandRow& row) noexcept {
  const auto found =
      std::lower_bound(uses.begin(), uses.end(), row.name,
                       [](const Use& use, std::string_view name) { return use.name < name; });
  if (found != uses.end() && found->name == row.name) return *found;
  const KeyAccess access = row.is(flag_write) ? KeyAccess::write : KeyAccess::read;
  return {row.name, access, access};
}

/// What a call would touch. Its views are into the words, and those of claims into `claims`.
struct Touched {
  std::vector<std::string> claims;
  std::vector<AclKey> keys;
  std::vector<AclChannel> channels;
};

void add_channels(const CommandRow& row, std::span<const std::string_view> words,
                  std::vector<AclChannel>& channels) {
  if (row.name == "publish" || row.name == "spublish") {
    channels.push_back({words[1]});
  } else if (row.name == "subscribe" || row.name == "ssubscribe" || row.name == "psubscribe") {
    for (const std::string_view name : words.subspan(1)) {
      channels.push_back({name, row.name == "psubscribe"});
    }
  }
}

Touched touched_by(const CommandRow& row, std::span<const std::string_view> words) {
  Touched touched;
  const Use use = use_of(row);
  for_each_key(row, words, [&](std::string_view key) {
    touched.keys.push_back({key, touched.keys.empty() ? use.first : use.others});
  });
  // Keys that are counted among the words, as those of MSETEX.
  for (const FoundKey& found : find_counted_keys(row, words)) {
    touched.keys.push_back({found.key, use.first});
  }
  // A claim lies under "namespace:key", and who asks for one may be told its result.
  touched.claims = claim_keys(row, words);
  for (const std::string& key : touched.claims) {
    touched.keys.push_back({key, row.is(flag_write) ? KeyAccess::both : KeyAccess::read});
  }
  if (row.is(flag_pubsub)) add_channels(row, words, touched.channels);
  return touched;
}

AclRequest request_of(const CommandRow& row, std::span<const std::string_view> words,
                      const Touched& touched) {
  // The number of a command in the catalog is its place in the table, from which that was made.
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

bool may_run(Call& call) {
  AclSession& session = call.client.user;
  switch (call.node.acl.refresh(session)) {
    case AclChange::none:
    case AclChange::rights:
      break;
    case AclChange::gone:
      call.client.closes = true;
      call.fail("NOAUTH Authentication required.");
      return false;
  }
  if (session.needs_auth()) {
    if (call.row->is(flag_no_auth)) return true;
    call.fail("NOAUTH Authentication required.");
    return false;
  }
  if (session.user().is_unlimited()) [[likely]]
    return true;
  const Touched touched = touched_by(*call.row, call.words);
  const AclRequest request = request_of(*call.row, call.words, touched);
  const Verdict verdict = session.user().check(request);
  if (verdict.ok()) return true;
  NodeAclHost host{call};
  AclCall about = acl_call(call, host);
  refuse(about, verdict, request);
  return false;
}

std::string_view denial_in_script(Call& call) {
  AclSession& session = call.client.user;
  if (session.user().is_unlimited()) [[likely]]
    return {};
  const Touched touched = touched_by(*call.row, call.words);
  const AclRequest request = request_of(*call.row, call.words, touched);
  const Verdict verdict = session.user().check(request);
  if (verdict.ok()) return {};
  std::string ignored;
  RespWriter nobody{ignored, Resp::two};
  Call unanswered{call.node, call.engine, call.client, call.words, nobody, call.row};
  NodeAclHost host{unanswered};
  AclCall about = acl_call(unanswered, host);
  about.context = DenialContext::lua;
  refuse(about, verdict, request);
  switch (verdict.denied) {
    case AclDenied::key:
      return "ERR The user executing the script can't access at least one of the keys mentioned in "
             "the command arguments";
    case AclDenied::channel:
      return "ERR The user executing the script can't publish to the channel mentioned in the "
             "command";
    default:
      return "ERR The user executing the script can't run this command or subcommand";
  }
}

std::optional<bool> could_run(const Call& call) {
  const CommandRow* row = find_command(call.words[0]);
  if (row != nullptr && is_container(*row) && call.words.size() > 1) {
    row = find_subcommand(*row, call.words[1]);
  }
  if (row == nullptr) return std::nullopt;
  const Touched touched = touched_by(*row, call.words);
  return call.client.user.user().check(request_of(*row, call.words, touched)).ok();
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
  return call_.node.describe(call_.client);
}
std::string NodeAclHost::file_name() {
  return call_.node.settings.text(Setting::aclfile);
}

AclHost::Read NodeAclHost::read_file() {
  const std::string name = file_name();
  std::ifstream file{name, std::ios::binary};
  if (!file) return {.error = "Error loading ACLs, opening file '" + name + "'"};
  return {.text = std::string{std::istreambuf_iterator<char>{file}, {}}};
}

bool NodeAclHost::write_file(std::string_view text) {
  return call_.node.hooks.replace_file && call_.node.hooks.replace_file(file_name(), text);
}

void NodeAclHost::login_denied(std::string_view user) {
  const auto& hook = call_.node.hooks.login_denied;
  if (hook) hook(user, call_.client.handle->origin.address);
}

AclCall acl_call(Call& call, AclHost& host) {
  return {.acl = call.node.acl,
          .session = call.client.user,
          .words = call.words,
          .reply = call.reply,
          .host = host,
          .now = call.engine.now(),
          .context = call.client.executing ? DenialContext::multi : DenialContext::toplevel};
}

void note_user(ClientState& client) {
  const std::string& name = client.user.user().name();
  client.handle->change_names([&](ClientHandle::Names& names) { names.user = name; });
}

namespace handlers {

void acl(Call& call) {
  NodeAclHost host{call};
  AclCall about = acl_call(call, host);
  const std::uint64_t before = call.node.acl.generation();
  acl_command(about);
  if (call.node.acl.generation() == before) return;
  call.node.users_changed();
  // Who has deleted itself is told so, and no more.
  if (call.node.acl.refresh(call.client.user) == AclChange::gone) call.client.closes = true;
}

void auth(Call& call) {
  NodeAclHost host{call};
  AclCall about = acl_call(call, host);
  auth_command(about);
  note_user(call.client);
}

}  // namespace handlers
}  // namespace semel::net
