// Steps of libraft, each with what it asks for: votes and entries for the disk, a snapshot to be
// installed, messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "replication/core/consensus_effects.hpp"
#include "replication/core/leadership.hpp"
#include "replication/core/memory_log.hpp"
#include "replication/core/outbox.hpp"
#include "replication/core/raft_library.hpp"
#include "semel/result.hpp"

struct raft_shim_update;

namespace semel::replication {

/// Belongs to one thread. A step that the library refuses ends the core, unless it returns a
/// Status. After the end nothing is to be called but has_failed() and fail().
class RaftSteps {
 public:
  struct Parts {
    RaftLibrary& raft;
    MemoryLog& log;
    Leadership& leadership;
    Outbox& outbox;
    ConsensusEffects& effects;
  };
  explicit RaftSteps(const Parts& parts) noexcept : parts_(parts) {}
  RaftSteps(const RaftSteps&) = delete;
  RaftSteps& operator=(const RaftSteps&) = delete;

  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  void fail(const std::string& what);
  void fail(const Error& error);

  /// Once, before all others. Errors: bad_option.
  [[nodiscard]] Status start(std::uint64_t now, const StoredState& stored);
  void tick(std::uint64_t now);
  /// Not of a ReadProbe, a ReadReply or a CommitNotice.
  void receive(std::uint64_t now, const RaftMessage& message);
  /// Of a leader. Errors: closing (the core has failed), memory_full.
  [[nodiscard]] Status submit(std::uint64_t now, EntryType type, SharedData data);
  /// An entry without a command.
  [[nodiscard]] Status submit_barrier(std::uint64_t now);
  /// What the log has of entries on the disk, if the library can take it now: a candidate cannot.
  void report_persisted(std::uint64_t now);
  [[nodiscard]] bool can_report_persisted() const noexcept;
  void snapshot_taken(std::uint64_t now, const SnapshotId& snapshot, std::size_t trailing);
  void installed(std::uint64_t now, const SnapshotId& snapshot);
  /// The configuration of that entry is committed. Twice does no harm: the library looks only at
  /// the newest one that it has.
  void commit_configuration(std::uint64_t now, LogIndex index, const RaftEntry& entry);
  /// That member is to get all entries, before it becomes a voter.
  void catch_up(std::uint64_t now, NodeId id);
  /// Errors: bad_option.
  [[nodiscard]] Status transfer(std::uint64_t now, NodeId id);

 private:
  /// What the caller of a step has, and the library only points to.
  struct Given {
    const std::vector<RaftEntry>* entries = nullptr;
    const SnapshotOffer* offer = nullptr;
  };
  void carry_out(int error, const raft_shim_update& update, const Given& given);
  [[nodiscard]] bool persist(const raft_shim_update& update, const Given& given);
  [[nodiscard]] std::vector<RaftEntry> entries_of(const raft_shim_update& update,
                                                  const Given& given);
  void note_state();

  const Parts parts_;
  bool has_failed_ = false;
  // As reported last.
  Role seen_role_ = Role::follower;
  Term seen_term_ = 0;
  NodeId seen_leader_ = 0;
};

}  // namespace semel::replication
