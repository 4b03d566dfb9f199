// Which effects a joined commit may have: only kinds known to be safe.
//
// RocksDB writes a batch to its log first and checks it afterwards. A batch that it refuses then is
// in the log, and each following open reads it again: the storage could no longer be read. Other
// batches it accepts, and refuses when they are flushed to a file, at the next open. So a batch is
// checked before the claim is decided, and unknown kinds are refused.
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
