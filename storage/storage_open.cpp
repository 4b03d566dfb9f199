// Opening: the database, what it remembers about itself, and what must be on disk before the first
// version is handed out.
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "storage/rocks_status.hpp"
#include "storage/storage_impl.hpp"
#include "storage/storage_keys.hpp"

namespace semel {
namespace {

constexpr const char* format_key = "format";
constexpr const char* anchor_key = "anchor";
constexpr const char* versions_key = "versions";
constexpr std::uint64_t format_version = 1;
constexpr std::size_t anchor_bytes = 24;  // line, engine, ticket; then the boot id

/// Versions an opened storage may hand out before it must write down that it goes on. A crash
/// wastes what is left: 2^36 of 2^59.
constexpr Version version_reserve = Version{1} << 36;

Status check_range(const char* name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value >= low && value <= high) return Done{};
  return Error{ErrorCode::bad_option, std::string{name} + " = " + std::to_string(value) +
                                          ", range " + std::to_string(low) + ".." +
                                          std::to_string(high)};
}

/// Changes with each boot of the machine; empty: not known, which is never the same.
std::string read_boot_id() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  std::getline(file, id);
  return id;
}

std::string words(std::initializer_list<std::uint64_t> values) {
  std::string bytes(values.size() * 8, '\0');
  char* to = bytes.data();
  for (const std::uint64_t value : values) {
    storage::put_big_endian(value, to);
    to += 8;
  }
  return bytes;
}

/// Packaged RocksDB 7.8.3; why each is set: docs/decisions/0005-storage-layout.md.
rocksdb::Options database_options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.paranoid_checks = true;
  options.max_bgerror_resume_count = 0;
  options.max_background_jobs = 2;
  options.keep_log_file_num = 4;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  return options;
}

rocksdb::ColumnFamilyOptions journal_options() {
  rocksdb::ColumnFamilyOptions options;
  options.write_buffer_size = std::size_t{64} << 20;
  options.compression = rocksdb::CompressionType::kLZ4Compression;
  return options;
}

}  // namespace

Status Storage::Impl::open() {
  SEMEL_TRY(sync, check_range("sync_every", static_cast<std::uint64_t>(options_.sync_every.count()),
                              1, 60'000));
  SEMEL_TRY(queue, check_range("queue_bytes", options_.queue_bytes, std::uint64_t{1} << 20,
                               std::uint64_t{1} << 30));
  SEMEL_TRY(span, check_range("span", static_cast<std::uint64_t>(options_.span.count()), 1'000,
                              86'400'000));
  SEMEL_TRY(threads, check_range("recovery_threads", options_.recovery_threads, 1, 64));
  static_cast<void>(sync), static_cast<void>(queue), static_cast<void>(span);
  static_cast<void>(threads);
  SEMEL_TRY(opened, open_database());
  SEMEL_TRY(read, read_meta());
  SEMEL_TRY(written, write_first_meta());
  static_cast<void>(opened), static_cast<void>(read), static_cast<void>(written);
  next_sync_ = clock_.now() + options_.sync_every;
  writer_ = std::thread{[this] { run_writer(); }};
  return Done{};
}

Status Storage::Impl::open_database() {
  if (options_.directory.empty()) return Error{ErrorCode::bad_option, "directory is empty"};
  if (mkdir(options_.directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error{ErrorCode::storage_failed, options_.directory + ": " + std::strerror(errno)};
  }
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{
      {rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions{}},
      {storage::journal_family, journal_options()}};
  rocksdb::DB* opened = nullptr;
  const std::string path = options_.directory + "/rocksdb";
  const rocksdb::Status status =
      rocksdb::DB::Open(database_options(), path, families, &families_, &opened);
  if (!status.ok()) return storage::error_of(status, path);
  database_.reset(opened);
  journal_ = families_[1];
  return Done{};
}

Status Storage::Impl::read_meta() {
  const auto get = [&](const char* key, std::string& value) {
    const rocksdb::Status status = database_->Get({}, families_[0], key, &value);
    return status.ok() || status.IsNotFound() ? Status{Done{}} : storage::error_of(status, key);
  };
  std::string format;
  std::string anchor;
  std::string versions;
  SEMEL_TRY(a, get(format_key, format));
  SEMEL_TRY(b, get(anchor_key, anchor));
  SEMEL_TRY(c, get(versions_key, versions));
  static_cast<void>(a), static_cast<void>(b), static_cast<void>(c);
  if (!format.empty()) {
    if (format.size() != 8 || anchor.size() < anchor_bytes || versions.size() != 8) {
      return Error{ErrorCode::storage_damaged, "its description is not complete"};
    }
    const std::uint64_t found = storage::get_big_endian(format.data());
    if (found > format_version) {
      return Error{ErrorCode::storage_newer, "format " + std::to_string(found) +
                                                 ", this release knows " +
                                                 std::to_string(format_version)};
    }
    first_version_ = storage::get_big_endian(versions.data()) + 1;
  }
  storage::Anchor last;
  if (anchor.size() >= anchor_bytes) {
    last.line_ms = static_cast<std::int64_t>(storage::get_big_endian(anchor.data()));
    last.engine_ms = static_cast<std::int64_t>(storage::get_big_endian(anchor.data() + 8));
    open_ticket_ = storage::get_big_endian(anchor.data() + 16) + 1;
    last.boot_id = anchor.substr(anchor_bytes);
  }
  boot_id_ = read_boot_id();
  line_ = storage::TimeLine::resume(last, boot_id_, clock_.now(), clock_.unix_ms());
  return Done{};
}

Status Storage::Impl::write_first_meta() {
  // mo: relaxed: nobody else is here yet.
  largest_version_.store(first_version_, std::memory_order_relaxed);
  written_.store(open_ticket_ - 1, std::memory_order_relaxed);
  synced_.store(open_ticket_ - 1, std::memory_order_relaxed);
  rocksdb::WriteBatch batch;
  rocksdb::Status status = batch.Put(families_[0], format_key, words({format_version}));
  if (status.ok()) add_meta(batch, open_ticket_ - 1, first_version_);
  rocksdb::WriteOptions options;
  options.sync = true;  // no version is handed out before it is known that it may be
  if (status.ok()) status = database_->Write(options, &batch);
  return status.ok() ? Status{Done{}} : storage::error_of(status, options_.directory);
}

void Storage::Impl::add_meta(rocksdb::WriteBatch& batch, Ticket ticket, Version largest) {
  const Timestamp now = clock_.now();
  std::string anchor = words({line_.to_line(now), static_cast<std::uint64_t>(now_ms()), ticket});
  anchor += boot_id_;
  // A batch of this size does not fail, and if it did, the next one says the same again.
  static_cast<void>(batch.Put(families_[0], anchor_key, anchor));
  if (largest + version_reserve / 2 < version_ceiling_) return;
  version_ceiling_ = largest + version_reserve;
  static_cast<void>(batch.Put(families_[0], versions_key, words({version_ceiling_})));
}

}  // namespace semel
