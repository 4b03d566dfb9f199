// What services and clients are shown of a replica: the one list of the fields that both share, and
// the one rule by which it is ready.
#pragma once

#include <cstdint>
#include <string_view>

#include "replication/node/replica.hpp"
#include "semel/replication.hpp"

namespace semel::replication {

/// `status`: of `replica`. Any thread.
[[nodiscard]] ReplicationProgress shown_progress(const Replica& replica,
                                                 const ReplicaStatus& status);
/// Replication::ready(). `limit`: what the operator calls `lag_max`.
[[nodiscard]] Status check_ready(const Replica& replica, std::uint64_t lag_max,
                                 std::string_view limit);
/// `member`: one of `status`, which is of `replica`. A node is not connected to itself. Any thread.
[[nodiscard]] ReplicationMember shown_member(const Replica& replica, const ReplicaStatus& status,
                                             const Member& member);

}  // namespace semel::replication
