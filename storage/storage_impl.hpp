// What a Storage is made of: a journal that callers write, a thread that syncs it, a thread that
// drains it into files, and a checkpoint that records the progress of all of them. Each has an
// owner of its state; this is their composition (docs/decisions/0074-owners-of-a-storage.md).
//
// Where memory ends
//   No background thread ends the process for it. What a round has not finished is repeated; until
//   then nothing is released and nothing acknowledged. The error of a sync counts also where its
//   text finds no memory. RocksDB: see storage/archive/rocks_guard.hpp.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "semel/process.hpp"
#include "semel/storage.hpp"
#include "storage/drain/drain_requests.hpp"
#include "storage/drain/drainer.hpp"
#include "storage/drain/live_engine.hpp"
#include "storage/drain/rewriter.hpp"
#include "storage/files/newest_map.hpp"
#include "storage/files/stored_files.hpp"
#include "storage/joint/joined_commits.hpp"
#include "storage/journal/log.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/signal.hpp"
#include "storage/start/context.hpp"
#include "storage/start/opening.hpp"
#include "storage/storage_backup.hpp"
#include "storage/storage_join.hpp"
#include "storage/sync/checkpoint_keeper.hpp"
#include "storage/sync/health.hpp"
#include "storage/sync/sync_progress.hpp"
#include "storage/sync/syncer.hpp"
#include "storage/sync/waiters.hpp"

namespace semel {

class Storage::Impl {
  const ProcessMark process_;

 public:
  Impl(storage::Context context, storage::Opened opened);
  ~Impl();

  /// `families`: of the user.
  [[nodiscard]] static Result<std::unique_ptr<Storage>> open(
      const StorageOptions& options, const Clock& clock,
      std::vector<rocksdb::ColumnFamilyDescriptor> families);
  /// True in a forked child. Parent and child share the mapping of the journal; all else belongs to
  /// the parent.
  [[nodiscard]] bool is_forked() const noexcept { return !process_.is_here(); }

  [[nodiscard]] Ticket append(std::span<const Mutation> group);
  [[nodiscard]] bool keeps_trail(const Mutation& delta) const noexcept {
    return engine_.chains().takes(delta);
  }
  void pace();
  void spilled(Ticket cut, Ticket kept, const ColdMark& cold);
  [[nodiscard]] Status drop_ended();
  [[nodiscard]] StorageStats stats() const;

  [[nodiscard]] storage::Archive& archive() noexcept { return files_.archive(); }
  [[nodiscard]] storage::JoinedWriter& joined() noexcept { return joined_; }

 private:
  friend class Storage;  // calls the owners where nothing else is to do

  /// Begins the journal and the threads. Errors: storage_failed, no_thread.
  [[nodiscard]] Status start(bool is_new);
  [[nodiscard]] Ticket append_group(std::span<const Mutation> group);
  void save_clock() noexcept;

  // Each needs only those above it.
  const storage::Context context_;
  storage::DirectoryLock directory_lock_;  // outlives all that uses the files
  storage::Signal progress_;      // after a round of syncing or draining, for all that wait
  storage::Signal drain_signal_;  // wakes the draining thread
  storage::StoredFiles files_;
  storage::NewestMap map_;
  storage::Log log_;
  storage::SyncProgress sync_;
  storage::Health health_;
  storage::JoinedCommits commits_;
  storage::Waiters waiters_;
  storage::CheckpointKeeper checkpoints_;
  storage::Syncer syncer_;
  storage::LiveEngine engine_;
  storage::DrainRequests requests_;
  storage::Rewriter rewriter_;
  storage::Drainer drainer_;
  storage::JoinedWriter joined_;
  storage::Backups backups_;
};

/// Gives other parts of the storage access to the implementation.
struct StorageAccess {
  [[nodiscard]] static Storage::Impl& impl(Storage& storage) noexcept { return *storage.impl_; }
};

}  // namespace semel
