// Proposals that wait: into entries where this node leads, to the leader where it does not. And
// what a leader proposes of itself: the group's time, the level of features.
#pragma once

#include <cstdint>

#include "replication/core/consensus_core.hpp"
#include "replication/parts/forwarder.hpp"
#include "replication/parts/loop_host.hpp"
#include "replication/parts/members.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/parts/replica_time.hpp"
#include "replication/proposals/proposals.hpp"
#include "replication/state/state_machine.hpp"

namespace semel::replication {

/// Belongs to the loop's thread.
class Proposer {
 public:
  struct Parts {
    const ReplicaOptions& options;
    const Clock& wall;
    StateMachine& state;
    ConsensusCore& core;
    Members& members;
    ReplicaTime& time;
    Proposals& proposals;
    Forwarder& forwarder;
    LoopHost& host;
  };
  explicit Proposer(const Parts& parts) noexcept : parts_(parts) {}
  Proposer(const Proposer&) = delete;
  Proposer& operator=(const Proposer&) = delete;

  /// All that can be proposed or forwarded now.
  void propose_waiting();
  /// Begins what only the passing of time makes due.
  void tick();
  /// Between entries the replicated log's time stands still, and records that ended since would
  /// still be read. Without records that end, and right after an entry, nothing is written for a
  /// read. Returns the entry that brings the log's time up for a read; 0: none is needed.
  [[nodiscard]] LogIndex renew_time();
  /// While entries are under way, the next append has the commit index. Otherwise waiters and
  /// readers at a follower would see decided entries up to a heartbeat later.
  void tell_idle();
  [[nodiscard]] bool has_entries() const noexcept {
    return parts_.proposals.figures().newest_entry != 0;
  }

  /// Invariant: told_ <= commit.
  void check_invariants() const noexcept;

 private:
  void propose_time();
  void queue_time();
  void begin_level();
  [[nodiscard]] bool may_propose() const noexcept;
  [[nodiscard]] std::uint64_t now() const noexcept { return millis_of(parts_.wall); }

  const Parts parts_;
  LogIndex told_ = 0;  // of tell_idle()
};

}  // namespace semel::replication
