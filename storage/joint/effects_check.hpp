// Which effects a joined commit may have: only what is known to be good.
//
// RocksDB writes a batch to its log first and looks at it afterwards. What it refuses then is in
// the log, and each open that follows meets it again: nothing of the storage could be read any
// more. Other batches it takes, and refuses when they go from memory to a file, which is at the
// next open. So a batch is checked before the claim is decided, and what is not known here is
// refused.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "semel/result.hpp"
#include "storage/joint/effect_families.hpp"

namespace semel::storage {

/// Progress: reads the database for each key that is merged. Errors: bad_option (which entry is
/// refused, and why).
[[nodiscard]] Status check_effects(rocksdb::DB& database, const EffectFamilies& families,
                                   const rocksdb::WriteBatch& effects);

}  // namespace semel::storage
