// A cold store in a separate database.
#include "semel/cold_directory.hpp"

#include <cstring>

#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_database.hpp"
#include "storage/cold/cold_store.hpp"

namespace semel {

namespace {

constexpr const char* anchor_key = "anchor";

/// Continues the durable clock from the anchor of the last process, and writes a new anchor.
Result<storage::DurableClock> resume_clock(rocksdb::DB& database, storage::Disk& disk,
                                           const ColdOptions& options, const Clock& clock) {
  struct Words {
    std::int64_t line_ms = 0;
    std::int64_t engine_ms = 0;
    std::int64_t unix_ms = 0;
  } words;
  std::string bytes;
  rocksdb::ColumnFamilyHandle* const family = database.DefaultColumnFamily();
  rocksdb::Status status = database.Get({}, family, rocksdb::Slice{anchor_key}, &bytes);
  if (!status.ok() && !status.IsNotFound()) return storage::error_of(status, anchor_key);
  storage::Anchor last;
  if (status.ok()) {
    if (bytes.size() < sizeof words) {
      return Error{ErrorCode::storage_damaged, "the anchor is not complete"};
    }
    std::memcpy(&words, bytes.data(), sizeof words);
    last = {words.line_ms, words.engine_ms, words.unix_ms, bytes.substr(sizeof words)};
  }
  const std::string boot_id = disk.boot_id();
  SEMEL_CHECK(storage::check_wall_clock(last, boot_id, clock.unix_ms(), options.clock_ahead_max,
                                        options.directory));
  const storage::ClockReading at = storage::read_clocks(clock);
  const auto durable_clock = storage::DurableClock::resume(last, boot_id, at.now, at.unix_ms);
  words.unix_ms = at.unix_ms;
  words.line_ms = static_cast<std::int64_t>(durable_clock.to_durable_ms(at.now));
  words.engine_ms = at.now.time_since_epoch().count();
  bytes.assign(reinterpret_cast<const char*>(&words), sizeof words).append(boot_id);
  rocksdb::WriteOptions synced;
  synced.sync = true;
  status = database.Put(synced, family, anchor_key, bytes);
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
  if (storage::is_backup(options.directory)) {
    return Error{ErrorCode::storage_failed,
                 options.directory +
                     ": is part of a backup; make a storage of that with semel "
                     "restore"};
  }
  SEMEL_CHECK(storage::check_not_foreign_to_cold(options.directory));
  SEMEL_CHECK(storage::make_directory(options.directory));
  static storage::Disk machine;  // stateless
  storage::Disk& disk = options.disk != nullptr ? *options.disk : machine;
  SEMEL_TRY(opened, storage::ColdDatabase::open(disk, {options.directory, options.cache_bytes}));
  SEMEL_TRY(durable_clock, resume_clock(opened->database(), disk, options, clock));
  storage::ColdDatabase* const raw = opened.get();  // the store keeps it
  SEMEL_TRY(store, storage::RocksColdStore::open({.database = &opened->database(),
                                                  .family = opened->family(),
                                                  .durable_clock = durable_clock,
                                                  .filter_bits = options.filter_bits,
                                                  .cache_bytes = options.cache_bytes,
                                                  .tables = &opened->tables(),
                                                  .directory = opened->database().GetName(),
                                                  .disk = &disk,
                                                  .guard = &opened->guard(),
                                                  .reopen = [raw] { return raw->reopen(); },
                                                  .opened = [raw] { return raw->handles(); },
                                                  .owner = opened}));
  return std::unique_ptr<ColdStore>{std::move(store)};
}

}  // namespace semel
