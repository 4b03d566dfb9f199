// Raft without input and output: events in, effects out. Elections, log matching, the rule of
// commits and membership are libraft's, by its call raft_step(); what its release 0.22.1 gets wrong
// is guarded here (Guards, docs/decisions/0038-consensus-core.md). The same code runs in a node and
// in the simulator.
//
// No clock, no thread, no disk, no socket, and no randomness but the seed. Belongs to one thread.
//
//   start, tick, receive, .. -> Inbox -> RaftSteps -> libraft, MemoryLog, Outbox -> Applier
#pragma once

#include <cstdint>
#include <memory>

#include "replication/core/applier.hpp"
#include "replication/core/consensus_effects.hpp"
#include "replication/core/consensus_options.hpp"
#include "replication/core/inbox.hpp"
#include "replication/core/leadership.hpp"
#include "replication/core/member_changes.hpp"
#include "replication/core/memory_log.hpp"
#include "replication/core/message.hpp"
#include "replication/core/outbox.hpp"
#include "replication/core/raft_library.hpp"
#include "replication/core/raft_steps.hpp"
#include "semel/result.hpp"

namespace semel::replication {

class ConsensusCore {
 public:
  /// Errors: bad_option (also: the library is of another release than 0.22), memory_full.
  [[nodiscard]] static Result<std::unique_ptr<ConsensusCore>> make(const ConsensusOptions& options,
                                                                   ConsensusEffects& effects);
  ConsensusCore(const ConsensusCore&) = delete;
  ConsensusCore& operator=(const ConsensusCore&) = delete;

  // --- events; `now` is milliseconds of a clock that does not go back -------------------------
  /// Once, before all others. Errors: bad_option, bad_encoding, memory_full.
  [[nodiscard]] Status start(std::uint64_t now, StoredState stored);
  /// At raft().next_timeout(), or more often.
  void tick(std::uint64_t now);
  /// Applies the next part of the committed entries. To be called soon while must_apply_more(): a
  /// restarted node has much to apply, and must answer messages between the parts.
  void apply_more(std::uint64_t now);
  /// From a peer whose identity is proven. An invalid message is dropped.
  void receive(std::uint64_t now, RaftMessage message);
  /// Of what append() was called with: all up to `index`, which has `term`.
  void persisted(std::uint64_t now, LogIndex index, Term term);
  /// The index that the entry will have, if this node stays the leader. Errors: not_leader (also:
  /// it hands its leadership over), log_busy (uncommitted_max entries are not committed),
  /// memory_full.
  [[nodiscard]] Result<LogIndex> propose(std::uint64_t now, SharedData data);
  /// A snapshot of the state after `snapshot.index` is on the disk. Entries before the last
  /// `trailing` of it are forgotten.
  void snapshot_taken(std::uint64_t now, const SnapshotId& snapshot, std::size_t trailing);
  /// install() is done.
  void installed(std::uint64_t now, const SnapshotId& snapshot);
  /// By the leader; one change at a time. Errors: not_leader; refused (another change is under way,
  /// or a member lacks entries that it would need); bad_option (no such member, the last voter, an
  /// id or address that is taken).
  [[nodiscard]] Status change(std::uint64_t now, const MemberChange& change);
  /// 0: to one that has everything. Errors: not_leader, bad_option.
  [[nodiscard]] Status transfer(std::uint64_t now, NodeId id);
  /// A round whose end, leadership().confirmed() >= the round, proves that this node was the leader
  /// after this call: the state at leadership().read_index() then has every change that was
  /// answered before it. One round serves all reads that arrive before it is sent. Errors:
  /// not_leader (also: no entry of its term is committed yet).
  [[nodiscard]] Result<std::uint64_t> read(std::uint64_t now);
  /// Sends the present commit index to a member that waits for it. Members learn later ones from
  /// the next append.
  void tell_commit(NodeId id) { leadership_.tell_commit(id); }

  // --- insight --------------------------------------------------------------------------------
  /// Roles, terms, members and their progress.
  [[nodiscard]] const RaftLibrary& raft() const noexcept { return raft_; }
  /// Entries, written or not, and how far they are committed and applied.
  [[nodiscard]] const MemoryLog& log() const noexcept { return log_; }
  /// What proves that it leads.
  [[nodiscard]] const Leadership& leadership() const noexcept { return leadership_; }
  [[nodiscard]] const AppliedMembers& applied_members() const noexcept {
    return applier_.members();
  }
  /// Entries are committed that were not applied yet.
  [[nodiscard]] bool must_apply_more() const noexcept { return applier_.has_more(); }
  [[nodiscard]] bool has_failed() const noexcept { return steps_.has_failed(); }

 private:
  ConsensusCore(const ConsensusOptions& options, ConsensusEffects& effects, RaftLibrary raft);
  void begin(std::uint64_t now);
  /// Handles the consequences of an event until there are none.
  void after(std::uint64_t now);
  void begin_term(std::uint64_t now);
  /// And does not hand its leadership over.
  [[nodiscard]] bool can_lead() const noexcept;
  void check_invariants() const noexcept;

  const ConsensusOptions options_;
  RaftLibrary raft_;
  MemoryLog log_;
  Leadership leadership_;
  Outbox outbox_;
  RaftSteps steps_;
  Applier applier_;
  Inbox inbox_;
  bool is_busy_ = false;  // in an event
};

}  // namespace semel::replication
