// Whether a storage and a cold store belong together.
//
// The storage records the id and the newest generation of the store that spills went to last, and a
// token. The store records the id of the storage and the same token. Each time the records of the
// storage are recovered beside the store, both get a new token:
//
//   1 they fit   2 store: {storage, new, old}   3 storage: new   4 store: {storage, new}
//
// Each step is synced. If the process ends between 2 and 4, the storage has one of the store's
// tokens. So two that fit have been used together last, or are copies from the same moment of two
// that have: a backup or a copy of one of them does not fit the other once that was used without
// it. Source: docs/decisions/0029-a-storage-and-its-cold-store.md
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <string>

#include "semel/cold.hpp"
#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "storage/log/durable_clock.hpp"

namespace semel::storage {

/// What a storage records of its cold store.
struct ColdNeeds {
  std::uint64_t storage_id = 0;
  ColdMark mark;            ///< id 0: no record has left the storage
  std::uint64_t token = 0;  ///< 0: it was never used with a cold store
};

/// Why a store, by its mark and bond, does not fit. Empty: it does. `has` with id 0: there is none.
[[nodiscard]] std::string misfit(const ColdNeeds& needs, const ColdMark& has, const ColdBond& bond);

/// The clock by which a store goes on beside a storage. Each resumes its durable clock from its own
/// last time, and what happened to the wall clock since then differs. Beside a storage that of the
/// storage counts: the store keeps how far its own was ahead when they first met, in family
/// "default", key "clock": u64 storage id, i64 milliseconds. `own` is how it has resumed. Synced.
/// Errors: storage_damaged, storage_failed.
[[nodiscard]] Result<DurableClock> follow_clock(rocksdb::DB& database, const StorageClock& clock,
                                                const DurableClock& own);

/// In family "default" of a cold store's database, key "storage": u64 each, little-endian, storage
/// id, token, the token before, and 1 if the storage may have that. All zero: it has none.
[[nodiscard]] Result<ColdBond> read_bond(rocksdb::DB& database);
/// Synced.
[[nodiscard]] Status write_bond(rocksdb::DB& database, const ColdBond& bond);

}  // namespace semel::storage
