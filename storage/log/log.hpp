// The journal as it is written: segments mapped into memory; writers reserve space by one
// fetch_add.
//
// Concurrency
//   [log.tail]       the next free offset: seq_cst fetch_add of writers, acquire loads by threads
//                    that want everything appended so far to be synced or drained.
//   [log.segment]    a slot of the ring: release store by the preparing thread, seq_cst load by
//                    writers. A stale null only makes them wait.
//   [log.seal]       release store of the last word of a record's seal, acquire loads by the
//                    syncing and the draining thread. In the file it marks the record as complete.
//                    The second word of a long head likewise shows that the first is there.
//   [log.take_back]  the slot of a segment that is taken back is emptied before the tail is read; a
//                    writer moves the tail before it reads the slot. All four are seq_cst, so
//                    either the writer finds no segment and waits, or its move is seen and the
//                    segment stays.
//   [log.state]      a hint whether there is room, so that callers need not read the tail before
//                    each change, which would move its cache line between processors. The reserve
//                    covers a stale value; each thread that changes its inputs stores it again.
//   [log.room]       the end of the prepared segments: release by the preparing thread, acquire
//                    before each change.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "semel/journal.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/durable_clock.hpp"
#include "storage/log/log_format.hpp"
#include "storage/log/log_record.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/log/segment.hpp"
#include "storage/log/signal.hpp"

namespace semel::storage {

class Log {
 public:
  static constexpr std::size_t segment_count = 32;  ///< together at most the bound of the journal
  static constexpr std::size_t spare_max = 8;       ///< of them, kept for reuse
  /// A long record's head has 29 bits for the bytes of its payload.
  static constexpr std::size_t segment_bytes_max = std::size_t{1} << 29;

  struct Setup {
    std::string directory;
    std::size_t segment_bytes = 0;  ///< a power of two
    std::uint64_t storage_id = 0;
    std::uint64_t first_number = 1;
    Millis wait_at_most{10'000};  ///< for the next segment
    Segment::Access access = Segment::Access::mapped;
    MutationBase base{};  ///< near what will be appended
  };
  /// `crossed` is raised whenever the tail has left a segment.
  Log(Disk& disk, Setup setup, Signal& crossed)
      : disk_(disk),
        setup_(std::move(setup)),
        shift_(std::countr_zero(setup_.segment_bytes)),
        drain_signal_(crossed),
        tail_(begin_of(setup_.first_number)),
        base_version_(setup_.base.version),
        base_ms_(setup_.base.ms),
        next_base_version_(setup_.base.version),
        next_base_ms_(setup_.base.ms) {
    SEMEL_ASSERT(std::has_single_bit(setup_.segment_bytes));
    SEMEL_ASSERT(setup_.segment_bytes > segment_header_bytes);
    SEMEL_ASSERT(setup_.segment_bytes <= segment_bytes_max);
    SEMEL_ASSERT(setup_.first_number > 0);  // 0: none was made
    spare_.reserve(spare_max);              // release() needs no memory for them
  }

  // --- writers ----------------------------------------------------------------------------------
  /// Writes one group and returns its end. 0: the journal was stopped, a file cannot be written, or
  /// no segment was ready in time; nothing was written, or some parts of a group, which recovery
  /// ignores. Progress: lock-free while there is room; else waits for the next segment, which
  /// accepts() normally prevents.
  [[nodiscard]] LogOffset append(std::span<const Mutation> group, const DurableClock& durable_clock,
                                 Timestamp now);
  /// Reserves an empty record and returns its end.
  [[nodiscard]] LogOffset reserve();
  /// False: refuse new work; there is still room for operations under way.
  [[nodiscard]] bool accepts() const noexcept {
    return (state_.load(std::memory_order_relaxed) & state_accepts) != 0;  // mo: [log.state]
  }
  /// The same for changes that only free. They have a reserve of half a segment, so they are
  /// accepted when new work is not, until it is used up.
  [[nodiscard]] bool accepts_frees() const noexcept {
    return (state_.load(std::memory_order_relaxed) & state_frees) != 0;  // mo: [log.state]
  }
  /// True: callers should wait, as three quarters of the bound are in use or the reserve is near.
  [[nodiscard]] bool is_crowded() const noexcept {
    return (state_.load(std::memory_order_relaxed) & state_crowded) != 0;  // mo: [log.state]
  }
  /// The end of everything appended so far.
  [[nodiscard]] LogOffset tail() const noexcept {
    return tail_.load(std::memory_order_acquire);  // mo: acquire [log.tail]: see allocate()
  }
  /// The same, or the end of the segment before if only a header lies between.
  [[nodiscard]] LogOffset used() const noexcept {
    const LogOffset at = tail();
    return offset_in_segment(at) <= segment_header_bytes ? at - offset_in_segment(at) : at;
  }
  /// The largest group that append() accepts.
  [[nodiscard]] std::size_t group_bytes_max() const noexcept {
    return setup_.segment_bytes * (segment_count / 4);
  }
  [[nodiscard]] std::size_t segment_bytes() const noexcept { return setup_.segment_bytes; }
  [[nodiscard]] std::uint64_t number_of(LogOffset offset) const noexcept {
    return offset >> shift_;
  }

  // --- the syncing thread -----------------------------------------------------------------------
  /// Returns when everything before `to` has reached the disk. Errors: storage_failed; it is then
  /// unknown which bytes have reached the disk.
  [[nodiscard]] Status sync(LogOffset to);
  /// The first offset in [from, to) that is reserved but not written yet; `to`: none. `from` is the
  /// end of a record.
  [[nodiscard]] LogOffset written(LogOffset from, LogOffset to);
  /// Everything before it is written; it may lag behind, but never leads.
  [[nodiscard]] LogOffset whole();

  // --- the draining thread: prepares and releases segments ---------------------------------------
  /// Makes the next segment, from a spare one if there is one. `zeroed`: small syncs are faster,
  /// but every byte is written twice. Errors: storage_failed.
  [[nodiscard]] Status prepare(bool zeroed);
  /// Makes the first two segments, or none: with one nothing is accepted, and on a full disk
  /// draining needs its space. Only while none was made. Errors: storage_failed.
  [[nodiscard]] Status begin();
  /// False: no segment was made yet, so there is no room for anything.
  [[nodiscard]] bool has_begun() const noexcept { return oldest() != 0; }
  [[nodiscard]] bool wants_segment() const noexcept;
  /// Writers are expected to fill so many segments while this thread drains and makes none: so many
  /// are kept ready from now on, within bounds.
  void expect(std::uint64_t segments) noexcept;
  /// True: writers have more segments before them than the one in reserve.
  [[nodiscard]] bool is_ahead() const noexcept { return number_of(tail()) + 2 < number_of(room()); }
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
  /// Fills the rest of the current segment, so that it becomes complete.
  void close_segment();
  /// Ends all waits for a segment; append() returns 0 then.
  void stop() noexcept {
    stopped_.store(true, std::memory_order_release);  // mo: release [log.segment]
  }

  /// Null: not made yet, or released. Valid until it is released.
  [[nodiscard]] Segment* segment(std::uint64_t number) const noexcept {
    // mo: seq_cst [log.segment] [log.take_back]
    Segment* const found = ring_[number % ring_.size()].load(std::memory_order_seq_cst);
    return found != nullptr && found->number() == number ? found : nullptr;
  }
  [[nodiscard]] std::uint64_t oldest() const noexcept {
    return oldest_.load(std::memory_order_acquire);  // mo: acquire [log.room]
  }
  [[nodiscard]] LogOffset room() const noexcept {
    return room_.load(std::memory_order_acquire);  // mo: acquire [log.room]
  }
  /// Bytes of all its files.
  [[nodiscard]] std::size_t file_bytes() const noexcept {
    // mo: relaxed: a statistic
    const std::uint64_t spare = spare_count_.load(std::memory_order_relaxed);
    return (number_of(room()) - oldest() + spare) * setup_.segment_bytes;
  }
  /// Removes the files of unused segments, at the end.
  void remove_unused();

 private:
  /// What operations under way may still append after accepts() became false. One segment: enough
  /// for some hundred threads with values of some 10 KiB each, or for one large value.
  [[nodiscard]] std::size_t reserve_bytes() const noexcept { return setup_.segment_bytes; }
  [[nodiscard]] std::size_t frees_bytes() const noexcept { return setup_.segment_bytes / 2; }
  [[nodiscard]] std::size_t offset_in_segment(LogOffset offset) const noexcept {
    return offset & (setup_.segment_bytes - 1);
  }
  [[nodiscard]] LogOffset begin_of(std::uint64_t number) const noexcept {
    return number * setup_.segment_bytes + segment_header_bytes;
  }
  static constexpr std::uint64_t ready_min = 3;
  static constexpr std::uint64_t ready_max = segment_count / 2;
  static constexpr std::uint8_t state_accepts = 1;
  static constexpr std::uint8_t state_crowded = 2;
  static constexpr std::uint8_t state_frees = 4;
  /// How far the tail may have moved since state_ was stored.
  [[nodiscard]] std::size_t state_step() const noexcept { return setup_.segment_bytes / 64; }
  [[nodiscard]] std::uint8_t measure() const noexcept;
  void refresh_state() noexcept;
  /// Null: the journal was stopped, or stops now because no segment was ready in time.
  [[nodiscard]] Segment* wait_for_segment(std::uint64_t number) noexcept;
  /// Reserves space for a record of `payload` bytes within one segment. Null: stopped.
  [[nodiscard]] Segment* allocate(std::size_t payload, LogOffset& offset);
  void fill(LogOffset from, LogOffset to);
  [[nodiscard]] Result<std::unique_ptr<Segment>> make(std::uint64_t number, bool zeroed);
  void publish(std::unique_ptr<Segment> made);
  [[nodiscard]] LogOffset append_parts(std::string_view group);
  [[nodiscard]] LogOffset write_group(Segment& segment, LogOffset offset, std::size_t bytes,
                                      std::span<const Mutation> group,
                                      const DurableClock& durable_clock, Timestamp now,
                                      MutationForm form);
  /// A group has come to another segment than the one before: the next ones expect its base, and
  /// segments that are made from now on have a base near to the group.
  void enter(const Segment& segment, const MutationBase& newest) noexcept;
  [[nodiscard]] LogOffset fail_write() noexcept;

  Disk& disk_;
  const Setup setup_;
  const int shift_;  // of the segment's bytes, a power of two
  Signal& drain_signal_;
  alignas(64) std::atomic<LogOffset> tail_;
  alignas(64) std::atomic<LogOffset> room_{0};
  std::atomic<std::uint64_t> oldest_{0};
  std::atomic<bool> stopped_{false};
  alignas(64) std::atomic<std::uint8_t> state_{state_crowded};
  std::array<std::atomic<Segment*>, 2 * segment_count> ring_{};
  // Of the preparing thread. It takes the mutex to destroy a segment, as others do to use one.
  std::array<std::unique_ptr<Segment>, 2 * segment_count> segments_{};
  std::vector<std::unique_ptr<Segment>> spare_;  // of the preparing thread
  std::uint64_t ready_ = ready_min;              // of the preparing thread
  bool keeps_spares_ = true;                     // likewise
  std::atomic<std::uint64_t> spare_count_{0};
  // Hints, so relaxed: the segment that a group is encoded for before it is known to which one it
  // comes, with its base, and the base of the next segments. They change once in a segment.
  alignas(64) std::atomic<std::uint64_t> entered_{0};
  std::atomic<Version> base_version_;
  std::atomic<std::uint64_t> base_ms_;
  std::atomic<Version> next_base_version_;
  std::atomic<std::uint64_t> next_base_ms_;
  base::Mutex segments_mutex_;
  LogOffset synced_ SEMEL_GUARDED_BY(segments_mutex_) = 0;
};

}  // namespace semel::storage
