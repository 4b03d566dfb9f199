#include "replication/node/shown_status.hpp"

#include <algorithm>

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
          .needs_reopen = status.needs_reopen};
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
