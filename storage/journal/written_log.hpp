// What of the journal is written, and what of it is on the disk: for the syncing thread.
//
// Concurrency
//   [log.seal]       release store of the last word of a record's seal, acquire loads by the
//                    syncing and the draining thread. In the file it marks the record as complete.
//                    The second word of a long head likewise shows that the first is there.
#pragma once

#include "base/mutex.hpp"
#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "storage/journal/log_extent.hpp"
#include "storage/journal/segment_ring.hpp"
#include "storage/log/disk.hpp"

namespace semel::storage {

/// Belongs to the syncing thread, but for whole(), which is thread-safe.
class WrittenLog {
 public:
  /// All must outlive this.
  WrittenLog(Disk& disk, const LogExtent& extent, SegmentRing& ring) noexcept
      : disk_(disk), extent_(extent), ring_(ring) {}
  WrittenLog(const WrittenLog&) = delete;
  WrittenLog& operator=(const WrittenLog&) = delete;

  /// Returns when everything before `to` has reached the disk. Errors: storage_failed; it is then
  /// unknown which bytes have reached the disk.
  [[nodiscard]] Status sync(LogOffset to);
  /// The first offset in [from, to) that is reserved but not written yet; `to`: none. `from` is the
  /// end of a record.
  [[nodiscard]] LogOffset written(LogOffset from, LogOffset to);
  /// Everything before it is written; it may lag behind, but never leads.
  [[nodiscard]] LogOffset whole();

  /// Invariant: synced_ <= tail.
  void check_invariants();

 private:
  Disk& disk_;
  const LogExtent& extent_;
  SegmentRing& ring_;
  LogOffset synced_ SEMEL_GUARDED_BY(ring_.mutex()) = 0;
};

}  // namespace semel::storage
