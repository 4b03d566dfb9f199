#include "storage/archive/ingestion.hpp"

#include <utility>

#include "base/assert.hpp"
#include "storage/archive/database_options.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/archive/storage_keys.hpp"

namespace semel::storage {

/// Files in drain/, which are removed at the end: they were linked into the database, or are not
/// needed. What stays the next open removes.
class Ingestion::NewFiles {
 public:
  explicit NewFiles(Ingestion& of) noexcept : of_(of) {}
  ~NewFiles() {
    for (const NewFile& file : files_) {
      try {
        static_cast<void>(of_.disk_.remove(file.path));
      } catch (...) {  // as above
      }
    }
  }
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  [[nodiscard]] Status write(const std::vector<BlobSet::Blob>& blobs) {
    files_.push_back(
        {of_.directory_ + "/drain/" + std::to_string(++of_.file_number_) + ".sst", {}, {}});
    return of_.write_file(blobs, files_.back());
  }
  [[nodiscard]] const std::vector<NewFile>& all() const noexcept { return files_; }

 private:
  Ingestion& of_;
  std::vector<NewFile> files_;
};

Status Ingestion::write_file(const std::vector<BlobSet::Blob>& blobs, NewFile& file) {
  // Keep its pages in the cache: dropping them costs more than it saves.
  constexpr bool drops_pages = false;
  const rocksdb::Options options{database_options(disk_), journal_options()};
  return guard_.write_table(options, drops_pages, [&](TableWriter& writer) -> Status {
    rocksdb::Status status = writer->Open(file.path);
    for (const BlobSet::Blob& blob : blobs) {
      if (status.ok()) status = writer->Put(blob.key.bytes(), blob.bytes);
    }
    rocksdb::ExternalSstFileInfo written;
    if (status.ok()) status = writer.finish(written);
    if (!status.ok()) return error_of(status, file.path);
    file.checksum = std::move(written.file_checksum);
    file.checksum_function = std::move(written.file_checksum_func_name);
    return Done{};
  });
}

Status Ingestion::ingest(const Target& target, const std::vector<NewFile>& files) {
  rocksdb::IngestExternalFileArg group;
  group.column_family = &target.family;
  for (const NewFile& file : files) {
    group.external_files.push_back(file.path);
    group.files_checksums.push_back(file.checksum);
    group.files_checksum_func_names.push_back(file.checksum_function);
  }
  group.options.move_files = true;
  // Nothing reads ingested data before the next open.
  group.options.snapshot_consistency = false;
  // The file stays as it was written: its checksum holds, and it need not be synced again.
  group.options.write_global_seqno = false;
  // The checksum was made of the bytes on their way to the file. Reading them again would compare
  // the page cache with itself.
  group.options.verify_file_checksum = false;
  bool begun = false;
  tables_.begin();
  Status status = guard_.run([&] {
    begun = true;
    const rocksdb::Status ingested = target.database.IngestExternalFiles({group});
    return ingested.ok() ? Status{Done{}} : error_of(ingested, directory_ + "/rocksdb");
  });
  tables_.end(status.ok());
  if (status || !begun) return status;
  // The manifest may name the files or not, so they stay. While RocksDB is stopped, further
  // attempts would fail and leave more files, so there are none before the next open.
  try {
    failure_ = status.error().detail;
    if (!guard_.is_broken()) failure_ += reopen_remedy;
  } catch (...) {
    failure_ = no_memory;
  }
  SEMEL_ASSERT(!failed_.load(std::memory_order_relaxed));  // mo: relaxed: only set here
  failed_.store(true, std::memory_order_release);          // mo: release [archive.ingest]
  return this->status();
}

Status Ingestion::add(const Target& target, const BlobSet& blobs, LogOffset drained) {
  SEMEL_CHECK(status());
  // If the disk filled up during RocksDB's own bookkeeping, it would stop until the next open.
  if (disk_.bytes_free(directory_) < blobs.bytes() + blobs.bytes() / 8 + space_margin) {
    return Error{ErrorCode::storage_failed,
                 directory_ + ": no space for " + std::to_string(blobs.bytes()) + " bytes"};
  }
  NewFiles files{*this};
  if (drained != 0) SEMEL_CHECK(files.write({{{0, drained, 0}, {}}}));
  for (const auto& [span, file] : blobs.spans()) SEMEL_CHECK(files.write(file));
  return files.all().empty() ? Status{Done{}} : ingest(target, files.all());
}

}  // namespace semel::storage
