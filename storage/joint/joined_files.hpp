// What joined commits have written: blobs as in the family "journal", in a separate family.
//
// They go through RocksDB's log and memtable one by one. In the journal's family their keys would
// overlap with drained files: each draining would have to flush them first, and its files would go
// to a level above them, where they are merged repeatedly instead of dropped as a whole
// (DeleteFilesInRange skips level 0).
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
  /// `family` null: the storage was never opened for joined commits; all calls do nothing.
  JoinedFiles(rocksdb::DB& database, rocksdb::ColumnFamilyHandle* family) noexcept
      : database_(database), family_(family) {}

  [[nodiscard]] rocksdb::ColumnFamilyHandle* family() const noexcept { return family_; }
  /// Whether a span of it has ended. Errors: storage_failed.
  [[nodiscard]] Result<bool> has_ended(SpanNumber running);
  /// Deletes ended spans. Whole files are freed at once, newer ones when RocksDB merges them: ended
  /// blobs linger in at most four memtables. Errors: storage_failed.
  [[nodiscard]] Status forget(SpanNumber running);
  /// Deletes blobs from before `floor`, and frees their space. Progress: blocks for that.
  [[nodiscard]] Status forget_before(LogOffset floor);
  /// Deletes ended spans and frees all their space. Progress: blocks for that.
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
