// The journal as it is written: segments mapped into memory; writers reserve space by one
// fetch_add.
//
//   LogExtent     how far it goes, and whether there is room
//   SegmentRing   its segments, of the preparing thread
//   WrittenLog    which part is written and synced, of the syncing thread
//   Log           appends, of writers
//
// The named pairs are at the heads of these.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/assert.hpp"
#include "semel/journal.hpp"
#include "storage/journal/base_hints.hpp"
#include "storage/journal/log_extent.hpp"
#include "storage/journal/segment_ring.hpp"
#include "storage/journal/written_log.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/durable_clock.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/log/segment.hpp"
#include "storage/log/signal.hpp"

namespace semel::storage {

class Log {
 public:
  /// A long record's head has 29 bits for the bytes of its payload.
  static constexpr std::size_t segment_bytes_max = std::size_t{1} << 29;
  using Setup = LogSetup;

  /// `crossed` is raised whenever the tail has left a segment.
  Log(Disk& disk, Setup setup, Signal& crossed)
      : setup_(std::move(setup)),
        drain_signal_(crossed),
        extent_(setup_.segment_bytes, setup_.first_number),
        bases_(setup_.base),
        ring_(disk, setup_, extent_, bases_),
        written_(disk, extent_, ring_) {
    SEMEL_ASSERT(setup_.segment_bytes > segment_header_bytes);
    SEMEL_ASSERT(setup_.segment_bytes <= segment_bytes_max);
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// How far it goes, and whether there is room. Thread-safe.
  [[nodiscard]] const LogExtent& extent() const noexcept { return extent_; }
  /// Of the preparing thread.
  [[nodiscard]] SegmentRing& segments() noexcept { return ring_; }
  [[nodiscard]] const SegmentRing& segments() const noexcept { return ring_; }
  /// Of the syncing thread.
  [[nodiscard]] WrittenLog& written() noexcept { return written_; }

  // --- writers, thread-safe ---------------------------------------------------------------------
  /// Writes one group and returns its end. 0: the journal was stopped, a file cannot be written, or
  /// no segment was ready in time; nothing was written, or some parts of a group, which recovery
  /// ignores. Progress: lock-free while there is room; else waits for the next segment, which
  /// LogExtent::accepts() normally prevents.
  [[nodiscard]] LogOffset append(std::span<const Mutation> group, const DurableClock& durable_clock,
                                 Timestamp now);
  /// Reserves an empty record and returns its end.
  [[nodiscard]] LogOffset reserve();
  [[nodiscard]] LogOffset tail() const noexcept { return extent_.tail(); }
  /// The largest group that append() accepts.
  [[nodiscard]] std::size_t group_bytes_max() const noexcept {
    return setup_.segment_bytes * (LogExtent::segment_count / 4);
  }
  /// Fills the rest of the current segment, so that it becomes complete.
  void close_segment();
  /// Ends all waits for a segment; append() returns 0 then.
  void stop() noexcept {
    stopped_.store(true, std::memory_order_release);  // mo: release [log.segment]
  }

 private:
  /// Null: the journal was stopped, or stops now because no segment was ready in time.
  [[nodiscard]] Segment* wait_for_segment(std::uint64_t number) noexcept;
  /// Reserves space for a record of `payload` bytes within one segment. Null: stopped.
  [[nodiscard]] Segment* allocate(std::size_t payload, LogOffset& offset);
  void fill(LogOffset from, LogOffset to);
  [[nodiscard]] LogOffset append_parts(std::string_view group);
  [[nodiscard]] LogOffset write_group(Segment& segment, LogOffset offset, std::size_t bytes,
                                      std::span<const Mutation> group,
                                      const DurableClock& durable_clock, Timestamp now,
                                      MutationForm form);
  [[nodiscard]] LogOffset fail_write() noexcept;

  const Setup setup_;
  Signal& drain_signal_;
  LogExtent extent_;
  std::atomic<bool> stopped_{false};
  BaseHints bases_;
  SegmentRing ring_;
  WrittenLog written_;
};

}  // namespace semel::storage
