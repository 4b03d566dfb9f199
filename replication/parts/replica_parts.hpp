// What a replica is made of.
#pragma once

#include <memory>

#include "replication/proposals/proposals.hpp"
#include "replication/proposals/reads.hpp"

namespace semel {
class Clock;
}

namespace semel::replication {

class ConsensusCore;
class CoreEffects;
class Forwarder;
class GroupReads;
class LogWriter;
class LoopCalls;
class LoopHost;
class LoopThread;
class Members;
class PeerInput;
class PeerTransport;
class Proposer;
class ReplicaTime;
class ReplicaView;
class Snapshots;
class StateMachine;
struct ReplicaOptions;

/// In the order in which they live. Null until the replica starts, but for those of the loop and
/// the view. Belongs to the loop's thread.
struct ReplicaParts {
  // Of the loop.
  const ReplicaOptions& options;
  const Clock& wall;
  StateMachine& state;
  LoopThread& thread;
  LoopCalls& calls;
  LoopHost& host;

  std::unique_ptr<ReplicaView> view{};
  std::unique_ptr<ReplicaTime> time{};  // outlives the writer, which writes its file
  std::unique_ptr<LogWriter> writer{};
  std::unique_ptr<CoreEffects> effects{};
  std::unique_ptr<ConsensusCore> core{};
  std::unique_ptr<PeerInput> input{};
  std::unique_ptr<PeerTransport> transport{};
  std::unique_ptr<Snapshots> snapshots{};
  std::unique_ptr<Members> members{};
  Proposals proposals;
  Reads reads{};
  std::unique_ptr<Forwarder> forwarder{};
  std::unique_ptr<Proposer> proposer{};
  std::unique_ptr<GroupReads> group_reads{};

  /// Those of the parts that a turn may change. Between two events.
  void check_invariants() const noexcept;
};

}  // namespace semel::replication
