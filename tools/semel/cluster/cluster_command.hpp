// `semel cluster ..`: changes to a group of nodes by operators. Each action has its own subcommand.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/semel/cluster/group_client.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

inline constexpr char cluster_exit_help[] =
    "Exit codes: 0 done, 1 a node or a file cannot be used, or not in time, 2 usage or refused,\n"
    "3 a directory is damaged, 4 the heap has no memory left.";

class ClusterAction {
 public:
  ClusterAction(CLI::App& cluster, const char* name, const char* what);
  virtual ~ClusterAction() = default;
  ClusterAction(const ClusterAction&) = delete;
  ClusterAction& operator=(const ClusterAction&) = delete;
  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  [[nodiscard]] virtual Exit run() = 0;

 protected:
  void set_footer(const std::string& text);
  /// Prints the detail of the error. Returns its exit code.
  [[nodiscard]] Exit fail(const Error& error) const;
  CLI::App* app_;
};
using ClusterActions = std::vector<std::unique_ptr<ClusterAction>>;

/// An action that needs a node.
class AskingAction : public ClusterAction {
 public:
  AskingAction(CLI::App& cluster, const char* name, const char* what);

 protected:
  /// The limit of all waits of the action. Errors: bad_option.
  [[nodiscard]] Result<Deadline> deadline() const;
  std::string at_;
  ClientOptions client_{};

 private:
  std::string wait_ = "60s";
};

/// A member as SEMEL.GROUP STATUS shows it.
struct ShownMember {
  std::uint64_t id = 0;
  std::string address{};
  std::string client{};  ///< its address for clients
  std::string role{};
  std::uint64_t level = 0;  ///< of features, that its release knows; 0: not known
  std::uint64_t match = 0;
  bool is_connected = false;
};
struct ShownGroup {
  std::uint64_t node = 0;
  std::string role{};
  std::uint64_t leader = 0;  ///< 0: not known
  std::uint64_t term = 0;
  std::uint64_t commit = 0;
  std::uint64_t applied = 0;
  std::uint64_t elections_won = 0;
  bool is_changing = false;  ///< a change of members is not committed
  std::uint64_t level = 0;   ///< of features, that the group uses
  std::vector<ShownMember> members{};
  [[nodiscard]] const ShownMember* leading() const;  ///< null: not known
};
/// Errors: bad_option (the node refuses), storage_failed (it answers otherwise), those of ask().
[[nodiscard]] Result<ShownGroup> ask_status(GroupClient& client, const std::string& address,
                                            Deadline until);

void add_status_action(CLI::App& cluster, ClusterActions& actions);
void add_change_actions(CLI::App& cluster, ClusterActions& actions);
/// Nothing where the program was built without replication.
void add_directory_actions(CLI::App& cluster, ClusterActions& actions);

class ClusterCommand {
 public:
  /// Adds the subcommand to `program`; this object must outlive the parse.
  explicit ClusterCommand(CLI::App& program);
  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  [[nodiscard]] Exit run() const;

 private:
  CLI::App* app_;
  ClusterActions actions_;
};

}  // namespace semel::tool
