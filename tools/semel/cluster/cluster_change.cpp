// `semel cluster add | promote | demote | transfer | remove | upgrade`: finds the leader and
// retries until it has made the change or the time is over.
#include <fmt/format.h>
#include <poll.h>

#include <string_view>
#include <utility>

#include "tools/semel/cluster/cluster_command.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {
namespace {

constexpr int pause_ms = 50;
/// Limit of redirects: two nodes may name each other for a moment.
constexpr int moves_at_once = 4;

enum class Which { group, any_node, node };

struct ChangeWords {
  const char* name;
  const char* word;  ///< of SEMEL.GROUP
  const char* what;
  Which which;
  bool needs_address;
};

constexpr ChangeWords change_words[] = {
    {"add", "ADD", "Add a node that was started with --cluster-announce; it gets all data",
     Which::node, true},
    {"promote", "PROMOTE", "Give an added node its vote, when it has everything", Which::node,
     false},
    {"demote", "DEMOTE", "Take a member's vote; it goes on getting everything", Which::node, false},
    {"transfer", "TRANSFER", "Let another node lead, without a gap", Which::any_node, false},
    {"remove", "REMOVE", "Remove a member, which then gets nothing more", Which::node, false},
    {"upgrade", "UPGRADE",
     "Use what all members know, after the last one was upgraded; there is no way back",
     Which::group, false},
};

/// The address behind "MOVED slot ". Empty: it is another error.
std::string moved_to(const std::string& error) {
  constexpr std::string_view prefix = "MOVED ";
  const std::size_t space = error.rfind(' ');
  if (!error.starts_with(prefix) || space < prefix.size()) return {};
  return error.substr(space + 1);
}

class ChangeAction final : public AskingAction {
 public:
  ChangeAction(CLI::App& cluster, const ChangeWords& change)
      : AskingAction(cluster, change.name, change.what), change_(change) {
    if (change.which == Which::group) return;
    CLI::Option* const id =
        app_->add_option("NODE", id_,
                         needs_id() ? "Number of the node"
                                    : "Number of the node. Default: one that has everything")
            ->type_name("");
    if (needs_id()) id->required();
    if (!change.needs_address) return;
    app_->add_option("ADDRESS", address_,
                     "Its address for the other nodes, and behind a comma that for clients")
        ->type_name("")
        ->required();
  }

  [[nodiscard]] Exit run() override {
    const auto until = deadline();
    if (!until.ok()) return fail(until.error());
    if (needs_id() && id_ == 0) return fail(usage_error("a node's number is from 1"));
    auto client = GroupClient::open(client_);
    if (!client.ok()) return fail(client.error());
    const auto done = carry_out(**client, *until);
    if (!done.ok()) return fail(done.error());
    return write_out(*done);
  }

 private:
  [[nodiscard]] bool needs_id() const noexcept { return change_.which == Which::node; }

  [[nodiscard]] std::vector<std::string> words() const {
    std::vector<std::string> all{"SEMEL.GROUP", change_.word};
    if (id_ != 0) all.push_back(std::to_string(id_));
    if (change_.needs_address) all.push_back(address_);
    return all;
  }

  /// Retries until a leader has accepted the change, and until it is committed.
  [[nodiscard]] Result<std::string> carry_out(GroupClient& client, Deadline until) {
    std::string node = at_;
    std::string why = "no leader is known";
    int moves = 0;
    while (std::chrono::steady_clock::now() < until) {
      const auto reply = client.ask(node, words(), until);
      if (!reply.ok()) {
        // The named leader may have ended; the first node will name another.
        const bool is_other = node != at_ && reply.error().code == ErrorCode::storage_failed;
        if (!is_other) return reply.error();
        why = reply.error().detail;
        node = at_;
      } else if (!reply->is_error()) {
        return wait_committed(client, node, until);
      } else if (const std::string to = moved_to(reply->text); !to.empty()) {
        why = "node " + node + " names " + to + " as the leader";
        node = to;
        if (++moves <= moves_at_once) continue;
      } else if (reply->text.starts_with("TRYAGAIN") || reply->text.starts_with("CLUSTERDOWN")) {
        why = reply->text;
        if (reply->text.starts_with("CLUSTERDOWN")) node = at_;
      } else {
        return usage_error(node + ": " + reply->text);
      }
      poll(nullptr, 0, pause_ms);
    }
    return file_error("not in time: " + why);
  }

  [[nodiscard]] Result<std::string> wait_committed(GroupClient& client, const std::string& node,
                                                   Deadline until) {
    const bool hands_over = change_.which == Which::any_node;
    while (std::chrono::steady_clock::now() < until) {
      const auto group = ask_status(client, node, until);
      if (!group.ok()) {
        return file_error(
            "taken by the leader, which then did not answer: see `semel cluster "
            "status`: " +
            group.error().detail);
      }
      const bool is_done =
          hands_over ? group->leader != 0 && group->leader != group->node : !group->is_changing;
      if (is_done && hands_over) return fmt::format("node {} leads\n", group->leader);
      if (is_done && change_.which == Which::group) {  // decided before it was answered
        return fmt::format("the group uses feature level {}\n", group->level);
      }
      if (is_done && group->leader == group->node) {
        return fmt::format("{} node {}: done, the group has {} members\n", change_.name, id_,
                           group->members.size());
      }
      if (is_done) return file_error("the leader changed meanwhile: see `semel cluster status`");
      poll(nullptr, 0, pause_ms);
    }
    return file_error("taken by the leader, but not in time: see `semel cluster status`");
  }

  const ChangeWords& change_;
  std::uint64_t id_ = 0;
  std::string address_;
};

}  // namespace

void add_change_actions(CLI::App& cluster, ClusterActions& actions) {
  for (const ChangeWords& each : change_words)
    actions.push_back(std::make_unique<ChangeAction>(cluster, each));
}

}  // namespace semel::tool
