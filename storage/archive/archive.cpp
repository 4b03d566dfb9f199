#include "storage/archive/archive.hpp"

#include <rocksdb/convenience.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/statistics.h>

#include <algorithm>
#include <filesystem>

#include "storage/archive/family_forms.hpp"
#include "storage/archive/rocks_status.hpp"

namespace semel::storage {
namespace {

/// RocksDB names the damaged file, unless it is its log.
std::string named_in(const rocksdb::Status& status, const std::string& path) {
  const std::string text = status.ToString();
  const bool has_name = text.find(".sst") != std::string::npos ||
                        text.find("MANIFEST") != std::string::npos ||
                        text.find("CURRENT") != std::string::npos;
  // It looks for a missing table under its old name, .ldb, last.
  const std::size_t old_name = text.find(".ldb");
  if (old_name != std::string::npos) {
    const std::size_t begin = text.find_last_not_of("0123456789", old_name - 1) + 1;
    return path + "/" + text.substr(begin, old_name - begin) + ".sst";
  }
  Result<std::vector<std::string>> names = list_directory(path);
  if (!status.IsCorruption() || has_name || !names) return path;
  std::string logs;
  for (const std::string& name : *names) {
    if (name.ends_with(".log")) logs += (logs.empty() ? "/" : " or ") + name;
  }
  return path + logs;
}

std::uint64_t bytes_of_logs(const std::string& path) {
  std::uint64_t bytes = 0;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator{path, code}) {
    if (entry.path().extension() != ".log") continue;
    const std::uint64_t size = entry.file_size(code);
    bytes += code ? 0 : size;
  }
  return bytes;
}

/// What RocksDB's log holds stays in the log and in memory: no family writes a table of it.
void keep_in_log(rocksdb::Options& options, std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                 std::uint64_t log_bytes) {
  options.avoid_flush_during_recovery = true;
  options.allow_fallocate = false;  // it would take what little space there is
  // A memtable that is full would be written all the same. An entry of a few bytes takes some
  // times as much there as in the log.
  const std::size_t most = 8 * log_bytes + (std::size_t{1} << 20);
  for (rocksdb::ColumnFamilyDescriptor& family : families) {
    family.options.write_buffer_size = std::max(family.options.write_buffer_size, most);
  }
}

/// Other users may have disabled deletions as well; up to RocksDB 8 the parameter false respects
/// that.
template <class Database>
rocksdb::Status keep_no_longer(Database& database) {
  if constexpr (requires { database.EnableFileDeletions(false); }) {
    return database.EnableFileDeletions(false);
  } else {
    return database.EnableFileDeletions();
  }
}

/// While this exists, RocksDB deletes no file. Its compaction may replace files from the moment the
/// database is open; they can still be read by name.
class KeptFiles {
 public:
  explicit KeptFiles(rocksdb::DB& database)
      : database_(database), keeps_(database.DisableFileDeletions().ok()) {}
  ~KeptFiles() {
    // An error means that files stay until the next open.
    if (keeps_) static_cast<void>(keep_no_longer(database_));
  }
  KeptFiles(const KeptFiles&) = delete;
  KeptFiles& operator=(const KeptFiles&) = delete;

 private:
  rocksdb::DB& database_;
  const bool keeps_;
};

/// Blobs of a span and later ones, from this log offset on.
struct BlobRange {
  SpanNumber first = 0;
  LogOffset floor = 0;
};

/// False: `visit` returned false.
Result<bool> visit_blobs(rocksdb::Iterator& blob, const std::string& path, const BlobRange& range,
                         const std::function<bool(std::string)>& visit) {
  for (blob.Seek(BlobKey{range.first, 0, 0}.bytes()); blob.Valid(); blob.Next()) {
    BlobKey key;
    if (!BlobKey::read(blob.key().ToStringView(), key)) {
      return Error{ErrorCode::storage_damaged, path + ": a key is invalid"};
    }
    if (key.offset < range.floor || blob.value().empty()) continue;
    if (!visit(blob.value().ToString())) return false;
  }
  if (!blob.status().ok()) return error_of(blob.status(), path);
  return true;
}

/// Of a table, from outside of the database.
Result<bool> read_table(Disk& disk, const std::string& path, const BlobRange& range,
                        const std::function<bool(std::string)>& visit) {
  rocksdb::SstFileReader reader{rocksdb::Options{database_options(disk), journal_options()}};
  if (rocksdb::Status status = reader.Open(path); !status.ok()) return error_of(status, path);
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.readahead_size = std::size_t{4} << 20;
  const std::unique_ptr<rocksdb::Iterator> blob{reader.NewIterator(options)};
  return visit_blobs(*blob, path, range, visit);
}

/// RocksDB's log holds a batch that RocksDB refuses, unless the family is opened as it was before.
Error error_of_log(const RefusedRecord& record, const std::string& path) {
  const std::string before = read_family_forms(path)[record.family].merge_operator;
  if (!before.empty() && record.why.starts_with("Merge")) {
    return {ErrorCode::bad_option, record.file + ": " + record.why + "; it had '" + before +
                                       "': name the family to open_storage with it"};
  }
  return {ErrorCode::storage_damaged,
          record.file + ": " + record.text() + "; semel repair leaves it out"};
}

}  // namespace

Result<std::unique_ptr<Archive>> Archive::open(Disk& disk, const Setup& setup) {
  auto archive = std::unique_ptr<Archive>{new Archive{disk, setup.directory}};
  SEMEL_CHECK(archive->open_database(setup));
  SEMEL_TRY(description,
            read_description(*archive->database_, archive->families_[0], setup.directory));
  archive->description_ = std::move(description);
  // Files of a process that ended while writing them.
  SEMEL_TRY(left, list_directory(setup.directory + "/drain"));
  for (const std::string& name : left) {
    SEMEL_CHECK(disk.remove(setup.directory + "/drain/" + name));
  }
  return archive;
}

Archive::~Archive() {
  if (guard_.is_broken()) {
    // Closing it could wait for ever. Its lock and its memory go with the process.
    static_cast<void>(database_.release());
    static_cast<void>(environment_.release());
    return;
  }
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    static_cast<void>(database_->DestroyColumnFamilyHandle(family));  // cannot fail for an open one
  }
}

Status Archive::open_database(const Setup& setup) {
  SEMEL_CHECK(make_directory(directory_ + "/drain"));
  const std::string path = directory_ + "/rocksdb";
  if (setup.may_create) {
    SEMEL_CHECK(make_directory(path));
  }
  rocksdb::Options options = database_options(disk_);
  options.env = environment_.get();
  options.listeners.push_back(errors_);
  options.create_if_missing = setup.may_create;
  options.create_missing_column_families = true;
  statistics_ = rocksdb::CreateDBStatistics();
  statistics_->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
  options.statistics = statistics_;
  std::vector<rocksdb::ColumnFamilyDescriptor> families{
      {rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions{options}},
      {journal_family, journal_options()}};
  families.insert(families.end(), setup.families.begin(), setup.families.end());
  // RocksDB opens all families or none; unnamed ones are opened with default options.
  std::vector<std::string> present;
  const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(options, path, &present);
  for (const std::string& name : listed.ok() ? present : std::vector<std::string>{}) {
    const bool named = std::any_of(families.begin(), families.end(),
                                   [&](const auto& family) { return family.name == name; });
    if (named) continue;
    // This process does not write to it. RocksDB reserves on disk what a full write buffer needs.
    // Compacted without its merge operator it would stop RocksDB.
    rocksdb::ColumnFamilyOptions unnamed;
    unnamed.disable_auto_compactions = true;
    unnamed.write_buffer_size = description_buffer_bytes;
    families.emplace_back(name, unnamed);
  }
  // RocksDB writes tables of its log when it is opened. If there is no room for them, opening would
  // fail, and nothing could be read that makes room.
  const std::uint64_t log_bytes = bytes_of_logs(path);
  keeps_log_ = disk_.bytes_free(directory_) < log_bytes + log_bytes / 8 + space_margin;
  if (keeps_log_) keep_in_log(options, families, log_bytes);
  log_check_ = std::make_unique<LogCheck>(LogCheck::Refused::stays, families);
  options.wal_filter = log_check_.get();
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, path, families, &families_, &opened);
  if (!status.ok() && !log_check_->refused().empty())
    return error_of_log(log_check_->refused().front(), path);
  if (!status.ok()) return error_of(status, named_in(status, path));
  database_.reset(opened);
  return make_directory(path);  // RocksDB has created it and syncs its contents, but not its name
}

rocksdb::ColumnFamilyHandle* Archive::family(const std::string& name) const noexcept {
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    if (family->GetName() == name) return family;
  }
  return nullptr;
}

Status Archive::describe(const Description& description) {
  Description next = description;  // description_ must equal the one on disk
  const std::string path = directory_ + "/rocksdb";
  SEMEL_CHECK(
      guarded([&] { return write_description(*database_, families_[0], path, description); }));
  description_ = std::move(next);
  return Done{};
}

Result<LogOffset> Archive::drained() const {
  const std::unique_ptr<rocksdb::Iterator> it{database_->NewIterator({}, families_[1])};
  const std::string last = BlobKey{1, 0, 0}.bytes();
  it->SeekForPrev(last);
  if (!it->status().ok()) return error_of(it->status(), directory_ + "/rocksdb");
  BlobKey key;
  if (!it->Valid() || !BlobKey::read(it->key().ToStringView(), key) || key.span != 0) {
    return LogOffset{0};
  }
  return key.offset;
}

Status Archive::read_blobs(std::initializer_list<std::string_view> families, SpanNumber first,
                           const std::function<bool(std::string)>& visit) {
  // File by file: in RocksDB 7.8 an iterator over the family treats a damaged first block of a file
  // as the end of the data, and returns OK. (The data of its log is in a file since open, or in
  // memory: see keep_in_log().)
  const KeptFiles kept{*database_};
  const BlobRange range{first, description_.floor};
  std::vector<rocksdb::LiveFileMetaData> files;
  database_->GetLiveFilesMetaData(&files);
  for (const rocksdb::LiveFileMetaData& file : files) {
    BlobKey last;
    if (std::count(families.begin(), families.end(), file.column_family_name) == 0) continue;
    if (BlobKey::read(file.largestkey, last) && last.span < first) continue;
    SEMEL_TRY(more, read_table(disk_, file.db_path + file.name, range, visit));
    if (!more) return Done{};
  }
  if (!keeps_log_) return Done{};
  for (const std::string_view name : families) {
    rocksdb::ColumnFamilyHandle* const handle = family(std::string{name});
    if (handle == nullptr) continue;
    const std::unique_ptr<rocksdb::Iterator> blob{database_->NewIterator({}, handle)};
    SEMEL_TRY(more, visit_blobs(*blob, directory_ + "/rocksdb", range, visit));
    if (!more) return Done{};
  }
  return Done{};
}

Status Archive::add(const BlobSet& blobs, LogOffset drained) {
  SEMEL_CHECK(ingestion_.add({*database_, *families_[1]}, blobs, drained));
  return drained == 0 ? Status{Done{}} : delete_files({0, 0, 0}, {0, drained - 1, 0});
}

Status Archive::delete_files(const BlobKey& first, const BlobKey& last) {
  const std::string begin = first.bytes();
  const std::string end = last.bytes();
  const rocksdb::Slice from{begin};
  const rocksdb::Slice to{end};
  return guarded([&] {
    const rocksdb::Status status =
        rocksdb::DeleteFilesInRange(database_.get(), families_[1], &from, &to);
    return status.ok() ? Status{Done{}} : error_of(status, directory_ + "/rocksdb");
  });
}

Result<bool> Archive::has_ended(SpanNumber running) {
  std::vector<rocksdb::LiveFileMetaData> files;
  SEMEL_CHECK(guarded([&]() -> Status {
    database_->GetLiveFilesMetaData(&files);
    return Done{};
  }));
  return std::any_of(files.begin(), files.end(), [&](const rocksdb::LiveFileMetaData& file) {
    BlobKey last;
    return file.column_family_name == journal_family && BlobKey::read(file.largestkey, last) &&
           last.span != 0 && last.span < running;
  });
}

Status Archive::forget(SpanNumber running) {
  return delete_files({1, 0, 0}, {running, 0, 0});
}

Status Archive::forget_before(LogOffset floor) {
  std::vector<rocksdb::LiveFileMetaData> files;
  SEMEL_CHECK(guarded([&]() -> Status {
    database_->GetLiveFilesMetaData(&files);
    return Done{};
  }));
  for (const rocksdb::LiveFileMetaData& file : files) {
    BlobKey first;
    BlobKey last;
    if (file.column_family_name != journal_family || !BlobKey::read(file.smallestkey, first) ||
        !BlobKey::read(file.largestkey, last) || first.span == 0) {
      continue;
    }
    if (first.span != last.span || last.offset >= floor) continue;
    SEMEL_CHECK(delete_files(first, last));
  }
  return Done{};
}

Status Archive::compact(SpanNumber running) {
  SEMEL_CHECK(forget(running));
  const std::string first = BlobKey{1, 0, 0}.bytes();
  const std::string last = BlobKey{running, 0, 0}.bytes();
  const rocksdb::Slice begin{first};
  const rocksdb::Slice end{last};
  return guarded([&] {
    rocksdb::Status status = database_->DeleteRange({}, families_[1], begin, end);
    if (status.ok()) status = database_->CompactRange({}, families_[1], &begin, &end);
    return status.ok() ? Status{Done{}} : error_of(status, directory_ + "/rocksdb");
  });
}

Status Archive::check_room_for_flush() const {
  std::uint64_t bytes = 0;
  SEMEL_CHECK(guarded([&]() -> Status {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      std::uint64_t of_family = 0;
      static_cast<void>(  // on failure: 0
          database_->GetIntProperty(family, rocksdb::DB::Properties::kCurSizeAllMemTables,
                                    &of_family));
      bytes += of_family;
    }
    return Done{};
  }));
  if (disk_.bytes_free(directory_) >= bytes + space_margin) return Done{};
  return Error{ErrorCode::storage_failed, directory_ + ": no space for " + std::to_string(bytes) +
                                              " bytes of RocksDB's memory"};
}

std::uint64_t Archive::bytes() const {
  std::uint64_t bytes = 0;
  const Status read = guarded([&]() -> Status {
    static_cast<void>(  // on failure: 0
        database_->GetIntProperty(families_[1], rocksdb::DB::Properties::kTotalSstFilesSize,
                                  &bytes));
    return Done{};
  });
  return read ? bytes : 0;
}

DatabaseStats Archive::stats() const {
  const auto count = [&](rocksdb::Tickers of) { return statistics_->getTickerCount(of); };
  DatabaseStats stats;
  const Status counted = guarded([&]() -> Status {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      for (int level = 0; level < database_->NumberLevels(family); ++level) {
        std::string files;
        const std::string name =
            rocksdb::DB::Properties::kNumFilesAtLevelPrefix + std::to_string(level);
        if (database_->GetProperty(family, name, &files)) stats.files += std::stoull(files);
      }
    }
    return Done{};
  });
  if (!counted) stats.files = 0;
  stats.bytes_flushed = count(rocksdb::FLUSH_WRITE_BYTES);
  stats.bytes_compacted = count(rocksdb::COMPACT_WRITE_BYTES);
  stats.bytes_read = count(rocksdb::COMPACT_READ_BYTES);
  stats.bytes_logged = count(rocksdb::WAL_FILE_BYTES);
  stats.log_syncs = count(rocksdb::WAL_FILE_SYNCED);
  stats.stalled_us = count(rocksdb::STALL_MICROS);
  return stats;
}

bool Archive::is_stuck() const {
  if (!ingest_status()) return true;
  std::uint64_t errors = 0;
  const Status read = guarded([&]() -> Status {
    static_cast<void>(  // on failure: 0
        database_->GetIntProperty(rocksdb::DB::Properties::kBackgroundErrors, &errors));
    return Done{};
  });
  return guard_.is_broken() || (read && errors > 0);
}

}  // namespace semel::storage
