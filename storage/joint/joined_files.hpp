// What joined commits have written: blobs as in the family "journal", in a family of their own.
//
// They come one at a time through RocksDB's log and memtable. In the journal's family they would
// lie between the keys of the drained files, and each draining would have to flush them and would
// itself be put above them, where files are not dropped as a whole (DeleteFilesInRange leaves level
// 0 alone) but merged again and again.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>

#include "semel/result.hpp"
#include "storage/archive/archive.hpp"
#include "storage/archive/storage_keys.hpp"

namespace semel::storage {

inline constexpr const char* joined_family = "joined";
[[nodiscard]] rocksdb::ColumnFamilyOptions joined_options();

class JoinedFiles {
 public:
  /// `family` null: the storage was never opened for joined commits, and there is nothing to do.
  JoinedFiles(rocksdb::DB& database, rocksdb::ColumnFamilyHandle* family) noexcept
      : database_(database), family_(family) {}

  [[nodiscard]] rocksdb::ColumnFamilyHandle* family() const noexcept { return family_; }
  /// Forgets what is over. The disk is freed file by file, and where files are too new for that
  /// when RocksDB merges them, at the latest after four memtables. Errors: storage_failed.
  [[nodiscard]] Status forget(SpanNumber running);
  /// Forgets what lies before `floor`, and frees its space. Progress: blocks for that.
  [[nodiscard]] Status forget_before(Place floor);
  /// Frees the space of what is over. Progress: blocks for that.
  [[nodiscard]] Status compact(SpanNumber running);
  /// Of its files.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  [[nodiscard]] Status status_of(const rocksdb::Status& status) const;
  [[nodiscard]] rocksdb::Status merge_all();

  rocksdb::DB& database_;
  rocksdb::ColumnFamilyHandle* const family_;
};

}  // namespace semel::storage
