// Reads a segment to its end, and measures damage.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "semel/result.hpp"
#include "storage/log/log_scan.hpp"

namespace semel::storage {

struct SegmentWalk {
  struct Damage {
    LogDamage at;
    std::uint64_t bytes = 0;               ///< up to the next record
    std::optional<std::uint64_t> records;  ///< none: not known
  };
  ScanReport report;
  std::vector<Damage> damage;
  std::uint64_t bytes = 0;  ///< of the file
};

/// Visits complete groups of mutations; a group of several parts has the offset of its last part.
/// The header must be valid. Errors: storage_failed.
[[nodiscard]] Result<SegmentWalk> walk_segment(
    const std::string& path, const ScanRules& rules, PartCollector& parts,
    const std::function<void(LogOffset offset, Bytes group)>& visit);

}  // namespace semel::storage
