#include "net/cluster/group_round.hpp"

#include <algorithm>

#include "net/acl/acl.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/native_scripts.hpp"
#include "net/scripts/script_call.hpp"
#include "net/scripts/script_host.hpp"
#include "net/scripts/scripts.hpp"
#include "net/time/ticks.hpp"

namespace semel::net {
namespace {

using Words = std::span<const std::string_view>;

/// Whether the known script sends a command that the group's log may not have yet.
bool sends_barred(const Services& services, const lua::ScriptShape& shape, Words keys,
                  Words arguments) {
  using From = lua::ScriptWord::From;
  return std::any_of(shape.commands.begin(), shape.commands.end(), [&](const auto& command) {
    if (command.empty()) return false;
    const lua::ScriptWord& word = command.front();
    std::string_view name = word.text;
    if (word.from != From::text) {
      const Words from = word.from == From::key ? keys : arguments;
      name = word.index < from.size() ? from[word.index] : std::string_view{};
    }
    const CommandRow* const row = find_command(name);
    return row != nullptr && !may_be_logged(services, *row);
  });
}

/// Whether all nodes can run the script itself. It must need no interpreter. And the thread that
/// applies the replicated log does not know the client: commands in its text, and not among KEYS,
/// are checked only where the client's rights are.
bool is_for_all(const Services& services, ClientState& client, const Script& script,
                std::span<const std::string_view> words) {
  if (script.shape.known == lua::KnownScript::unknown) return false;
  static_cast<void>(services.acl.refresh(client.user));
  if (!client.user.user().is_unlimited()) return false;
  const auto keys = script_keys(words);
  if (!keys) return false;
  const Words arguments = words.subspan(script_words_fixed + keys->size());
  if (sends_barred(services, script.shape, *keys, arguments)) return false;
  return accepts_native(script.shape,
                        {.keys = *keys, .args = arguments, .dialect = client.dialect});
}

constexpr unsigned code_facts = fact_script_text | fact_script_digest | fact_function;

/// The kind of a script or function.
GroupKind kind_of_code(const Services& services, ClientState& client, const CommandRow& row,
                       std::span<const std::string_view> words) {
  if (row.has(fact_function)) return GroupKind::script;
  SharedScript script;
  if (row.has(fact_script_text)) {
    auto taken = client.scripts->thread.take(words[1], false, services.ticks().ns());
    if (!taken.ok()) return GroupKind::here;  // the handler reports the error
    script = *std::move(taken);
  } else {
    script = client.scripts->thread.find(words[1]);
    // The leader may know its text.
    const bool is_leaders = !services.group->leads() && !services.group->forwards();
    if (script == nullptr) return is_leaders ? GroupKind::write : GroupKind::here;
  }
  return is_for_all(services, client, *script, words) ? GroupKind::write : GroupKind::script;
}

}  // namespace

GroupKind group_kind(const Services& services, ClientState& client, const CommandRow& row,
                     std::span<const std::string_view> words) {
  if ((row.facts.bits & code_facts) != 0) {
    const GroupKind kind = kind_of_code(services, client, row, words);
    if (!row.is(flag_readonly) || kind == GroupKind::here) return kind;
    // A node that forwards its reads would have all nodes run it.
    const bool is_handed_over =
        !client.reads_here && !services.group->leads() && services.group->forwards();
    return is_handed_over && kind == GroupKind::script ? GroupKind::script : GroupKind::read;
  }
  if (row.has(fact_of_node)) return GroupKind::here;
  if (row.has(fact_libraries)) return GroupKind::library;
  if (row.is(flag_write) || row.has(fact_publishes)) return GroupKind::write;
  // WATCH reads the versions of its keys.
  if (row.is(flag_readonly) || row.first_key != 0) return GroupKind::read;
  return GroupKind::here;
}

bool needs_interpreter(const Services& services, ClientState& client, const CommandRow& row,
                       std::span<const std::string_view> words) {
  return (row.facts.bits & code_facts) != 0 && row.takes(words.size()) &&
         kind_of_code(services, client, row, words) == GroupKind::script;
}

std::string moved_error(const Group& group, std::uint16_t slot) {
  const GroupView view = group.view();
  for (const GroupMember& each : view.members) {
    if (each.id != view.leader || each.id == view.node_id || each.client_address.empty()) continue;
    return "MOVED " + std::to_string(slot) + " " + each.client_address;
  }
  return {};
}

std::string group_error(const Group& group, ErrorCode code, std::uint16_t slot) {
  // Clients that need a forwarding node could not follow MOVED.
  if (code == ErrorCode::not_leader && !group.forwards()) {
    if (std::string moved = moved_error(group, slot); !moved.empty()) return moved;
  }
  std::string text{resp_prefix_of(code)};
  if (code == ErrorCode::outcome_unknown) {
    return text + " it is not known whether the group has carried it out: ask again";
  }
  return text.append(" ").append(sentence_of(code));
}

}  // namespace semel::net
