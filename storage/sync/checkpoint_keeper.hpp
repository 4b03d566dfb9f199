// Writes the checkpoint: how far journal and files have come.
//
// While segments of an earlier process are left, or not everything is recovered, the checkpoint of
// that process stays: it gives the extent of the journal that must exist, and the time up to which
// ended records are gone. Only its tail moves on: it is that of the running process, whose segments
// follow (docs/decisions/0108-the-end-of-the-running-journal.md).
#pragma once

#include <memory>

#include "storage/files/stored_files.hpp"
#include "storage/journal/log.hpp"
#include "storage/log/checkpoint.hpp"
#include "storage/start/context.hpp"
#include "storage/sync/sync_progress.hpp"

namespace semel::storage {

/// Of one thread: that of the start, then the syncing thread, then that of the end.
class CheckpointKeeper {
 public:
  CheckpointKeeper(const Context& context, std::unique_ptr<Checkpoint> checkpoint,
                   const StoredFiles& files, Log& log, const SyncProgress& sync)
      : context_(context),
        checkpoint_(std::move(checkpoint)),
        files_(files),
        log_(log),
        sync_(sync),
        log_begin_(log.tail()),
        written_(files.earlier().checkpoint) {}

  /// Where the journal of this process begins.
  [[nodiscard]] LogOffset log_begin() const noexcept { return log_begin_; }
  /// Writes it, if there is news. False: it cannot be written (errno says why), and the one before
  /// counts, which is true as well.
  [[nodiscard]] bool write() noexcept;
  /// Syncs a checkpoint that was written and not synced yet. Errors: storage_failed.
  [[nodiscard]] Status sync();
  /// The first of a storage, or that of an earlier process with the tail of this one. Errors:
  /// storage_failed.
  [[nodiscard]] Status begin();
  /// The last of this process: if it fails, the one before counts.
  void end() noexcept;

 private:
  /// False: the checkpoint of an earlier process counts.
  [[nodiscard]] bool describes_this() const noexcept;
  [[nodiscard]] CheckpointContent content_now() const noexcept;
  [[nodiscard]] CheckpointContent content_of_earlier() const noexcept;
  [[nodiscard]] CheckpointContent next() const noexcept;
  [[nodiscard]] bool replace(CheckpointContent content) noexcept;
  [[nodiscard]] bool is_news(const CheckpointContent& content) const noexcept;

  const Context& context_;
  const std::unique_ptr<Checkpoint> checkpoint_;
  const StoredFiles& files_;
  Log& log_;
  const SyncProgress& sync_;
  const LogOffset log_begin_;
  CheckpointContent written_;
  bool is_unsynced_ = false;
};

}  // namespace semel::storage
