// What a core asks of the node that has it, and what it starts from.
#pragma once

#include <optional>
#include <vector>

#include "replication/core/message.hpp"
#include "semel/result.hpp"

namespace semel::replication {

/// What a node has on its disk.
struct StoredState {
  Term term = 0;
  NodeId voted_for = 0;
  std::optional<SnapshotId> snapshot{};
  LogIndex first = 1;  ///< of `entries`; not behind the snapshot's index + 1
  std::vector<RaftEntry> entries{};
};

/// Called within an event, in the order in which they must happen. They must not call the core.
class ConsensusEffects {
 public:
  virtual ~ConsensusEffects() = default;
  /// On the disk before it returns. An error stops the core.
  [[nodiscard]] virtual Status save_vote(Term term, NodeId voted_for) = 0;
  /// Write after all earlier entries; they replace entries from `first` on. Answer with persisted()
  /// when they are on the disk.
  virtual void append(LogIndex first, std::vector<RaftEntry> entries) = 0;
  virtual void send(RaftMessage message) = 0;
  /// Committed: the next entry for the state machine.
  virtual void apply(LogIndex index, const RaftEntry& entry) = 0;
  /// Replaces the replicated log and the state. installed() says when it is on the disk and in the
  /// state.
  virtual void install(const SnapshotOffer& offer) = 0;
  /// Role, term or leader have changed.
  virtual void changed() = 0;
  /// The core has stopped: nothing that it said after `error` counts.
  virtual void failed(const Error& error) = 0;
};

}  // namespace semel::replication
