// The parts of a cold store, as an open finds them, with their filters.
#pragma once

#include <cstdint>
#include <memory>

#include "semel/result.hpp"
#include "storage/cold/cold_files.hpp"
#include "storage/cold/cold_parts.hpp"
#include "storage/log/durable_clock.hpp"

namespace semel::storage {

struct LoadedParts {
  std::shared_ptr<const Catalog> catalog{};
  std::uint64_t last_part = 0;  ///< the largest number; 0: there is none
  std::uint64_t newest_generation = 0;
  Version largest_version = 0;
};

/// Removes files that an earlier process has left as well. Errors: storage_damaged, storage_failed,
/// memory_full.
[[nodiscard]] Result<LoadedParts> load_parts(const ColdFiles& files, const DurableClock& clock);

}  // namespace semel::storage
