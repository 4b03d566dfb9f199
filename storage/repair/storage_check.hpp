// The check of verify_storage(), for callers that hold the lock and have a view.
#pragma once

#include <string>

#include "semel/storage_tools.hpp"
#include "storage/repair/storage_view.hpp"

namespace semel::storage {

[[nodiscard]] Status check_storage(StorageView& view, StorageCheck& check,
                                   const TellProgress& progress);

}  // namespace semel::storage
