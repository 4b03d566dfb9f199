// `semel cluster status`
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <string_view>
#include <utility>

#include "tools/semel/cluster/cluster_command.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {
namespace {

/// The value behind a name in the reply of a map in RESP2. Null: it is not there.
const Reply* value_of(const Reply& map, std::string_view name) {
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == name) return &map.items[i + 1];
  }
  return nullptr;
}
std::uint64_t number_of(const Reply& map, std::string_view name) {
  const Reply* const value = value_of(map, name);
  return value == nullptr ? 0 : static_cast<std::uint64_t>(value->integer);
}
std::string text_of(const Reply& map, std::string_view name) {
  const Reply* const value = value_of(map, name);
  return value == nullptr ? std::string{} : value->text;
}

ShownGroup group_of(const Reply& reply) {
  ShownGroup group;
  group.node = number_of(reply, "node");
  group.role = text_of(reply, "role");
  group.leader = number_of(reply, "leader");
  group.term = number_of(reply, "term");
  group.commit = number_of(reply, "commit");
  group.applied = number_of(reply, "applied");
  group.elections_won = number_of(reply, "elections_won");
  group.is_changing = number_of(reply, "changing") != 0;
  group.level = number_of(reply, "feature_level");
  const Reply* const members = value_of(reply, "members");
  if (members == nullptr) return group;
  for (const Reply& each : members->items) {
    group.members.push_back({.id = number_of(each, "id"),
                             .address = text_of(each, "address"),
                             .client = text_of(each, "client"),
                             .role = text_of(each, "role"),
                             .level = number_of(each, "feature_level"),
                             .match = number_of(each, "match"),
                             .is_connected = number_of(each, "connected") != 0});
  }
  return group;
}

/// Entries that a member lacks; only the leader knows.
std::uint64_t lag_of(const ShownGroup& group, const ShownMember& member) {
  return group.commit - std::min(group.commit, member.match);
}

boost::json::object json_of(const ShownGroup& group) {
  const bool leads = group.leader == group.node;
  boost::json::array members;
  for (const ShownMember& each : group.members) {
    boost::json::object member{{"id", each.id},
                               {"role", each.role},
                               {"leads", each.id == group.leader},
                               {"connected", each.is_connected},
                               {"feature_level", each.level},
                               {"client", each.client},
                               {"address", each.address}};
    if (leads) {
      member["match"] = each.match;
      member["lag"] = lag_of(group, each);
    }
    members.push_back(std::move(member));
  }
  return {{"node", group.node},
          {"role", group.role},
          {"leader", group.leader},
          {"term", group.term},
          {"commit", group.commit},
          {"applied", group.applied},
          {"changing", group.is_changing},
          {"feature_level", group.level},
          {"elections_won", group.elections_won},
          {"members", std::move(members)}};
}

void print(const ShownGroup& group) {
  const bool leads = group.leader == group.node;
  print_out("as node {} sees it: term {}, {}, {} entries committed, {} applied here{}\n",
            group.node, group.term,
            group.leader == 0 ? std::string{"no leader is known"}
                              : fmt::format("node {} leads", group.leader),
            group.commit, group.applied,
            group.is_changing ? ", a change of members is under way" : "");
  const bool differs =
      std::any_of(group.members.begin(), group.members.end(),
                  [&](const ShownMember& each) { return each.level > group.level; });
  if (differs) {
    print_out("it uses feature level {}; when all nodes know a later one: semel cluster upgrade\n",
              group.level);
  }
  const auto cell = [](bool is_known, std::uint64_t number) {
    return is_known ? std::to_string(number) : std::string{"-"};
  };
  print_out("{:>10}  {:<7}  {:<12}  {:>12}  {:>8}  {:<24}  {}\n", "node", "role", "state",
            "has entry", "lacks", "clients", "other nodes");
  for (const ShownMember& each : group.members) {
    const char* const state = each.id == group.leader ? "leads"
                              : each.is_connected     ? "connected"
                                                      : "unreachable";
    print_out("{:>10}  {:<7}  {:<12}  {:>12}  {:>8}  {:<24}  {}\n", each.id, each.role, state,
              cell(leads, each.match), cell(leads, lag_of(group, each)), each.client,
              each.address.substr(0, each.address.find(',')));
  }
}

class StatusAction final : public AskingAction {
 public:
  explicit StatusAction(CLI::App& cluster)
      : AskingAction(cluster, "status",
                     "Show the leader, the members, and how far each member is behind") {
    app_->add_flag("--json", json_, "Write it as one JSON document");
    app_->add_flag(
        "--here", here_,
        "As the node at ADDRESS sees it. Without this flag the leader is asked, if it is "
        "known and answers");
  }

  [[nodiscard]] Exit run() override {
    const auto until = deadline();
    if (!until.ok()) return fail(until.error());
    auto client = GroupClient::open(client_);
    if (!client.ok()) return fail(client.error());
    auto group = ask_status(**client, at_, *until);
    if (!group.ok()) return fail(group.error());
    const ShownMember* const leading = group->leading();
    if (!here_ && leading != nullptr && leading->id != group->node) {
      // Only the leader knows what the others have.
      auto seen = ask_status(**client, leading->client, *until);
      if (seen.ok()) {
        group = std::move(seen);
      } else {
        print_error("semel cluster status: the leader was not asked: {}\n", seen.error().detail);
      }
    }
    if (json_) return write_out(boost::json::serialize(json_of(*group)) + "\n");
    print(*group);
    return finish_out();
  }

 private:
  bool json_ = false;
  bool here_ = false;
};

}  // namespace

const ShownMember* ShownGroup::leading() const {
  const auto found = std::find_if(members.begin(), members.end(), [this](const ShownMember& each) {
    return leader != 0 && each.id == leader;
  });
  return found == members.end() ? nullptr : &*found;
}

Result<ShownGroup> ask_status(GroupClient& client, const std::string& address, Deadline until) {
  SEMEL_TRY(reply, client.ask(address, {"SEMEL.GROUP", "STATUS"}, until));
  if (reply.is_error()) return usage_error(address + ": " + reply.text);
  if (value_of(reply, "members") == nullptr) {
    return file_error(address + ": what it answers is not the status of a group");
  }
  return group_of(reply);
}

void add_status_action(CLI::App& cluster, ClusterActions& actions) {
  actions.push_back(std::make_unique<StatusAction>(cluster));
}

}  // namespace semel::tool
