// Everything on disk but the journal that this process writes: RocksDB's files, and segments of
// earlier processes until they are drained. One change at a time.
//
// Concurrency
//   [storage.drained]   release store of the draining thread when everything before is in files,
//                       acquire loads of drain(), and of the syncing thread for the checkpoint.
//   [storage.old_left]  whether segments of an earlier process are left: release store when the
//                       last one was drained, acquire loads before draining and before the
//                       checkpoint is written.
//   [storage.rocks_sequence]  RocksDB's newest synced number: release by the threads that wrote,
//                       acquire load for the checkpoint.
//   [storage.recovered] release store at the end of recover(), acquire loads of the draining thread
//                       and of spills.
//   mutex               serialises changes of the files: draining, rewriting, a backup's begin.
//
// Invariants, with the mutex held: old_left_ == !old_segments_.empty(); batch_ends_ ascend, and are
// 1..batch_ends_max.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "storage/archive/archive.hpp"
#include "storage/archive/blob_set.hpp"
#include "storage/joint/joined_files.hpp"
#include "storage/start/context.hpp"
#include "storage/start/earlier_process.hpp"

namespace semel::storage {

class StoredFiles {
 public:
  StoredFiles(const Context& context, std::unique_ptr<Archive> archive, EarlierProcess earlier,
              std::vector<OldSegment> segments, LogOffset drained);

  mutable base::Mutex mutex;  // see above

  // --- any thread --------------------------------------------------------------------------------
  [[nodiscard]] Archive& archive() const noexcept { return *archive_; }
  [[nodiscard]] JoinedFiles joined() const noexcept {
    return {archive_->database(), archive_->family(joined_family)};
  }
  [[nodiscard]] bool has_joined() const noexcept { return joined().family() != nullptr; }
  [[nodiscard]] const EarlierProcess& earlier() const noexcept { return earlier_; }
  /// Everything before it is in files on the disk.
  [[nodiscard]] LogOffset drained() const noexcept {
    return drained_.load(std::memory_order_acquire);  // mo: acquire [storage.drained]
  }
  /// Segments of earlier processes that are not drained.
  [[nodiscard]] bool has_old_segments() const noexcept {
    return old_left_.load(std::memory_order_acquire);  // mo: acquire [storage.old_left]
  }
  /// Everything that is stored is in the engine.
  [[nodiscard]] bool is_recovered() const noexcept {
    return recovered_.load(std::memory_order_acquire);  // mo: acquire [storage.recovered]
  }
  void set_recovered() noexcept {
    recovered_.store(true, std::memory_order_release);  // mo: release [storage.recovered]
  }
  /// RocksDB's newest number that is known to be synced.
  [[nodiscard]] std::uint64_t rocks_sequence() const noexcept {
    return rocks_sequence_.load(std::memory_order_acquire);  // mo: acquire [storage.rocks_sequence]
  }
  void reached_sequence(std::uint64_t sequence) noexcept;
  /// Data before it is void. A stale value costs nothing: when it grows, the journal holds nothing
  /// before it.
  [[nodiscard]] LogOffset floor() const noexcept {
    return floor_.load(std::memory_order_relaxed);  // mo: relaxed: as above
  }
  /// On the durable clock: records that end by this time need not be kept. Until everything is
  /// recovered, this is the last time of the earlier process.
  [[nodiscard]] std::uint64_t ended_now() const noexcept;
  /// Of all files but the journal's.
  [[nodiscard]] std::uint64_t bytes() const;

  // --- changes -----------------------------------------------------------------------------------
  /// Changes the description on disk: `change` gets a copy. Errors: storage_failed.
  template <class Change>
  [[nodiscard]] Status describe(Change&& change) SEMEL_REQUIRES(mutex) {
    Description next = archive_->description();
    change(next);
    return archive_->describe(next);
  }
  /// Adds drained mutations, up to `drained` (0: as before), with versions up to `largest`. Errors:
  /// storage_failed, see Archive::add().
  [[nodiscard]] Status add(const BlobSet& blobs, LogOffset drained, Version largest)
      SEMEL_REQUIRES(mutex);
  /// No blob crosses this log offset: everything before it can be made void.
  void end_batch(LogOffset end) SEMEL_REQUIRES(mutex);
  /// Where the last batch ends that ended by `cut`; 0: it is not known any more.
  [[nodiscard]] LogOffset last_batch_end(LogOffset cut = ~LogOffset{0}) const SEMEL_REQUIRES(mutex);
  /// Makes everything before `floor` void, where a batch ends, and records the time. `cold` must
  /// have been there when records are recovered: it may have the only copy. Errors: storage_failed.
  [[nodiscard]] Status make_void(LogOffset floor, const ColdMark& cold) SEMEL_REQUIRES(mutex);
  /// Call before ended records are dropped: the next process must know until when this one lived. A
  /// hold of a remote owner that had not ended by the last time on disk gets its lease again,
  /// unless its release is still there. Errors: storage_failed.
  [[nodiscard]] Status record_time() SEMEL_REQUIRES(mutex);
  /// Removes files of ended spans, if there are any. Errors: storage_failed.
  [[nodiscard]] Status forget_ended(SpanNumber running) SEMEL_REQUIRES(mutex);
  /// The same, and rewrites files that ended spans share with others. Errors: storage_failed.
  [[nodiscard]] Status compact() SEMEL_REQUIRES(mutex);
  /// Segments of earlier processes in ascending order.
  [[nodiscard]] std::span<const OldSegment> old_segments() const SEMEL_REQUIRES(mutex) {
    return old_segments_;
  }
  /// Removes the first `count` of them, which are in files. Errors: storage_failed.
  [[nodiscard]] Status remove_old(std::size_t count) SEMEL_REQUIRES(mutex);

 private:
  static constexpr std::size_t batch_ends_max = 1024;
  void check_invariants() const SEMEL_REQUIRES(mutex);

  const Context& context_;
  const std::unique_ptr<Archive> archive_;
  const EarlierProcess earlier_;
  std::vector<OldSegment> old_segments_ SEMEL_GUARDED_BY(mutex);  // not drained yet
  /// Log offsets that no blob crosses, in ascending order. Only the newest batch_ends_max are kept.
  std::vector<LogOffset> batch_ends_ SEMEL_GUARDED_BY(mutex);
  std::atomic<bool> old_left_;                 // [storage.old_left]
  std::atomic<LogOffset> floor_;               // grows in make_void()
  std::atomic<LogOffset> drained_;             // [storage.drained]
  std::atomic<std::uint64_t> rocks_sequence_;  // [storage.rocks_sequence]
  std::atomic<bool> recovered_{false};         // [storage.recovered]
};

}  // namespace semel::storage
