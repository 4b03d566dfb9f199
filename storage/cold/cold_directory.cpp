// A database of its own around a cold store.
#include "semel/cold_directory.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "semel/process.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_store.hpp"

namespace semel {

namespace {

constexpr const char* anchor_key = "anchor";

/// Closes in the right order.
struct Database {
  std::unique_ptr<rocksdb::DB> database;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  const ProcessMark process;
  ~Database() {
    if (!process.is_here()) {
      static_cast<void>(database.release());  // the parent's to close
      return;
    }
    for (rocksdb::ColumnFamilyHandle* family : families) {
      static_cast<void>(database->DestroyColumnFamilyHandle(family));
    }
  }
};

std::string read_boot_id() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  std::getline(file, id);
  return id;
}

/// The line goes on where the last life wrote it down; and it is written down again.
Result<storage::TimeLine> resume_line(Database& opened, const Clock& clock) {
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
  const std::string boot_id = read_boot_id();
  const Timestamp now = clock.now();
  const auto line = storage::TimeLine::resume(last, boot_id, now, clock.unix_ms());
  words.unix_ms = clock.unix_ms();
  words.line_ms = static_cast<std::int64_t>(line.to_line(now));
  words.engine_ms = now.time_since_epoch().count();
  bytes.assign(reinterpret_cast<const char*>(&words), sizeof words).append(boot_id);
  rocksdb::WriteOptions options;
  options.sync = true;
  status = opened.database->Put(options, opened.families[0], anchor_key, bytes);
  if (!status.ok()) return storage::error_of(status, anchor_key);
  return line;
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
  auto opened = std::make_shared<Database>();
  rocksdb::DB* raw = nullptr;
  const std::string path = options.directory + "/cold";
  const rocksdb::Status status =
      rocksdb::DB::Open(database, path, families, &opened->families, &raw);
  opened->database.reset(raw);
  if (!status.ok()) return storage::error_of(status, path);
  SEMEL_TRY(line, resume_line(*opened, clock));
  SEMEL_TRY(store, storage::RocksColdStore::open({.database = raw,
                                                  .family = opened->families[1],
                                                  .line = line,
                                                  .filter_bits = options.filter_bits,
                                                  .cache_bytes = options.cache_bytes,
                                                  .owner = opened}));
  return std::unique_ptr<ColdStore>{std::move(store)};
}

}  // namespace semel
