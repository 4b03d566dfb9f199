// What an earlier process left in the directory: its checkpoint, its time, segments of its journal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "semel/result.hpp"
#include "storage/archive/archive.hpp"
#include "storage/log/checkpoint.hpp"
#include "storage/log/durable_clock.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/start/context.hpp"

namespace semel::storage {

/// A segment that an earlier process wrote. Invariant: begin <= stop <= end.
struct OldSegment {
  std::string path;
  LogOffset begin = 0;
  LogOffset end = 0;
  LogOffset stop = end;  // data from here on is ignored
};

struct EarlierProcess {
  CheckpointContent checkpoint;  // sequence 0: it wrote none
  Anchor anchor;                 // of the last process that had recovered everything
  /// On the durable clock: records that had ended by this time are gone. Those that ended later did
  /// so while no process ran, and matter until everything is recovered.
  std::uint64_t ended_before_ms = 0;
  /// The machine has kept all that it wrote, synced or not.
  bool same_boot = false;

  /// Segments in ascending order that must be drained; files without any data are removed. Nothing
  /// is changed before all of it is judged. Errors: storage_damaged, storage_failed.
  [[nodiscard]] Result<std::vector<OldSegment>> find_segments(const Context& context,
                                                              const Archive& archive,
                                                              LogOffset drained) const;
  /// `at_end` is called while the bytes of all records are still there. Errors: storage_damaged,
  /// storage_failed.
  [[nodiscard]] Result<ScanReport> scan(
      const OldSegment& segment, const VisitRecord& visit,
      const std::function<void()>& at_end = [] {}) const;

 private:
  [[nodiscard]] ScanRules rules() const noexcept;
  [[nodiscard]] Status stop_at_gaps(const Context& context, const Description& is,
                                    LogOffset drained, std::vector<OldSegment>& segments) const;
};

}  // namespace semel::storage
