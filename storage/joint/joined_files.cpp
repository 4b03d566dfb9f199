#include "storage/joint/joined_files.hpp"

#include <rocksdb/convenience.h>

#include <memory>

#include "storage/archive/rocks_status.hpp"

namespace semel::storage {

rocksdb::ColumnFamilyOptions joined_options() {
  rocksdb::ColumnFamilyOptions options = journal_options();
  // Ended blobs linger in the memtable and in level 0: in at most four memtables of this size.
  options.write_buffer_size = std::size_t{16} << 20;
  return options;
}

Status JoinedFiles::status_of(const rocksdb::Status& status) const {
  if (status.ok()) return Done{};
  return error_of(status, database_.GetName());
}

rocksdb::Status JoinedFiles::merge_all() {
  rocksdb::CompactRangeOptions options;
  // Also the last level, which holds most of it.
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  return database_.CompactRange(options, family_, nullptr, nullptr);
}

Result<bool> JoinedFiles::has_ended(SpanNumber running) {
  if (family_ == nullptr) return false;
  const std::unique_ptr<rocksdb::Iterator> oldest{database_.NewIterator({}, family_)};
  oldest->Seek(BlobKey{1, 0, 0}.bytes());
  if (!oldest->status().ok()) return status_of(oldest->status()).error();
  return oldest->Valid() && oldest->key().compare(BlobKey{running, 0, 0}.bytes()) < 0;
}

Status JoinedFiles::forget(SpanNumber running) {
  SEMEL_TRY(ended, has_ended(running));
  if (!ended) return Done{};
  const std::string first = BlobKey{1, 0, 0}.bytes();
  const std::string end = BlobKey{running, 0, 0}.bytes();
  const rocksdb::Slice from{first};
  const rocksdb::Slice to{end};
  rocksdb::Status status = database_.DeleteRange({}, family_, from, to);
  if (status.ok()) status = rocksdb::DeleteFilesInRange(&database_, family_, &from, &to);
  return status_of(status);
}

Status JoinedFiles::forget_before(LogOffset floor) {
  if (family_ == nullptr) return Done{};
  const std::unique_ptr<rocksdb::Iterator> blob{database_.NewIterator({}, family_)};
  rocksdb::Status status;
  BlobKey key{1, 0, 0};
  for (blob->Seek(key.bytes()); blob->Valid() && status.ok(); blob->Seek(key.bytes())) {
    if (!BlobKey::read(blob->key().ToStringView(), key)) {
      return Error{ErrorCode::storage_damaged, database_.GetName() + ": a key is invalid"};
    }
    status = database_.DeleteRange({}, family_, BlobKey{key.span, 0, 0}.bytes(),
                                   BlobKey{key.span, floor, 0}.bytes());
    if (key.span == span_never) break;
    key = {key.span + 1, 0, 0};
  }
  if (status.ok()) status = blob->status();
  if (status.ok()) status = merge_all();
  return status_of(status);
}

Status JoinedFiles::compact(SpanNumber running) {
  if (family_ == nullptr) return Done{};
  SEMEL_CHECK(forget(running));
  return status_of(merge_all());
}

std::uint64_t JoinedFiles::bytes() const {
  std::uint64_t bytes = 0;
  const bool known =
      family_ != nullptr &&
      database_.GetIntProperty(family_, rocksdb::DB::Properties::kTotalSstFilesSize, &bytes);
  return known ? bytes : 0;
}

}  // namespace semel::storage
