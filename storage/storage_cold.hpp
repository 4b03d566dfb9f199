// What a storage does about its cold store: checks and binds it.
#pragma once

#include "semel/cold.hpp"
#include "semel/result.hpp"
#include "storage/files/stored_files.hpp"

namespace semel::storage {

/// Of records that were spilled the cold store has the only copy. Without it finished work would be
/// granted again. Errors: storage_damaged: `cold` (null: none) is not the one of these files.
[[nodiscard]] Status check_cold(const StoredFiles& files, const std::string& directory,
                                const ColdStore* cold) SEMEL_REQUIRES(files.mutex);
/// From now on they belong to each other, and `cold` keeps the time of the storage. Errors:
/// storage_damaged, storage_failed.
[[nodiscard]] Status bind_cold(StoredFiles& files, const Context& context, ColdStore* cold)
    SEMEL_EXCLUDES(files.mutex);

}  // namespace semel::storage
