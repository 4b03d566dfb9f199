// Between the plain values of C++ and those of the shim, which point into them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "replication/core/message.hpp"
#include "replication/core/raft_shim.h"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::replication {

/// Members as the library has them: these point into `addresses`.
struct ShimMembers {
  std::deque<std::string> addresses{};
  std::vector<raft_shim_member> members{};
};

[[nodiscard]] Member to_member(const raft_shim_member& member);
/// Points into `entries`.
[[nodiscard]] std::vector<raft_shim_entry> to_shim(const std::vector<RaftEntry>& entries);
/// Points into `members`, which it fills.
[[nodiscard]] raft_shim_snapshot to_shim(const SnapshotId& snapshot, ShimMembers& members);
/// Errors: bad_option.
[[nodiscard]] Result<SharedData> encode_configuration(const Configuration& configuration);
/// Reads nothing beyond the bytes, as the library would. Errors: bad_encoding.
[[nodiscard]] Result<Configuration> decode_configuration(Bytes data);

}  // namespace semel::replication
