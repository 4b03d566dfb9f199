// The description of a storage: a few entries in the column family "default" of its database.
//
//   format       u64: 8. A larger number was written by a later release
//   storage      u64: random, the same in the journal and the checkpoint
//   versions     u64: no version above this was handed out
//   floor        u64: log offset; data from before it was rewritten and is void
//   anchor       u64 durable clock, u64 engine's clock, u64 wall clock, then the boot id
//   boot_first   u64: number of the first segment of the journal that was begun in that boot
//   incarnation  u64: random, another one for each copy of the storage
//   cold         u64 id, u64 generation: the cold store that spills went to last, id 0: none; u64
//                token: the store has the same (storage/cold/cold_bond.hpp); 0 or missing: none
//   namespaces   u64: 1: the terms of all namespaces that have claims are in it; missing: unknown
//   memos        u64: 1: memos of steps are in the records of their claims; missing: perhaps beside
//                them, as releases before 0.2 kept them
//
// Numbers are big-endian.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"
#include "storage/log/durable_clock.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

inline constexpr std::uint64_t format_version = 9;
/// The oldest that is still read. Opening a storage converts it to the present format.
inline constexpr std::uint64_t format_oldest = 2;
inline constexpr std::uint64_t format_with_incarnation = 5;

/// Versions that an opened storage may hand out before it must raise the limit on disk. A crash
/// wastes the rest: 2^36 of 2^59.
inline constexpr Version version_reserve = Version{1} << 36;

struct Description {
  std::uint64_t format = 0;  ///< 0: the storage is new
  std::uint64_t storage_id = 0;
  Version versions = 0;
  LogOffset floor = 0;
  Anchor anchor;
  std::uint64_t incarnation = 0;  ///< 0: of a format before 5
  ColdMark cold;  ///< what the cold store must have, as the storage has forgotten it; id 0: nothing
  std::uint64_t cold_token = 0;
  /// The terms of all namespaces that have claims are in the storage. False: of an earlier release,
  /// and none of this one has opened it since.
  bool knows_namespaces = false;
  /// No memos of steps lie beside their claims (semel::fold_memos()).
  bool has_folded_memos = false;
  /// Number of the first segment of the journal that was written in the boot of `anchor`.
  std::uint64_t boot_first = 0;
};

/// A copy's versions continue this far above its original's: at least 2^48, which is nine years of
/// a million grants a second, and less than 2^49. Random, so that two copies differ.
[[nodiscard]] Version random_version_jump();
[[nodiscard]] std::uint64_t random_id();  ///< never 0

/// Of the storage in `directory`; format 0 if there is none. Errors: storage_damaged (an entry is
/// missing or too short), storage_newer, storage_failed.
[[nodiscard]] Result<Description> read_description(rocksdb::DB& database,
                                                   rocksdb::ColumnFamilyHandle* family,
                                                   const std::string& directory);
/// In the present format; synced. `path` names the database in errors. Errors: storage_failed.
[[nodiscard]] Status write_description(rocksdb::DB& database, rocksdb::ColumnFamilyHandle* family,
                                       const std::string& path, const Description& description);

/// For repair: sets one field, whatever other entries are missing. If several generations of a file
/// are read, the largest number counts.
void merge_description_entry(std::string_view key, std::string_view value,
                             Description& description);

/// The error for a `format` that this release does not read: storage_newer, or storage_failed if it
/// is older than format_oldest.
[[nodiscard]] Error unknown_format(const std::string& directory, std::uint64_t format);

}  // namespace semel::storage
