// What a node hands over to the leader, and what it waits for afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replication/core/consensus_core.hpp"
#include "replication/parts/loop_host.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/proposals/forward_codec.hpp"
#include "replication/proposals/forwards.hpp"
#include "replication/proposals/proposals.hpp"
#include "replication/proposals/reads.hpp"
#include "replication/state/state_machine.hpp"
#include "replication/transport/peer_transport.hpp"

namespace semel::replication {

/// Belongs to the loop's thread.
class Forwarder {
 public:
  struct Parts {
    const ReplicaOptions& options;
    const Clock& wall;
    const StateMachine& state;
    const ConsensusCore& core;
    PeerTransport& transport;
    Proposals& proposals;
    Reads& reads;
    LoopHost& host;
  };
  explicit Forwarder(const Parts& parts);
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  /// Proposals that are ready, if this node may forward them and knows a leader.
  void forward_proposals();
  /// Waiting reads. True: they are under way, or wait for those that are.
  [[nodiscard]] bool forward_reads();
  /// The leader has answered. True: further reads may be asked for.
  [[nodiscard]] bool take_reply(NodeId from, const ForwardReply& reply);
  /// An entry was applied here. Takes no memory.
  void note_applied(LogIndex index) noexcept { waits_.run(index); }
  /// Another leader is known, or none: what the former ones have made of theirs is not known.
  void lose_of_others(NodeId leader) { lose(forwards_.take_of_others(leader)); }
  /// Fails calls whose leader is silent, or whose entry does not come.
  void give_up_late();
  /// The end of the replica: it is not known what became of them. Takes no memory.
  void close() noexcept;
  [[nodiscard]] std::size_t proposals() const noexcept { return forwards_.proposals(); }
  void check_invariants() const noexcept { forwards_.check_invariants(); }

 private:
  void lose(std::vector<Forwards::Pending> lost);
  void take_proposal_reply(Proposal proposal, ForwardAnswer content);
  void show_when_applied(LogIndex index, AppliedWaits::Wait wait);
  /// 0: none to forward to.
  [[nodiscard]] NodeId leader() const noexcept;
  [[nodiscard]] std::uint64_t now() const noexcept { return millis_of(parts_.wall); }

  const Parts parts_;
  Forwards forwards_;
  AppliedWaits waits_;
};

}  // namespace semel::replication
