// What the core asks for, carried out: votes and entries to the disk, messages to peers, committed
// entries to the state machine, and what then becomes of proposals.
#pragma once

#include <memory>
#include <vector>

#include "replication/core/consensus_effects.hpp"
#include "replication/log/vote_file.hpp"
#include "replication/parts/replica_parts.hpp"

namespace semel::replication {

/// Belongs to the loop's thread.
class CoreEffects final : public ConsensusEffects {
 public:
  /// `vote`: what `file` has.
  CoreEffects(ReplicaParts& parts, std::unique_ptr<VoteFile> file, const VoteContent& vote)
      : parts_(parts), file_(std::move(file)), vote_(vote) {}

  [[nodiscard]] Status save_vote(Term term, NodeId voted_for) override;
  void append(LogIndex first, std::vector<RaftEntry> entries) override;
  void send(RaftMessage message) override;
  void apply(LogIndex index, const RaftEntry& entry) override;
  void install(const SnapshotOffer& offer) override;
  void changed() override;
  void failed(const Error& error) override;

 private:
  [[nodiscard]] Result<std::vector<Answer>> apply_to_state(LogIndex index, const RaftEntry& entry);

  ReplicaParts& parts_;
  const std::unique_ptr<VoteFile> file_;
  VoteContent vote_;  // in file_
};

}  // namespace semel::replication
