// The log as it is written: segments mapped into memory, places taken by one fetch_add.
//
// Concurrency
//   tail_            the next free place. Only uniqueness and growth are asked of fetch_add.
//   [log.segment]    a slot of the ring: release store by the preparing thread, acquire load of
//                    those who write into it. A stale null only makes them wait.
//   [log.seal]       release store of a record's seal, pairs with the acquire load of the drainer;
//                    in the file it is what makes the record whole.
//   [log.completed]  bytes of a segment that are written, added with release, read with acquire:
//                    when all are there, the drainer reads the segment and nobody writes it.
//   [log.state]      whether there is room, for those who ask before each change: they would pull
//                    the tail's line from one processor to the other. A hint: the reserve bears
//                    that it is late, and whoever changes what it rests on sets it anew.
//   [log.room]       the end of the prepared segments: release by the preparing thread, acquire
//                    before each change.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "semel/journal.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/log_format.hpp"
#include "storage/log/signal.hpp"
#include "storage/log/time_line.hpp"

namespace semel::storage {

/// One mapped segment.
class Segment {
 public:
  /// Makes the file, which must not be there, and its header. Errors: storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<Segment>> make(Disk& disk,
                                                             const std::string& directory,
                                                             const SegmentHeader& header,
                                                             bool zeroed);
  /// Makes one of the file and the memory of another, which is not used any more: their blocks and
  /// pages are there, and to get new ones costs far more than to fill them with zeros. Whoever
  /// finds the old name finds a segment that was drained. Errors: storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<Segment>> reuse(Disk& disk,
                                                              std::unique_ptr<Segment> old,
                                                              const std::string& directory,
                                                              const SegmentHeader& header);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] std::uint64_t number() const noexcept { return header_.number; }
  [[nodiscard]] const SegmentHeader& header() const noexcept { return header_; }
  [[nodiscard]] std::uint64_t salt() const noexcept { return header_.salt; }
  [[nodiscard]] Place begin() const noexcept { return header_.number * header_.bytes; }
  [[nodiscard]] Place end() const noexcept { return begin() + header_.bytes; }
  [[nodiscard]] char* at(Place place) const noexcept { return bytes_ + (place - begin()); }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_, header_.bytes}; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  void complete(std::size_t bytes) noexcept {
    completed_.fetch_add(bytes, std::memory_order_release);  // mo: release [log.completed]
  }
  [[nodiscard]] bool is_complete() const noexcept {
    // mo: acquire [log.completed]
    return completed_.load(std::memory_order_acquire) >= header_.bytes;
  }
  [[nodiscard]] std::size_t completed() const noexcept {
    return completed_.load(std::memory_order_acquire);  // mo: acquire [log.completed]
  }
  /// From one place to another; everything between them is written, and nobody writes it again.
  [[nodiscard]] Status sync(Disk& disk, Place from, Place to);
  /// Makes its pages ready to be written, so that no caller meets the faults.
  void touch() noexcept;

 private:
  Segment(const SegmentHeader& header, std::string path, int descriptor, char* bytes)
      : header_(header), path_(std::move(path)), descriptor_(descriptor), bytes_(bytes) {}

  const SegmentHeader header_;
  const std::string path_;
  const int descriptor_;
  char* bytes_;  // null: reused
  alignas(64) std::atomic<std::size_t> completed_{segment_header_bytes};
};

class Log {
 public:
  static constexpr std::size_t segment_count = 32;  ///< that share the bound of the log
  static constexpr std::size_t spare_max = 8;       ///< of them, kept to be used again

  struct Setup {
    std::string directory;
    std::size_t segment_bytes = 0;  ///< a power of two
    std::uint64_t storage_id = 0;
    std::uint64_t first_number = 1;
    Millis wait_at_most{10'000};  ///< for the next segment, where there is none
  };
  /// `crossed` is raised whenever a segment has been left.
  Log(Disk& disk, Setup setup, Signal& crossed) noexcept
      : disk_(disk),
        setup_(std::move(setup)),
        shift_(std::countr_zero(setup_.segment_bytes)),
        crossed_(crossed),
        tail_(begin_of(setup_.first_number)) {}

  // --- those who write ------------------------------------------------------------------------
  /// Writes one group and returns the place behind it. Progress: lock-free while there is room;
  /// waits for the next segment where there is none, which accepts() is there to prevent.
  /// 0: the log was stopped meanwhile, or there was no segment in time; nothing was written, or a
  /// part that counts for nothing.
  [[nodiscard]] Place append(std::span<const Mutation> group, const TimeLine& line, Timestamp now);
  /// A place of its own with nothing in it.
  [[nodiscard]] Place reserve();
  /// False: no new work; there is room for what is under way.
  [[nodiscard]] bool accepts() const noexcept {
    return (state_.load(std::memory_order_relaxed) & state_accepts) != 0;  // mo: [log.state]
  }
  /// Callers should wait: three quarters of the bound are in use, or the reserve is near.
  [[nodiscard]] bool is_crowded() const noexcept {
    return (state_.load(std::memory_order_relaxed) & state_crowded) != 0;  // mo: [log.state]
  }
  /// The place behind all that was ever appended.
  [[nodiscard]] Place tail() const noexcept {
    return tail_.load(std::memory_order_acquire);  // mo: acquire: see append()
  }
  /// The same, if only a header lies between, the end of the segment before.
  [[nodiscard]] Place used() const noexcept {
    const Place at = tail();
    return offset_of(at) <= segment_header_bytes ? at - offset_of(at) : at;
  }
  /// The largest group that is taken.
  [[nodiscard]] std::size_t group_bytes_max() const noexcept {
    return setup_.segment_bytes * (segment_count / 4);
  }
  [[nodiscard]] std::size_t segment_bytes() const noexcept { return setup_.segment_bytes; }
  [[nodiscard]] std::uint64_t number_of(Place place) const noexcept { return place >> shift_; }

  // --- the one thread that syncs
  // ------------------------------------------------------------------
  /// Returns when everything before `to` that was appended has reached the disk. Errors:
  /// storage_failed; then nobody knows what has.
  [[nodiscard]] Status sync(Place to);
  /// The first place in [from, to) that somebody has taken and not written yet; `to`: none. `from`
  /// is the end of a record.
  [[nodiscard]] Place written(Place from, Place to);
  /// Everything before it is written, by a look that may come too early but never too late.
  [[nodiscard]] Place whole();

  // --- the one thread that prepares and takes away -----------------------------------------------
  /// Makes the next segment, of a spare one if there is one. `zeroed`: syncs of little are fast,
  /// but every byte is written twice. Errors: storage_failed.
  [[nodiscard]] Status prepare(bool zeroed);
  [[nodiscard]] bool wants_segment() const noexcept;
  /// Lets go of the segments up to `number`, which are complete and in the archive; some become
  /// spare ones.
  [[nodiscard]] Status release(std::uint64_t number);
  /// Fills the rest of the segment that is being written, so that it becomes complete.
  void close_segment();
  /// Those who wait for a segment are let go with nothing.
  void stop() noexcept {
    stopped_.store(true, std::memory_order_release);  // mo: release [log.segment]
  }

  /// Null: not there (any more). Valid until it is released.
  [[nodiscard]] Segment* segment(std::uint64_t number) const noexcept {
    // mo: acquire [log.segment]
    Segment* const found = ring_[number % ring_.size()].load(std::memory_order_acquire);
    return found != nullptr && found->number() == number ? found : nullptr;
  }
  [[nodiscard]] std::uint64_t oldest() const noexcept {
    return oldest_.load(std::memory_order_acquire);  // mo: acquire [log.room]
  }
  [[nodiscard]] Place room() const noexcept {
    return room_.load(std::memory_order_acquire);  // mo: acquire [log.room]
  }
  /// Bytes of all its files.
  [[nodiscard]] std::size_t file_bytes() const noexcept {
    // mo: relaxed: a statistic
    const std::uint64_t spare = spare_count_.load(std::memory_order_relaxed);
    return (number_of(room()) - oldest() + spare) * setup_.segment_bytes;
  }
  /// Removes the files of segments that nothing was written to, at the end.
  void remove_unused();

 private:
  /// What operations under way may still append when accepts() has become false. One segment: each
  /// of some hundred threads may bring a value of some 10 KiB, or one of them a large one.
  [[nodiscard]] std::size_t reserve_bytes() const noexcept { return setup_.segment_bytes; }
  [[nodiscard]] std::size_t offset_of(Place place) const noexcept {
    return place & (setup_.segment_bytes - 1);
  }
  [[nodiscard]] Place begin_of(std::uint64_t number) const noexcept {
    return number * setup_.segment_bytes + segment_header_bytes;
  }
  static constexpr std::uint8_t state_accepts = 1;
  static constexpr std::uint8_t state_crowded = 2;
  /// How far the tail may have gone on since state_ was set.
  [[nodiscard]] std::size_t state_step() const noexcept { return setup_.segment_bytes / 64; }
  [[nodiscard]] std::uint8_t measure() const noexcept;
  void refresh_state() noexcept;
  /// Null: stopped, or there was none in time, and the log has stopped with it.
  [[nodiscard]] Segment* wait_for_segment(std::uint64_t number) noexcept;
  /// A place for a record of `payload` bytes that lies in one segment. Null: stopped.
  [[nodiscard]] Segment* take(std::size_t payload, Place& place);
  void fill(Place from, Place to);
  [[nodiscard]] Place append_parts(std::string_view group);

  Disk& disk_;
  const Setup setup_;
  const int shift_;  // of the segment's bytes, a power of two
  Signal& crossed_;
  alignas(64) std::atomic<Place> tail_;
  alignas(64) std::atomic<Place> room_{0};
  std::atomic<std::uint64_t> oldest_{0};
  std::atomic<bool> stopped_{false};
  alignas(64) std::atomic<std::uint8_t> state_{state_crowded};
  std::array<std::atomic<Segment*>, 2 * segment_count> ring_{};
  // Of the preparing thread, which takes the mutex to destroy one, as do others to use one.
  std::array<std::unique_ptr<Segment>, 2 * segment_count> segments_{};
  std::vector<std::unique_ptr<Segment>> spare_;  // of the preparing thread
  std::atomic<std::uint64_t> spare_count_{0};
  std::mutex segments_mutex_;
  Place synced_ = 0;  // under segments_mutex_
};

}  // namespace semel::storage
