#include "storage/cold/cold_database.hpp"

#include <filesystem>

#include "storage/archive/file_checksum.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_format.hpp"
#include "storage/cold/cold_settings.hpp"

namespace semel::storage {

Status check_not_foreign_to_cold(const std::string& directory) {
  std::error_code code;
  if (!std::filesystem::exists(directory, code) ||
      std::filesystem::exists(cold_database_path(directory) + "/CURRENT", code)) {
    return Done{};
  }
  SEMEL_TRY(names, list_directory(directory));
  for (const std::string& name : names) {
    if (name == "lock" || name == "cold" || name == "lost+found") continue;
    return Error{ErrorCode::storage_failed,
                 directory + ": is not a cold store, as it has no cold/CURRENT but has " + name +
                     "; use an empty or a new directory"};
  }
  return Done{};
}

Result<std::shared_ptr<ColdDatabase>> ColdDatabase::open(Disk& disk, const Setup& setup) {
  rocksdb::Options options;
  options.create_if_missing = setup.may_create;
  options.create_missing_column_families = setup.may_create;
  options.paranoid_checks = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.max_bgerror_resume_count = 0;
  options.listeners.push_back(no_recovery());
  options.keep_log_file_num = 4;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  // Only a few numbers are written other than by ingestion; RocksDB reserves on disk what a full
  // write buffer needs.
  constexpr std::size_t buffer_bytes = std::size_t{256} << 10;
  options.write_buffer_size = buffer_bytes;
  options.manifest_preallocation_size = buffer_bytes;
  options.file_checksum_gen_factory = file_checksums();
  SEMEL_TRY(lock, DirectoryLock::acquire(setup.directory, DirectoryLock::Missing::create));
  auto opened = std::shared_ptr<ColdDatabase>{new ColdDatabase{std::move(lock), disk.env()}};
  options.env = opened->environment_.get();
  opened->options_ = options;
  opened->path_ = cold_database_path(setup.directory);
  opened->cache_bytes_ = setup.cache_bytes;
  SEMEL_CHECK(opened->open_database(Access::write));
  // RocksDB has created it and syncs its contents, but not its name.
  SEMEL_CHECK(make_directory(opened->path_));
  return opened;
}

Status ColdDatabase::open_database(Access access) {
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{
      {rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions{options_}},
      {cold_family, cold_family_options(cache_bytes_)}};
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status status =
      access == Access::write
          ? rocksdb::DB::Open(options_, path_, families, &families_, &raw)
          : rocksdb::DB::OpenForReadOnly(options_, path_, families, &families_, &raw);
  database_.reset(raw);
  return status.ok() ? Status{Done{}} : error_of(status, path_);
}

void ColdDatabase::close() noexcept {
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    static_cast<void>(database_->DestroyColumnFamilyHandle(family));  // cannot fail for an open one
  }
  families_.clear();
  database_.reset();
}

Status ColdDatabase::reopen() {
  return guard_.run([&] {
    close();
    const Status status = open_database(Access::write);
    // Records that were spilled can be read, whatever the disk does. An error is that of writing.
    if (!status) static_cast<void>(open_database(Access::read));
    return status;
  });
}

ColdDatabase::~ColdDatabase() {
  if (!process_.is_here()) {
    static_cast<void>(database_.release());  // it belongs to the parent process
    return;
  }
  if (guard_.is_broken()) {
    // Closing it could wait for ever. Its lock and its memory go with the process.
    static_cast<void>(database_.release());
    static_cast<void>(environment_.release());
    return;
  }
  close();
}

}  // namespace semel::storage
