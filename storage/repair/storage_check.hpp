// The check of verify_storage(), for callers that hold the lock and have a view.
#pragma once

#include <string>

#include "semel/storage_tools.hpp"
#include "storage/repair/storage_view.hpp"

namespace semel::storage {

/// Of a backup: adds the files that are not what its list says to the findings. Errors:
/// storage_failed (it was not completed), storage_damaged (the list itself).
[[nodiscard]] Status check_backup_list(const std::string& directory, StorageCheck& check);

[[nodiscard]] Status check_storage(StorageView& view, StorageCheck& check,
                                   const TellProgress& progress);

}  // namespace semel::storage
