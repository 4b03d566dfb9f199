// A cold store in a separate database.
#include "semel/cold_directory.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "semel/process.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_store.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/disk.hpp"

namespace semel {

namespace {

constexpr const char* anchor_key = "anchor";

/// Closes the families before the database, and unlocks the directory last.
struct Database {
  storage::DirectoryLock lock;
  std::unique_ptr<rocksdb::DB> database;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  const ProcessMark process{};
  explicit Database(storage::DirectoryLock taken) noexcept : lock(std::move(taken)) {}
  ~Database() {
    if (!process.is_here()) {
      static_cast<void>(database.release());  // it belongs to the parent process
      return;
    }
    for (rocksdb::ColumnFamilyHandle* family : families) {
      static_cast<void>(
          database->DestroyColumnFamilyHandle(family));  // cannot fail for an open one
    }
  }
};

/// Continues the durable clock from the anchor of the last process, and writes a new anchor.
Result<storage::DurableClock> resume_clock(Database& opened, const ColdOptions& options,
                                           const Clock& clock) {
  struct Words {
    std::int64_t line_ms = 0;
    std::int64_t engine_ms = 0;
    std::int64_t unix_ms = 0;
  } words;
  std::string bytes;
  rocksdb::Status status =
      opened.database->Get({}, opened.families[0], rocksdb::Slice{anchor_key}, &bytes);
  if (!status.ok() && !status.IsNotFound()) return storage::error_of(status, anchor_key);
  storage::Anchor last;
  if (status.ok()) {
    if (bytes.size() < sizeof words) {
      return Error{ErrorCode::storage_damaged, "the anchor is not complete"};
    }
    std::memcpy(&words, bytes.data(), sizeof words);
    last = {words.line_ms, words.engine_ms, words.unix_ms, bytes.substr(sizeof words)};
  }
  const std::string boot_id = storage::Disk{}.boot_id();
  SEMEL_CHECK(storage::check_wall_clock(last, boot_id, clock.unix_ms(), options.clock_ahead_max,
                                        options.directory));
  const Timestamp now = clock.now();
  const auto durable_clock = storage::DurableClock::resume(last, boot_id, now, clock.unix_ms());
  words.unix_ms = clock.unix_ms();
  words.line_ms = static_cast<std::int64_t>(durable_clock.to_durable_ms(now));
  words.engine_ms = now.time_since_epoch().count();
  bytes.assign(reinterpret_cast<const char*>(&words), sizeof words).append(boot_id);
  rocksdb::WriteOptions synced;
  synced.sync = true;
  status = opened.database->Put(synced, opened.families[0], anchor_key, bytes);
  if (!status.ok()) return storage::error_of(status, anchor_key);
  return durable_clock;
}

}  // namespace

Result<std::unique_ptr<ColdStore>> open_cold_directory(const ColdOptions& options,
                                                       const Clock& clock) {
  if (options.directory.empty()) return Error{ErrorCode::bad_option, "directory is empty"};
  constexpr std::size_t cache_min = std::size_t{1} << 20;
  constexpr std::size_t cache_max = std::size_t{1} << 30;
  if (options.cache_bytes < cache_min || options.cache_bytes > cache_max) {
    return Error{ErrorCode::bad_option, "cache_bytes = " + std::to_string(options.cache_bytes) +
                                            ", range " + std::to_string(cache_min) + ".." +
                                            std::to_string(cache_max)};
  }
  if (mkdir(options.directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error{ErrorCode::storage_failed, options.directory + ": " + std::strerror(errno)};
  }
  rocksdb::Options database;
  database.create_if_missing = true;
  database.create_missing_column_families = true;
  database.paranoid_checks = true;
  database.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  database.max_bgerror_resume_count = 0;
  database.keep_log_file_num = 4;
  database.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{
      {rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions{}},
      {storage::cold_family, storage::cold_family_options(options.cache_bytes)}};
  SEMEL_TRY(lock, storage::DirectoryLock::acquire(options.directory,
                                                  storage::DirectoryLock::Missing::create));
  auto opened = std::make_shared<Database>(std::move(lock));
  rocksdb::DB* raw = nullptr;
  const std::string path = options.directory + "/cold";
  const rocksdb::Status status =
      rocksdb::DB::Open(database, path, families, &opened->families, &raw);
  opened->database.reset(raw);
  if (!status.ok()) return storage::error_of(status, path);
  SEMEL_TRY(durable_clock, resume_clock(*opened, options, clock));
  SEMEL_TRY(store, storage::RocksColdStore::open({.database = raw,
                                                  .family = opened->families[1],
                                                  .durable_clock = durable_clock,
                                                  .filter_bits = options.filter_bits,
                                                  .cache_bytes = options.cache_bytes,
                                                  .owner = opened}));
  return std::unique_ptr<ColdStore>{std::move(store)};
}

}  // namespace semel
