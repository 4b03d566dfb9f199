// New files of an archive: written in drain/, and taken into the database in one atomic step.
//
// Concurrency
//   [archive.ingest]  that an ingestion failed: release store after its text is complete, acquire
//                     load before the text is read.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "semel/result.hpp"
#include "storage/archive/blob_set.hpp"
#include "storage/archive/kept_tables.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

/// One thread at a time, but status().
class Ingestion {
 public:
  struct Target {
    rocksdb::DB& database;
    rocksdb::ColumnFamilyHandle& family;
  };
  /// `directory`: of the storage.
  Ingestion(Disk& disk, const std::string& directory, RocksGuard& guard,
            KeptTables& tables) noexcept
      : disk_(disk), directory_(directory), guard_(guard), tables_(tables) {}

  /// Adds `blobs`, and a key for the offset `drained` (0: none), synced. Errors: storage_failed,
  /// see Archive::add().
  [[nodiscard]] Status add(const Target& target, const BlobSet& blobs, LogOffset drained);
  /// An error: an ingestion failed, and no more files are ingested until the next open.
  /// Thread-safe.
  [[nodiscard]] Status status() const {
    // mo: acquire [archive.ingest]
    if (!failed_.load(std::memory_order_acquire)) return Done{};
    return Error{ErrorCode::storage_failed, failure_};
  }

 private:
  /// A file in drain/ that is complete.
  struct NewFile {
    std::string path;
    std::string checksum;  // of all of its bytes, see file_checksum.hpp
    std::string checksum_function;
  };
  class NewFiles;
  [[nodiscard]] Status write_file(const std::vector<BlobSet::Blob>& blobs, NewFile& file);
  [[nodiscard]] Status ingest(const Target& target, const std::vector<NewFile>& files);

  Disk& disk_;
  const std::string& directory_;
  RocksGuard& guard_;
  KeptTables& tables_;
  std::uint64_t file_number_ = 0;
  std::string failure_;              // written once, before [archive.ingest]
  std::atomic<bool> failed_{false};  // [archive.ingest]
};

}  // namespace semel::storage
