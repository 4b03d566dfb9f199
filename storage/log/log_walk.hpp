// A segment read to its end whatever is in it, with the size of what is damaged.
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
    std::uint64_t bytes = 0;               ///< up to where the next record begins
    std::optional<std::uint64_t> records;  ///< none: not known
  };
  ScanReport report;
  std::vector<Damage> damage;
  std::uint64_t bytes = 0;  ///< of the file
};

/// Visits the groups of mutations that are whole; a group of parts, with the place of its last one.
/// The header must be right. Errors: storage_failed.
[[nodiscard]] Result<SegmentWalk> walk_segment(
    const std::string& path, const ScanRules& rules, PartCollector& parts,
    const std::function<void(Place place, Bytes group)>& visit);

}  // namespace semel::storage
