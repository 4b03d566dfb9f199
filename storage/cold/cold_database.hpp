// The database of a cold directory.
//
//   lock    the lock on the directory
//   cold/   the database: family "default" has the keys "anchor" and "storage" (cold_bond.hpp),
//           family "cold" the records
//   backup  only in a backup: it is not opened
#pragma once

#include <rocksdb/db.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "semel/process.hpp"
#include "semel/result.hpp"
#include "storage/archive/kept_tables.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/disk.hpp"

namespace semel::storage {

/// Of a cold directory.
[[nodiscard]] inline std::string cold_database_path(const std::string& directory) {
  return directory + "/cold";
}

/// A directory that is missing, empty, or has a cold store is accepted. Errors: storage_failed;
/// names the entry that is no part of a cold store.
[[nodiscard]] Status check_not_foreign_to_cold(const std::string& directory);

/// Opened, with the directory locked. Closes the families before the database, and unlocks the
/// directory last.
class ColdDatabase {
 public:
  struct Setup {
    std::string directory;
    std::size_t cache_bytes = 0;
    bool may_create = true;
  };
  /// Errors: storage_in_use, storage_damaged, storage_failed.
  [[nodiscard]] static Result<std::shared_ptr<ColdDatabase>> open(Disk& disk, const Setup& setup);
  ~ColdDatabase();
  ColdDatabase(const ColdDatabase&) = delete;
  ColdDatabase& operator=(const ColdDatabase&) = delete;

  [[nodiscard]] rocksdb::DB& database() const noexcept { return *database_; }
  [[nodiscard]] rocksdb::ColumnFamilyHandle* family() const noexcept { return families_[1]; }
  [[nodiscard]] KeptTables& tables() noexcept { return environment_->tables(); }
  [[nodiscard]] RocksGuard& guard() noexcept { return guard_; }
  /// Closes the database and opens it again; the caller excludes all other users. Errors:
  /// storage_failed, storage_damaged; then it can only be read, or not even that (null), until
  /// another call.
  [[nodiscard]] Status reopen();
  [[nodiscard]] std::pair<rocksdb::DB*, rocksdb::ColumnFamilyHandle*> handles() const noexcept {
    return {database_.get(), families_.size() > 1 ? families_[1] : nullptr};
  }

 private:
  ColdDatabase(DirectoryLock lock, rocksdb::Env* env)
      : lock_(std::move(lock)), environment_(std::make_unique<KeptTablesEnv>(env)) {}

  enum class Access : std::uint8_t { write, read };
  [[nodiscard]] Status open_database(Access access);
  void close() noexcept;

  DirectoryLock lock_;
  std::unique_ptr<KeptTablesEnv> environment_;  // outlives the database
  RocksGuard guard_;
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  rocksdb::Options options_;
  std::string path_;
  std::size_t cache_bytes_ = 0;
  const ProcessMark process_{};
};

}  // namespace semel::storage
