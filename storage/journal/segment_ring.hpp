// The segments of the journal: made before writers need them, released when they are in the
// archive, and kept for reuse in between.
//
// Concurrency
//   [log.segment]    a slot of the ring: release store by the preparing thread, seq_cst load by
//                    writers. A stale null only makes them wait.
//   [log.take_back]  the slot of a segment that is taken back is emptied before the tail is read; a
//                    writer moves the tail before it reads the slot. All four are seq_cst, so
//                    either the writer finds no segment and waits, or its move is seen and the
//                    segment stays.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"
#include "storage/journal/base_hints.hpp"
#include "storage/journal/log_extent.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/segment.hpp"

namespace semel::storage {

struct LogSetup {
  std::string directory;
  std::size_t segment_bytes = 0;  ///< a power of two
  std::uint64_t storage_id = 0;
  std::uint64_t first_number = 1;
  Millis wait_at_most{10'000};  ///< for the next segment
  Segment::Access access = Segment::Access::mapped;
  MutationBase base{};  ///< near what will be appended
};

/// Belongs to the preparing thread, which also drains, but for segment() and file_bytes(), which
/// are thread-safe.
class SegmentRing {
 public:
  static constexpr std::size_t spare_max = 8;  ///< kept for reuse

  /// All must outlive this.
  SegmentRing(Disk& disk, const LogSetup& setup, LogExtent& extent, const BaseHints& bases);
  SegmentRing(const SegmentRing&) = delete;
  SegmentRing& operator=(const SegmentRing&) = delete;

  /// Null: not made yet, or released. Valid until it is released.
  [[nodiscard]] Segment* segment(std::uint64_t number) const noexcept {
    // mo: seq_cst [log.segment] [log.take_back]
    Segment* const found = ring_[number % ring_.size()].load(std::memory_order_seq_cst);
    return found != nullptr && found->number() == number ? found : nullptr;
  }
  /// Held while a segment is destroyed, and by other threads than writers while they use one.
  [[nodiscard]] base::Mutex& mutex() SEMEL_THREAD_ATTRIBUTE(lock_returned(mutex_)) {
    return mutex_;
  }
  /// Bytes of all files.
  [[nodiscard]] std::size_t file_bytes() const noexcept;

  // --- made -------------------------------------------------------------------------------------
  /// Makes the next segment, from a spare one if there is one. `zeroed`: small syncs are faster,
  /// but every byte is written twice. Errors: storage_failed.
  [[nodiscard]] Status prepare(bool zeroed);
  /// Makes the first two segments, or none: with one nothing is accepted, and on a full disk
  /// draining needs its space. Only while none was made. Errors: storage_failed.
  [[nodiscard]] Status begin();
  [[nodiscard]] bool wants_segment() const noexcept;
  /// Writers are expected to fill so many segments while this thread drains and makes none: so many
  /// are kept ready from now on, within bounds.
  void expect(std::uint64_t segments) noexcept;
  /// True: writers have more segments before them than the one in reserve.
  [[nodiscard]] bool is_ahead() const noexcept {
    return extent_.number_of(extent_.tail()) + 2 < extent_.number_of(extent_.room());
  }

  // --- released ---------------------------------------------------------------------------------
  /// Releases the segments up to `number`, which are complete and in the archive; some become
  /// spare.
  [[nodiscard]] Status release(std::uint64_t number);
  /// Whether released segments are kept for reuse, up to spare_max. A journal that is written
  /// slowly does without: a reused segment is filled with zeros, which reach the disk before its
  /// records.
  void keep_spares(bool keeps) noexcept { keeps_spares_ = keeps; }
  /// Removes the files of spare segments.
  void remove_spares();
  /// Removes the newest segments that are ready and were never written, down to those that writers
  /// have before them in a quiet time. One whose file cannot be removed stays, with those before
  /// it. See [log.take_back].
  void take_back();
  /// Removes the files of unused segments, at the end.
  void remove_unused();

  /// Invariant: a slot of the ring has the owned segment of its number, or null, while it is made
  /// and released. O(segments).
  void check_invariants() const noexcept;

 private:
  static constexpr std::size_t slot_count = 2 * LogExtent::segment_count;
  static constexpr std::uint64_t ready_min = 3;
  static constexpr std::uint64_t ready_max = LogExtent::segment_count / 2;
  [[nodiscard]] Result<std::unique_ptr<Segment>> make(std::uint64_t number, bool zeroed);
  void publish(std::unique_ptr<Segment> made);
  void note_spares() noexcept {
    spare_count_.store(spare_.size(), std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

  Disk& disk_;
  const LogSetup& setup_;
  LogExtent& extent_;
  const BaseHints& bases_;
  std::array<std::atomic<Segment*>, slot_count> ring_{};
  std::array<std::unique_ptr<Segment>, slot_count> segments_{};
  std::vector<std::unique_ptr<Segment>> spare_;
  std::uint64_t ready_ = ready_min;
  bool keeps_spares_ = true;
  std::atomic<std::uint64_t> spare_count_{0};
  base::Mutex mutex_;
};

}  // namespace semel::storage
