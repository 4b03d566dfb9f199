// How RocksDB is opened, and what holds for all that is done with it.
#pragma once

#include <rocksdb/options.h>

#include <cstddef>
#include <string_view>

#include "storage/log/disk.hpp"

namespace semel::storage {

/// Ends the text of an error that only another open can end.
inline constexpr std::string_view reopen_remedy = "; open the storage again";

/// Of RocksDB, at a time. They are read once, at recovery.
inline constexpr int tables_open_max = 256;

/// Options of the database and of the journal's family, also for the tools.
[[nodiscard]] rocksdb::Options database_options(Disk& disk);
[[nodiscard]] rocksdb::ColumnFamilyOptions journal_options();

/// Of a family whose memtable gets some hundred bytes.
inline constexpr std::size_t description_buffer_bytes = std::size_t{256} << 10;
/// For RocksDB's own bookkeeping: manifests, a log that is begun.
inline constexpr std::size_t space_margin = std::size_t{4} << 20;

}  // namespace semel::storage
