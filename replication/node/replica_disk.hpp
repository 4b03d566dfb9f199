// What a replica finds on its disk when it begins: the newest snapshot, the replicated log behind
// it, and its vote.
//
//   vote                    term and vote, in two slots
//   time                    how far the group's time is from CLOCK_BOOTTIME, in two slots
//   identity                which log it is (replication/log/identity_file.hpp)
//   tail                    how far the log was synced (replication/log/tail_file.hpp)
//   log/                    entries (replication/log/entry_log.hpp)
//   snapshot-INDEX-TERM     the state (replication/log/snapshot_file.hpp)
#pragma once

#include <memory>

#include "replication/log/entry_log.hpp"
#include "replication/log/kept_time.hpp"
#include "replication/log/snapshot_file.hpp"
#include "replication/log/vote_file.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/state/state_machine.hpp"

namespace semel::replication {

struct ReplicaDisk {
  StoredState stored{};
  LogIdentity identity{};
  std::unique_ptr<StateMachine> state{};
  std::unique_ptr<EntryLog> log{};
  std::unique_ptr<VoteFile> votes{};
  VoteContent vote{};
  KeptTime time{};
  std::uint64_t snapshot_bytes = 0;
};

/// Errors: bad_option (the founders; the directory is of another node or cluster), storage_in_use,
/// storage_failed, storage_damaged, those of StateMachine::open and of restoring.
[[nodiscard]] Result<ReplicaDisk> open_disk(const ReplicaOptions& options, storage::Disk& disk);

}  // namespace semel::replication
