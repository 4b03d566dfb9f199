// Which configuration a change of members makes, and whether it may begin now. Decides; the core
// carries it out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>

#include "replication/core/consensus_options.hpp"
#include "replication/core/memory_log.hpp"
#include "replication/core/raft_library.hpp"
#include "semel/result.hpp"

namespace semel::replication {

/// As a standby.
struct AddMember {
  NodeId id = 0;
  std::string address{};
};
/// A voter then.
struct PromoteMember {
  NodeId id = 0;
};
/// A standby then.
struct DemoteMember {
  NodeId id = 0;
};
struct RemoveMember {
  NodeId id = 0;
};
/// Puts the logs of members that have none into the configuration. From then on none is promoted
/// whose log is not known.
struct LearnLogs {
  std::map<NodeId, LogIdentity> logs{};
};
using MemberChange = std::variant<AddMember, PromoteMember, DemoteMember, RemoveMember, LearnLogs>;

/// Belongs to one thread.
class MemberChanges {
 public:
  struct Plan {
    std::optional<Configuration> members{};  ///< none: they are so already
    NodeId catches_up = 0;  ///< instead: this member is first to get what a voter needs
  };

  MemberChanges(const ConsensusOptions& options, const RaftLibrary& raft, const MemoryLog& log)
      : options_(options), raft_(raft), log_(log) {}

  /// Errors: not_leader; refused (another change is under way, or a member lacks entries that it
  /// would need); bad_option (no such member, an id or address that is taken).
  [[nodiscard]] Result<Plan> plan(const MemberChange& change) const;

 private:
  [[nodiscard]] Status check_begin() const;
  [[nodiscard]] Status check_voters_without(NodeId id) const;
  [[nodiscard]] bool knows_its_role(NodeId id) const;
  [[nodiscard]] Result<Plan> plan_of(const AddMember& add) const;
  [[nodiscard]] Result<Plan> plan_of(const PromoteMember& promote) const;
  [[nodiscard]] Result<Plan> plan_of(const DemoteMember& demote) const;
  [[nodiscard]] Result<Plan> plan_of(const RemoveMember& remove) const;
  [[nodiscard]] Result<Plan> plan_of(const LearnLogs& learn) const;

  const ConsensusOptions& options_;
  const RaftLibrary& raft_;
  const MemoryLog& log_;
};

}  // namespace semel::replication
