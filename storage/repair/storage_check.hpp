// The check of verify_storage(), for callers that hold the lock and have a view.
#pragma once

#include <string>

#include "semel/storage_tools.hpp"
#include "storage/repair/storage_view.hpp"

namespace semel::storage {

[[nodiscard]] Status check_storage(StorageView& view, StorageCheck& check,
                                   const TellProgress& progress);

/// The file of RocksDB that a message names, else `directory`.
[[nodiscard]] std::string named_in(const std::string& problem, const std::string& directory);

}  // namespace semel::storage
