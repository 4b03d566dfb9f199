// How many segments of the journal are kept ready, and how they are made, by what writers have
// done.
//
// Of the draining thread, and of the start before it.
#pragma once

#include <cstdint>

#include "semel/result.hpp"
#include "storage/journal/log.hpp"
#include "storage/log/signal.hpp"
#include "storage/log/stopwatch.hpp"
#include "storage/start/context.hpp"
#include "storage/sync/sync_progress.hpp"

namespace semel::storage {

class SpareSegments {
 public:
  /// `progress` is raised for writers that wait for a segment.
  SpareSegments(const Context& context, Log& log, const SyncProgress& sync,
                Signal& progress) noexcept
      : context_(context),
        log_(log),
        sync_(sync),
        progress_(progress),
        prepared_tail_(log.tail()),
        measured_ms_(context.durable_now()),
        measured_tail_(log.tail()) {}

  /// Makes the segments that the journal wants. Errors: storage_failed.
  [[nodiscard]] Status prepare();
  /// Call before this thread drains `count` segments: it prepares none while it drains. Prepares as
  /// many as writers are likely to fill by then. Without room for a change a writer is refused, at
  /// every level. `is_full_batch`: the batch has the largest size.
  void ensure_spare_segments(std::uint64_t count, bool is_full_batch);
  /// Call after draining: writers are likely to fill as many segments next time as they filled
  /// during it.
  void drained() noexcept;
  /// Call regularly. True: measured anew. A storage with few writes gives back its spare segments.
  bool measure_write_rate();
  /// Less than a segment was appended within five seconds of the durable clock.
  [[nodiscard]] bool is_write_rate_low() const noexcept { return is_write_rate_low_; }

 private:
  const Context& context_;
  Log& log_;
  const SyncProgress& sync_;
  Signal& progress_;
  // Whether new segments are written full of zeros, and the state when that was decided.
  bool zeroes_ = true;
  std::uint64_t prepared_rounds_ = 0;  // of syncing, requested
  LogOffset prepared_tail_;
  // The state when the rate was measured.
  bool is_write_rate_low_ = false;
  std::uint64_t measured_ms_;
  LogOffset measured_tail_;
  std::uint64_t draining_from_ = 0;  // the segment that was written when draining began
  std::uint64_t filled_ = 0;         // segments, while the newest batch was drained
  Stopwatch since_drain_;
};

}  // namespace semel::storage
