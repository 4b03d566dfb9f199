#include "replication/node/shown_status.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace semel::replication {

ReplicationProgress shown_progress(const Replica& replica, const ReplicaStatus& status) {
  return {.leads = replica.is_leader(),
          .leader = status.leader,
          .term = status.term,
          .commit = status.commit,
          .applied = status.applied,
          .feature_level = std::max(status.level, feature_level_first),
          .feature_level_newest = status.level_newest,
          .disk_is_full = status.disk_is_full,
          .needs_reopen = status.needs_reopen,
          .is_fetching = status.is_fetching || status.needs_reopen,
          .leader_commit = status.leader_commit,
          .clock_off_ms = status.clock_off_ms,
          .stalled_ms = status.stalled_ms};
}

Status check_ready(const Replica& replica, std::uint64_t lag_max, std::string_view limit) {
  const ReplicaStatus status = replica.status();
  if (!status.failed.empty()) {
    return Error{ErrorCode::closing, "this node takes part no longer: " + status.failed};
  }
  const ReplicationProgress shown = shown_progress(replica, status);
  if (shown.is_fetching) {
    return Error{ErrorCode::log_busy, "a snapshot is fetched from the leader, " +
                                          std::to_string(status.totals.snapshot_bytes_received) +
                                          " bytes so far"};
  }
  if (shown.leader == 0) {
    return Error{ErrorCode::not_leader, "the group has no leader, or it is not known"};
  }
  if (shown.lag() <= lag_max) return Done{};
  return Error{ErrorCode::log_busy, "this node lags behind by " + std::to_string(shown.lag()) +
                                        " entries, and " + std::string{limit} + " is " +
                                        std::to_string(lag_max)};
}

ReplicationMember shown_member(const Replica& replica, const ReplicaStatus& status,
                               const Member& member) {
  ReplicationMember shown{
      .id = member.id, .address = member.address, .is_voter = member.role == MemberRole::voter};
  if (member.id == replica.session_owner().node) shown.feature_level = status.level_newest;
  const auto peer = status.peers.find(member.id);
  if (peer == status.peers.end()) return shown;
  shown.is_connected = peer->second.is_connected;
  shown.feature_level = peer->second.level;
  return shown;
}

}  // namespace semel::replication
