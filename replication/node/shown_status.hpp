// What services and clients are shown of a replica: the one list of the fields that both share.
#pragma once

#include "replication/node/replica.hpp"
#include "semel/replication.hpp"

namespace semel::replication {

/// `status`: of `replica`. Any thread.
[[nodiscard]] ReplicationProgress shown_progress(const Replica& replica,
                                                 const ReplicaStatus& status);
/// `member`: one of `status`, which is of `replica`. A node is not connected to itself. Any thread.
[[nodiscard]] ReplicationMember shown_member(const Replica& replica, const ReplicaStatus& status,
                                             const Member& member);

}  // namespace semel::replication
