#include "net/cluster/group_round.hpp"

#include "net/resp/text.hpp"
#include "net/scripts/script_host.hpp"
#include "net/scripts/scripts.hpp"
#include "net/time/ticks.hpp"

namespace semel::net {
namespace {

/// Of a script or function. A script whose text is one that Semel knows is one operation, which
/// every node carries out.
GroupKind kind_of_code(const Services& services, ClientState& client, const CommandRow& row,
                       std::span<const std::string_view> words) {
  if (row.has(fact_function)) return GroupKind::not_here;
  SharedScript script;
  if (row.has(fact_script_text)) {
    auto taken = client.scripts->thread.take(words[1], false, services.ticks().ns());
    if (!taken.ok()) return GroupKind::here;  // the handler says what is wrong with it
    script = *std::move(taken);
  } else {
    script = client.scripts->thread.find(words[1]);
    // The leader may know its text.
    const bool is_leaders = !services.group->leads() && !services.group->forwards();
    if (script == nullptr) return is_leaders ? GroupKind::write : GroupKind::here;
  }
  return script->shape.known != lua::KnownScript::unknown ? GroupKind::write : GroupKind::script;
}

}  // namespace

GroupKind group_kind(const Services& services, ClientState& client, const CommandRow& row,
                     std::span<const std::string_view> words) {
  constexpr unsigned code = fact_script_text | fact_script_digest | fact_function;
  if ((row.facts.bits & code) != 0) {
    return row.is(flag_readonly) ? GroupKind::read : kind_of_code(services, client, row, words);
  }
  if (row.has(fact_libraries)) return GroupKind::not_here;
  if (row.is(flag_write) || row.has(fact_publishes)) return GroupKind::write;
  // WATCH reads the versions of its keys.
  if (row.is(flag_readonly) || row.first_key != 0) return GroupKind::read;
  return GroupKind::here;
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
  // Clients that need a node which hands over could not follow MOVED.
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
