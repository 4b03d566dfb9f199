// A storage as the tools read it: locked against other processes, and never written.
#pragma once

#include <rocksdb/db.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "semel/storage_tools.hpp"
#include "storage/archive/archive.hpp"
#include "storage/archive/family_forms.hpp"
#include "storage/archive/file_checksum.hpp"
#include "storage/archive/rocks_log.hpp"
#include "storage/log/checkpoint.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/log_files.hpp"
#include "storage/log/log_scan.hpp"

namespace semel::storage {

/// Keeps other processes from opening the storage while it exists: by its own lock file, and by
/// RocksDB's for earlier releases. Without lock files there is nothing to lock: a copy that was
/// never opened.
class StorageLock {
 public:
  [[nodiscard]] static Result<StorageLock> acquire(const std::string& directory);
  ~StorageLock();
  /// The storage is a snapshot of a volume: see DirectoryLock.
  [[nodiscard]] bool is_snapshot() const { return directory_.is_snapshot(Disk{}.boot_id()); }
  /// Ends RocksDB's lock alone, so that the database can be opened under this one.
  void release_database() noexcept;
  StorageLock(StorageLock&& other) noexcept
      : directory_(std::move(other.directory_)), lock_(std::exchange(other.lock_, nullptr)) {}
  StorageLock& operator=(StorageLock&&) = delete;

 private:
  explicit StorageLock(DirectoryLock directory) noexcept : directory_(std::move(directory)) {}
  DirectoryLock directory_;
  rocksdb::FileLock* lock_ = nullptr;
};

/// RocksDB opened without any writes, not even to its own log.
class ReadOnlyDatabase {
 public:
  /// Without the records of RocksDB's log that RocksDB refuses. Errors: those of RocksDB.
  [[nodiscard]] static Result<std::unique_ptr<ReadOnlyDatabase>> open(
      const std::string& path, rocksdb::WALRecoveryMode mode);
  ~ReadOnlyDatabase();
  [[nodiscard]] rocksdb::DB& database() const noexcept { return *database_; }
  [[nodiscard]] const std::vector<rocksdb::ColumnFamilyHandle*>& families() const noexcept {
    return families_;
  }
  /// The records that were left out.
  [[nodiscard]] const std::vector<RefusedRecord>& refused() const noexcept {
    return log_check_->refused();
  }
  /// The forms with which its families were last opened.
  [[nodiscard]] const std::map<std::string, FamilyForm>& forms() const noexcept { return forms_; }

 private:
  ReadOnlyDatabase() = default;
  std::map<std::string, FamilyForm> forms_;
  std::unique_ptr<LogCheck> log_check_;  // outlives the database
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

/// A file of the database.
struct TableFile {
  std::string path;
  std::string family;  ///< empty: not known
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  BlobKey first;  ///< of the journal's family
  BlobKey last;
  FileChecksum checksum{};  ///< of all of it, by the manifest
  bool has_block_form = true;
  bool is_cold = false;  ///< of a cold store's own database
};

/// Whether its entries are the storage's own, or it is not known whose they are.
[[nodiscard]] bool is_readable(const TableFile& file) noexcept;

struct TableReading {
  std::uint64_t entries = 0;  ///< that could be read
  std::uint64_t bytes = 0;    ///< of them
  Status status{Done{}};      ///< the first problem
  std::optional<std::uint64_t> offset;
};
using VisitEntry = std::function<void(std::string_view key, std::string_view value)>;
/// Visits every readable entry, also after a damaged block. Sets the family's name. Of a family of
/// the user only the checksums are compared: its entries need objects of his program.
[[nodiscard]] TableReading read_table(TableFile& file, const VisitEntry& visit);

/// The files and what they record about the storage. Damaged parts are left out; they are not
/// errors.
struct StorageView {
  std::string directory;
  std::vector<std::string> segments;  ///< paths, in order of log offset
  Checkpoint::Found found = Checkpoint::Found::empty;
  CheckpointContent checkpoint;
  Status database_status{Done{}};  ///< of opening RocksDB
  std::unique_ptr<ReadOnlyDatabase> database;
  Description description;  ///< format 0: cannot be read
  LogOffset drained = 0;
  std::uint64_t sequence = 0;
  std::vector<TableFile> tables;
  bool same_boot = false;
  std::uint64_t bytes_total = 0;  ///< of segments and tables

  /// Errors: storage_newer, storage_failed.
  /// `is_snapshot`: it has only synced data, though it was written in this boot.
  [[nodiscard]] static Result<StorageView> read(const std::string& directory,
                                                bool is_snapshot = false);
  [[nodiscard]] ScanRules rules() const noexcept;
  /// By the same rules as when the storage is opened.
  [[nodiscard]] LogFiles classify_log_files() const;
  [[nodiscard]] MarkIs mark() const { return classify_mark(found, drained, !segments.empty()); }
  [[nodiscard]] std::uint64_t storage_id() const noexcept {
    return found == Checkpoint::Found::content ? checkpoint.storage_id : description.storage_id;
  }
  [[nodiscard]] std::int64_t line_ms() const noexcept {
    return std::max(checkpoint.line_ms, description.anchor.line_ms);
  }

 private:
  [[nodiscard]] Status read_checkpoint();
  [[nodiscard]] Status list_segments();
  [[nodiscard]] Status open_database();
  [[nodiscard]] Status read_description();
  [[nodiscard]] Status list_tables();
};

/// Visits the mutations of a group; false: one cannot be read. Times are those of the durable
/// clock.
[[nodiscard]] bool each_mutation(Bytes group,
                                 const std::function<void(const Mutation&, Bytes)>& visit);

/// The log offset in the name of a segment; none: the name is not that of a segment.
[[nodiscard]] std::optional<LogOffset> segment_begin(const std::string& path);

/// The file of RocksDB that a message names, else `directory`.
[[nodiscard]] std::string named_in(const std::string& problem, const std::string& directory);

/// fsync of a file or directory.
[[nodiscard]] Status sync_path(const std::string& path);

}  // namespace semel::storage
