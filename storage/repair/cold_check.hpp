// A cold directory as the tools read it: locked, and never written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "semel/storage_tools.hpp"
#include "storage/cold/cold_bond.hpp"
#include "storage/repair/storage_view.hpp"

namespace semel::storage {

struct ColdReading {
  ColdMark mark;  ///< id 0: it is new, or cannot be read
  ColdBond bond;
  std::vector<StorageInfo::PartInfo> parts;
  std::uint64_t records = 0;  ///< that could be read
  std::uint64_t bytes = 0;
  std::vector<StorageFinding> findings;
};

/// Where the cold store of a storage is: `named`, else "cold" in its directory. None: nothing is
/// there.
[[nodiscard]] std::optional<std::string> find_cold(const std::string& directory,
                                                   const std::string& named);

/// Reads all of it with `is_thorough`, else what it says about itself. Damage is a finding. Errors:
/// storage_in_use, storage_newer.
[[nodiscard]] Result<ColdReading> read_cold(const std::string& directory, bool is_thorough);

[[nodiscard]] ColdNeeds needs_of(const StorageView& view);

/// As Storage::recover() does, and whether it is whole.
[[nodiscard]] Status check_cold(const StorageView& view, const std::string& named, ColdCheck& check,
                                const TellProgress& progress);

}  // namespace semel::storage
