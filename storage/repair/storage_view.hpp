// A storage as the tools see it: closed to others, read and never written.
#pragma once

#include <rocksdb/db.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "semel/storage_tools.hpp"
#include "storage/archive/archive.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/mark.hpp"

namespace semel::storage {

/// What repair and restore add to the versions: more than any process hands out in its life.
inline constexpr Version version_jump = Version{1} << 48;

/// RocksDB's lock, so that nobody opens the storage meanwhile. None is taken where the file is not
/// there: a copy that was never opened.
class StorageLock {
 public:
  [[nodiscard]] static Result<StorageLock> take(const std::string& directory);
  ~StorageLock();
  StorageLock(StorageLock&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
  StorageLock& operator=(StorageLock&&) = delete;

 private:
  explicit StorageLock(rocksdb::FileLock* lock) noexcept : lock_(lock) {}
  rocksdb::FileLock* lock_;
};

/// RocksDB, opened so that it writes nothing, not even its own log.
class ReadOnlyDatabase {
 public:
  /// Errors: as RocksDB says.
  [[nodiscard]] static Result<std::unique_ptr<ReadOnlyDatabase>> open(
      const std::string& path, rocksdb::WALRecoveryMode mode);
  ~ReadOnlyDatabase();
  [[nodiscard]] rocksdb::DB& database() const noexcept { return *database_; }
  [[nodiscard]] const std::vector<rocksdb::ColumnFamilyHandle*>& families() const noexcept {
    return families_;
  }

 private:
  ReadOnlyDatabase() = default;
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

/// A file behind the log.
struct TableFile {
  std::string path;
  std::string family;  ///< empty: not known
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  BlobKey first;  ///< of the journal's family
  BlobKey last;
};

struct TableReading {
  std::uint64_t entries = 0;  ///< that could be read
  std::uint64_t bytes = 0;    ///< of them
  std::string problem;        ///< the first; empty: none
  std::optional<std::uint64_t> offset;
};
using VisitEntry = std::function<void(std::string_view key, std::string_view value)>;
/// Visits every entry that can be read, also behind a block that cannot. Adds the family's name.
[[nodiscard]] TableReading read_table(TableFile& file, const VisitEntry& visit);

/// The files and what they say of themselves. Damaged parts are missing here, not errors.
struct StorageView {
  std::string directory;
  std::vector<std::string> segments;  ///< paths, in order of place
  Mark::Found found = Mark::Found::empty;
  MarkContent mark;
  std::string database_problem;  ///< empty: RocksDB can be opened
  std::unique_ptr<ReadOnlyDatabase> database;
  Description description;  ///< format 0: cannot be read
  Place drained = 0;
  std::uint64_t sequence = 0;
  std::vector<TableFile> tables;
  bool same_boot = false;
  std::uint64_t bytes_total = 0;  ///< of segments and tables

  /// Errors: storage_newer, storage_failed.
  [[nodiscard]] static Result<StorageView> look(const std::string& directory);
  [[nodiscard]] ScanRules rules() const noexcept;
  [[nodiscard]] std::uint64_t storage_id() const noexcept {
    return found == Mark::Found::content ? mark.storage_id : description.storage_id;
  }
  [[nodiscard]] std::int64_t line_ms() const noexcept {
    return std::max(mark.line_ms, description.anchor.line_ms);
  }

 private:
  [[nodiscard]] Status read_mark();
  [[nodiscard]] Status list_segments();
  [[nodiscard]] Status open_database();
  [[nodiscard]] Status read_description();
  [[nodiscard]] Status list_tables();
};

/// A description out of its keys; also those of a storage whose database cannot be opened.
void take_description(std::string_view key, std::string_view value, Description& description);

/// Visits the mutations of a group; false: one cannot be read. Times are those of the time line.
[[nodiscard]] bool each_mutation(Bytes group,
                                 const std::function<void(const Mutation&, Bytes)>& visit);

/// Begin of a segment by its name; none: it is no name of a segment.
[[nodiscard]] std::optional<Place> segment_begin(const std::string& path);

/// fsync of a file or directory.
[[nodiscard]] Status sync_path(const std::string& path);

}  // namespace semel::storage
