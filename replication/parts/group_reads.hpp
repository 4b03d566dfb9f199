// Reads of this node: how they are proven, by a lease, by a round, or by the leader.
#pragma once

#include <cstdint>

#include "replication/core/consensus_core.hpp"
#include "replication/parts/forwarder.hpp"
#include "replication/parts/loop_host.hpp"
#include "replication/parts/proposer.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/proposals/reads.hpp"

namespace semel::replication {

/// Belongs to the loop's thread.
class GroupReads {
 public:
  struct Parts {
    const ReplicaOptions& options;
    const Clock& wall;
    ConsensusCore& core;
    Reads& reads;
    Forwarder& forwarder;
    Proposer& proposer;
    LoopHost& host;
  };
  explicit GroupReads(const Parts& parts) noexcept : parts_(parts) {}
  GroupReads(const GroupReads&) = delete;
  GroupReads& operator=(const GroupReads&) = delete;

  /// Asks for those that wait, unless some are under way.
  void ask_waiting();
  /// Ends those that are proven.
  void finish();

 private:
  [[nodiscard]] std::uint64_t now() const noexcept { return millis_of(parts_.wall); }

  const Parts parts_;
};

}  // namespace semel::replication
