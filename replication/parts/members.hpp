// The members of the group, as one of its nodes sees them: its connections to them, their logs and
// levels of features, and how far behind this node is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "replication/core/consensus_core.hpp"
#include "replication/core/log_identity.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/state/state_machine.hpp"
#include "replication/transport/peer_transport.hpp"

namespace semel::replication {

/// Belongs to the loop's thread.
class Members {
 public:
  struct Parts {
    const ReplicaOptions& options;
    ConsensusCore& core;
    PeerTransport& transport;
    const StateMachine& state;
    LogIdentity log;  ///< of this node
  };
  explicit Members(const Parts& parts) : parts_(parts) {}
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  // --- connections ----------------------------------------------------------------------------
  /// The configuration or the leader has changed: connect() is due.
  void note_change() noexcept { has_changed_ = true; }
  /// To the members, and to nodes that have connected and are none yet, if something has changed.
  void connect();
  /// A node has connected that listens at this address. False: it is known, or has no address.
  bool meet(NodeId id, const std::string& address);
  /// Whether a node may come in: it is a member, or may be the leader, of which an older
  /// configuration does not know.
  [[nodiscard]] bool knows(NodeId id) const;

  // --- how far behind -------------------------------------------------------------------------
  /// A leader says what it has committed, not only what of it has come.
  void note_commit(LogIndex commit) noexcept { leader_commit_ = std::max(leader_commit_, commit); }
  [[nodiscard]] LogIndex leader_commit() const noexcept { return leader_commit_; }
  /// This node has no vote and is far behind. Messages to one that decides are never held up.
  [[nodiscard]] bool is_joining() const;

  // --- logs -----------------------------------------------------------------------------------
  /// It has forgotten its vote and the entries that it had acknowledged.
  [[nodiscard]] bool has_lost_log(NodeId id) const;
  /// A member has replied to an append of this node, which leads in `term`.
  void note_reply(NodeId from, Term term);
  /// Of a leader: connects with no member that has another log than it had, and puts the logs of
  /// members into the configuration.
  void learn_logs(std::uint64_t now);
  /// Errors: refused (its log is not known yet).
  [[nodiscard]] Status check_promotion(NodeId id) const;

  // --- the level of features ------------------------------------------------------------------
  /// The highest that all members know. Errors: not_leader, refused (a member is not connected: it
  /// may be of an earlier release, and would stop at the entry).
  [[nodiscard]] Result<FeatureLevel> common_level() const;
  /// What a new group begins with, if this node is to propose it now.
  [[nodiscard]] std::optional<FeatureLevel> level_to_begin(std::uint64_t now);

 private:
  void judge_logs();

  const Parts parts_;
  std::map<NodeId, std::string> met_;  // addresses of nodes that have connected and are not members
  bool has_changed_ = true;
  LogIndex leader_commit_ = 0;
  MemberLogs logs_;
  std::uint64_t level_asked_ = 0;  // when level_to_begin() had one
};

}  // namespace semel::replication
