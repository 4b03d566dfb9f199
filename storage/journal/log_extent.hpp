// How far the journal goes: what writers have reserved, which segments there are, and whether these
// have room for new work.
//
//   oldest()        number_of(tail())           number_of(room()) - 1
//   |  complete ..  |  being written  |  ready  |  in reserve  |
//
// Concurrency
//   [log.tail]       the next free offset: seq_cst fetch_add of writers, acquire loads by threads
//                    that want everything appended so far to be synced or drained.
//   [log.state]      a hint whether there is room, so that callers need not read the tail before
//                    each change, which would move its cache line between processors. The reserve
//                    covers a stale value; each thread that changes its inputs stores it again.
//   [log.room]       the end of the prepared segments: release by the preparing thread, acquire
//                    before each change.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/assert.hpp"
#include "semel/journal.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

/// Thread-safe, but for the functions of the preparing thread.
class LogExtent {
 public:
  static constexpr std::size_t segment_count = 32;  ///< together at most the bound of the journal

  /// `segment_bytes`: a power of two.
  LogExtent(std::size_t segment_bytes, std::uint64_t first_number) noexcept
      : segment_bytes_(segment_bytes),
        shift_(std::countr_zero(segment_bytes)),
        tail_(begin_of(first_number)) {
    SEMEL_ASSERT(std::has_single_bit(segment_bytes));
    SEMEL_ASSERT(first_number > 0);  // 0: none was made
  }

  // --- offsets ----------------------------------------------------------------------------------
  [[nodiscard]] std::size_t segment_bytes() const noexcept { return segment_bytes_; }
  [[nodiscard]] std::uint64_t number_of(LogOffset offset) const noexcept {
    return offset >> shift_;
  }
  [[nodiscard]] std::size_t offset_in_segment(LogOffset offset) const noexcept {
    return offset & (segment_bytes_ - 1);
  }
  /// Behind the header of a segment, and behind its last byte.
  [[nodiscard]] LogOffset begin_of(std::uint64_t number) const noexcept {
    return number * segment_bytes_ + segment_header_bytes;
  }
  [[nodiscard]] LogOffset end_of(std::uint64_t number) const noexcept {
    return (number + 1) * segment_bytes_;
  }

  // --- the tail, of writers ---------------------------------------------------------------------
  /// The end of everything appended so far.
  [[nodiscard]] LogOffset tail() const noexcept {
    return tail_.load(std::memory_order_acquire);  // mo: acquire [log.tail]: see reserve()
  }
  /// The end of what segments must exist for: the same, or the end of the segment before if only a
  /// header lies between. On a full disk writers may have reserved, and wait, where no segment is.
  [[nodiscard]] LogOffset used() const noexcept {
    const LogOffset at = tail();
    const LogOffset end =
        offset_in_segment(at) <= segment_header_bytes ? at - offset_in_segment(at) : at;
    return has_begun() ? std::min(end, room()) : end;
  }
  /// The tail, for a thread that has emptied the slot of a segment before.
  [[nodiscard]] LogOffset tail_after_slot() const noexcept {
    return tail_.load(std::memory_order_seq_cst);  // mo: seq_cst [log.take_back]
  }
  /// Returns where the reserved bytes begin; they may cross into the next segment.
  [[nodiscard]] LogOffset reserve(std::size_t bytes) noexcept {
    // mo: seq_cst [log.tail]: a thread that reads the tail afterwards also sees earlier appends,
    //     and a sync up to it covers that. [log.take_back]: the slot is read after it.
    const LogOffset offset = tail_.fetch_add(bytes, std::memory_order_seq_cst);
    if ((offset ^ (offset + bytes)) >= state_step()) refresh_state();
    return offset;
  }
  /// Reserves everything from `offset`, which is the tail, up to `to`. False: it is not any more.
  [[nodiscard]] bool reserve_to(LogOffset offset, LogOffset to) noexcept;

  // --- whether there is room --------------------------------------------------------------------
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

  // --- segments, changed by the preparing thread ------------------------------------------------
  /// 0: none was made.
  [[nodiscard]] std::uint64_t oldest() const noexcept {
    return oldest_.load(std::memory_order_acquire);  // mo: acquire [log.room]
  }
  [[nodiscard]] LogOffset room() const noexcept {
    return room_.load(std::memory_order_acquire);  // mo: acquire [log.room]
  }
  /// False: no segment was made yet, so there is no room for anything.
  [[nodiscard]] bool has_begun() const noexcept { return oldest() != 0; }
  void note_made(std::uint64_t number) noexcept;
  void note_released(std::uint64_t number) noexcept;
  void note_taken_back(std::uint64_t number) noexcept;

 private:
  static constexpr std::uint8_t state_accepts = 1;
  static constexpr std::uint8_t state_crowded = 2;
  static constexpr std::uint8_t state_frees = 4;
  /// How far the tail may have moved since state_ was stored.
  [[nodiscard]] std::size_t state_step() const noexcept { return segment_bytes_ / 64; }
  [[nodiscard]] std::uint8_t measure() const noexcept;
  void refresh_state() noexcept;

  const std::size_t segment_bytes_;
  const int shift_;
  alignas(64) std::atomic<LogOffset> tail_;
  alignas(64) std::atomic<LogOffset> room_{0};
  std::atomic<std::uint64_t> oldest_{0};
  alignas(64) std::atomic<std::uint8_t> state_{state_crowded};
};

}  // namespace semel::storage
