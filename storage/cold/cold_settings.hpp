// How a cold store is opened.
#pragma once

#include <rocksdb/db.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "semel/result.hpp"
#include "storage/archive/kept_tables.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/durable_clock.hpp"

namespace semel::storage {

inline constexpr std::size_t cold_generations_max = 64;  ///< a lookup costs a cache line in each
inline constexpr unsigned cold_filter_bits_default = 15;

/// How the column family must be opened. `cache_bytes`: of blocks in memory.
[[nodiscard]] rocksdb::ColumnFamilyOptions cold_family_options(std::size_t cache_bytes);

struct ColdSettings {
  rocksdb::DB* database;                ///< outlives the store
  rocksdb::ColumnFamilyHandle* family;  ///< opened with cold_family_options()
  DurableClock durable_clock;
  unsigned filter_bits = cold_filter_bits_default;
  std::size_t cache_bytes = 0;   ///< as given to cold_family_options(), to be charged
  KeptTables* tables = nullptr;  ///< of the database's environment, if it has them
  std::string directory{};       ///< of the database
  Disk* disk = nullptr;          ///< asked for space before a part is written; null: not asked
  RocksGuard* guard = nullptr;   ///< of the owner that closes the database; null: its own
  /// Closes the database and opens it again. After an error it can only be read.
  std::function<Status()> reopen{};
  /// What there is after that; null: it cannot even be read.
  std::function<std::pair<rocksdb::DB*, rocksdb::ColumnFamilyHandle*>()> opened{};
  std::shared_ptr<void> owner{};  ///< if not null, closed when the store is gone
};

}  // namespace semel::storage
