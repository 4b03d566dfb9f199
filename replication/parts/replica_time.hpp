// The group's time on a node, and how current the node is: from what messages and entries say to
// what callers see, and to the file that the next process of this boot reads.
#pragma once

#include <cstdint>
#include <optional>

#include "replication/core/consensus_core.hpp"
#include "replication/core/freshness.hpp"
#include "replication/log/kept_time.hpp"
#include "replication/log/log_writer.hpp"
#include "replication/parts/group_clock.hpp"
#include "replication/parts/published.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/state/state_machine.hpp"

namespace semel::replication {

/// How long a leader may not answer, in milliseconds, until this node gives it up.
[[nodiscard]] inline std::uint64_t answer_patience(const ReplicaOptions& options) noexcept {
  return 10 * static_cast<std::uint64_t>(options.election.count());
}

/// Belongs to the loop's thread. The file belongs to that of the writer, which must end before this
/// does.
class ReplicaTime {
 public:
  struct Parts {
    const ReplicaOptions& options;
    const Clock& wall;
    const StateMachine& state;
    const ConsensusCore& core;
    LogWriter& writer;
    PublishedTime& shown;
  };
  /// `snapshot`: the newest on the disk, which `state` begins with.
  ReplicaTime(const Parts& parts, KeptTime kept, const std::optional<SnapshotId>& snapshot);
  ReplicaTime(const ReplicaTime&) = delete;
  ReplicaTime& operator=(const ReplicaTime&) = delete;

  // --- messages and entries ---------------------------------------------------------------------
  /// What a message says that Freshness is about.
  struct MarkNote {
    NodeId from = 0;
    Term term = 0;
    bool is_reply = false;
    std::uint64_t mark = 0;  // 0: it has none
    LogIndex commit = 0;
    std::int64_t unix_ms = 0;  // of the leader; 0: it does not say
  };
  /// Before it is sent. std::bad_alloc.
  void stamp(RaftMessage& message);
  /// Call before the core processes the message. std::bad_alloc.
  void hear(const RaftMessage& message);
  [[nodiscard]] static MarkNote mark_in(const RaftMessage& message) noexcept;
  /// Call after the core has processed the message, so its term is current.
  void take_mark(const MarkNote& note);
  /// A command was applied.
  void note_applied(LogIndex index, Term term) noexcept;

  // --- of a leader ------------------------------------------------------------------------------
  /// Begins to give entries their time, if that is due. `has_entries`: of its own, not applied.
  void lead(bool has_entries);
  /// Of an entry of this node, which leads.
  [[nodiscard]] std::int64_t next(bool has_entries);
  /// How far the newest applied entry is behind the group's time.
  [[nodiscard]] std::int64_t behind() const noexcept;

  // --- what others see --------------------------------------------------------------------------
  void tick();
  void show() noexcept;
  /// For another process of this boot. std::bad_alloc.
  void keep();
  /// How far the wall clock is from the group's time.
  [[nodiscard]] std::int64_t off_by() const noexcept;

 private:
  [[nodiscard]] std::uint64_t now() const noexcept;
  [[nodiscard]] std::int64_t here() const noexcept { return static_cast<std::int64_t>(now()); }
  /// Publishes until when callers may answer repeats from this replica.
  void show_fresh() noexcept;

  const Parts parts_;
  GroupClock clock_;
  Freshness freshness_;
  KeptTime kept_;
};

}  // namespace semel::replication
