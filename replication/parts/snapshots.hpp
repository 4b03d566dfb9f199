// Snapshots of the state: when one is due, which part of the replicated log it replaces, and how
// one comes from another node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/consensus_core.hpp"
#include "replication/log/log_writer.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/parts/snapshot_worker.hpp"
#include "replication/transport/peer_transport.hpp"

namespace semel::replication {

/// When a snapshot is due: when the log has grown by as much as the last one has. Then all of them
/// together write no more than the log does. Belongs to one thread.
class SnapshotSchedule {
 public:
  /// `newest_bytes`: of the snapshot at `newest`; 0: there is none.
  SnapshotSchedule(std::uint64_t every_bytes, LogIndex newest, std::uint64_t newest_bytes) noexcept
      : every_bytes_(every_bytes), newest_(newest), newest_bytes_(newest_bytes) {}

  void applied(std::uint64_t entry_bytes) noexcept { log_bytes_ += entry_bytes; }
  /// `is_behind`: entries are committed that this node has not applied. It has to catch up first,
  /// unless it never does.
  [[nodiscard]] bool is_due(LogIndex applied, bool is_behind) const noexcept {
    const std::uint64_t enough = std::max(every_bytes_, newest_bytes_);
    return applied != newest_ && log_bytes_ >= (is_behind ? 4 * enough : enough);
  }
  void begin() noexcept { cut_bytes_ = log_bytes_; }
  /// It is tried again.
  void failed() noexcept {
    cut_bytes_ = 0;
    log_bytes_ = log_bytes_ / 2;
  }
  /// It is tried again, later than after failed().
  void no_thread() noexcept { cut_bytes_ = log_bytes_ = 0; }
  /// It has at least the entries that were applied at begin().
  void taken(LogIndex index, std::uint64_t bytes) noexcept {
    check_invariants();
    newest_ = index;
    newest_bytes_ = bytes;
    log_bytes_ -= std::exchange(cut_bytes_, 0);
  }
  /// 0: there is none.
  [[nodiscard]] LogIndex newest() const noexcept { return newest_; }
  /// Invariant while one is written: cut_bytes_ <= log_bytes_.
  void check_invariants() const noexcept { SEMEL_ASSERT(cut_bytes_ <= log_bytes_); }

 private:
  const std::uint64_t every_bytes_;
  LogIndex newest_;
  std::uint64_t newest_bytes_;
  std::uint64_t log_bytes_ = 0;  // applied since the newest
  std::uint64_t cut_bytes_ = 0;  // of them, in the one that is being written
};

/// Belongs to the loop's thread.
class Snapshots {
 public:
  struct Parts {
    const ReplicaOptions& options;
    storage::Disk& disk;
    StateMachine& state;
    ConsensusCore& core;
    PeerTransport& transport;
    LogWriter& writer;
  };
  struct Hooks {
    /// Any thread: a work has ended, and the loop is to call finish(). Must not throw.
    std::function<void()> work_done;
    std::function<void(ReplicaEvent::What what, const std::string& text)> report;
    /// A snapshot is on the disk that only open() can take.
    std::function<void()> must_reopen;
  };

  /// `newest`: on the disk.
  Snapshots(const Parts& parts, Hooks hooks, LogIndex newest, std::uint64_t newest_bytes);

  /// Before the entry is applied. std::bad_alloc.
  void applies(LogIndex index, std::uint64_t entry_bytes);
  /// Begins one if it is due.
  void consider();
  void finish(std::uint64_t now);
  /// A leader of this term offers one. False: this node has as much, and the core answers.
  [[nodiscard]] bool fetch(const RaftMessage& offer);
  /// The file of one; none: it is not there.
  [[nodiscard]] std::optional<std::string> path_of(LogIndex index, Term term) const;
  [[nodiscard]] LogIndex newest() const noexcept { return schedule_.newest(); }
  [[nodiscard]] bool is_fetching() const noexcept { return fetching_.has_value(); }

 private:
  struct Fetched {
    SnapshotId id;
    std::string path;
  };
  [[nodiscard]] SnapshotId mark_of(LogIndex index) const;
  void taken(const SnapshotTaken& taken, std::uint64_t now);
  void check(const Fetched& fetched);

  const Parts parts_;
  const Hooks hooks_;
  SnapshotSchedule schedule_;
  std::optional<SnapshotId> fetching_;  // until it is checked
  std::optional<Fetched> unchecked_;    // waits for the worker
  SnapshotWorker worker_;
};

}  // namespace semel::replication
