// Committed entries, to the state machine in their order, and the members as of the last one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replication/core/consensus_effects.hpp"
#include "replication/core/consensus_options.hpp"
#include "replication/core/memory_log.hpp"
#include "replication/core/raft_steps.hpp"

namespace semel::replication {

/// The newest configuration that is committed and applied, and its index: those of a snapshot.
struct AppliedMembers {
  Configuration members{};
  LogIndex index = 0;
};

/// Belongs to one thread.
class Applier {
 public:
  struct Parts {
    const ConsensusOptions& options;
    MemoryLog& log;
    RaftSteps& steps;
    ConsensusEffects& effects;
  };
  explicit Applier(const Parts& parts) noexcept : parts_(parts) {}

  /// An event may apply so many entries, and so many bytes of them.
  void begin_event() noexcept {
    entries_left_ = parts_.options.apply_entries_max;
    bytes_left_ = parts_.options.apply_bytes_max;
  }
  /// The state is that of the snapshot.
  void begin_at(const SnapshotId& snapshot);
  /// The next part of the committed entries, as far as the event may.
  void apply_committed(std::uint64_t now);
  [[nodiscard]] const AppliedMembers& members() const noexcept { return members_; }
  /// Entries are committed that were not applied yet, and may be.
  [[nodiscard]] bool has_more() const noexcept {
    const MemoryLog& log = parts_.log;
    return !parts_.steps.has_failed() && !log.is_installing() && log.applied() < log.commit();
  }

  /// Invariant: members_.index <= applied, unless a snapshot is being installed.
  void check_invariants() const noexcept;

 private:
  [[nodiscard]] bool apply_configuration(std::uint64_t now, const RaftEntry& entry);

  const Parts parts_;
  AppliedMembers members_;
  std::size_t entries_left_ = 0;
  std::size_t bytes_left_ = 0;
};

}  // namespace semel::replication
