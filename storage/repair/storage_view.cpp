#include "storage/repair/storage_view.hpp"

#include <fcntl.h>
#include <rocksdb/env.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table_properties.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <optional>
#include <regex>

#include "base/file_text.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/joint/joined_files.hpp"
#include "storage/log/mutation_codec.hpp"

namespace semel::storage {
namespace {

class SilentLogger final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

rocksdb::Options read_options() {
  static Disk disk;  // stateless
  rocksdb::Options options{database_options(disk), journal_options()};
  // Otherwise RocksDB would write a LOG file next to the data.
  options.info_log = std::make_shared<SilentLogger>();
  return options;
}

std::uint64_t size_of(const std::string& path) {
  std::error_code code;
  const auto bytes = std::filesystem::file_size(path, code);
  return code ? 0 : bytes;
}

bool is_table(const std::string& name) {
  return name.size() > 4 && name.compare(name.size() - 4, 4, ".sst") == 0;
}

std::optional<std::uint64_t> offset_in(const std::string& text) {
  const std::size_t at = text.find("offset ");
  if (at == std::string::npos || at + 7 >= text.size()) return std::nullopt;
  const char digit = text[at + 7];
  if (digit < '0' || digit > '9') return std::nullopt;
  return std::strtoull(text.c_str() + at + 7, nullptr, 10);
}

}  // namespace

Result<StorageLock> StorageLock::acquire(const std::string& directory) {
  SEMEL_TRY(own, DirectoryLock::acquire(directory, DirectoryLock::Missing::accept));
  StorageLock lock{std::move(own)};
  const std::string path = directory + "/rocksdb/LOCK";
  if (access(path.c_str(), F_OK) != 0) return lock;
  // This process cannot write to it then, and the lock of the directory is held.
  if (access(path.c_str(), W_OK) != 0 && (errno == EROFS || errno == EACCES)) return lock;
  // RocksDB's own call: it also knows locks of this process, and fcntl() would release its lock as
  // soon as any descriptor of the file is closed.
  const rocksdb::Status status = rocksdb::Env::Default()->LockFile(path, &lock.lock_);
  if (!status.ok()) return error_of(status, directory);
  return lock;
}

StorageLock::~StorageLock() {
  release_database();
}

void StorageLock::release_database() noexcept {
  // After an error the lock is released when this process ends.
  if (lock_ != nullptr) static_cast<void>(rocksdb::Env::Default()->UnlockFile(lock_));
  lock_ = nullptr;
}

Result<std::unique_ptr<ReadOnlyDatabase>> ReadOnlyDatabase::open(const std::string& path,
                                                                 rocksdb::WALRecoveryMode mode) {
  rocksdb::Options options = read_options();
  options.wal_recovery_mode = mode;
  std::vector<std::string> names;
  rocksdb::Status status = rocksdb::DB::ListColumnFamilies(options, path, &names);
  if (!status.ok()) return error_of(status, path);
  auto opened = std::unique_ptr<ReadOnlyDatabase>{new ReadOnlyDatabase};
  opened->forms_ = read_family_forms(path);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) {
    families.emplace_back(name, options_for(opened->forms_[name], options));
  }
  opened->log_check_ =
      std::make_unique<LogCheck>(LogCheck::Refused::left_out, families, opened->forms_);
  options.wal_filter = opened->log_check_.get();
  rocksdb::DB* database = nullptr;
  status =
      rocksdb::DB::OpenForReadOnly(options, path, families, &opened->families_, &database, false);
  if (!status.ok()) return error_of(status, path);
  opened->database_.reset(database);
  return opened;
}

ReadOnlyDatabase::~ReadOnlyDatabase() {
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    static_cast<void>(database_->DestroyColumnFamilyHandle(family));  // cannot fail for an open one
  }
}

namespace {

/// The least number above `from` for which `works` is true, found by doubling steps and then
/// bisection; none: it is false up to `most`.
std::optional<std::uint64_t> first_that_works(std::uint64_t from, std::uint64_t most,
                                              const std::function<bool(std::uint64_t)>& works) {
  std::uint64_t bad = from;
  std::uint64_t good = from;
  for (std::uint64_t step = 1; good == from; step *= 2) {
    if (bad == most) return std::nullopt;
    const std::uint64_t next = step < most - from ? from + step : most;
    (works(next) ? good : bad) = next;
  }
  while (good - bad > 1) {
    const std::uint64_t middle = bad + (good - bad) / 2;
    (works(middle) ? good : bad) = middle;
  }
  return good;
}

using Iterator = std::unique_ptr<rocksdb::Iterator>;

/// Moves behind an unreadable block. Null: there is no more. Each attempt needs a new iterator: one
/// that has met damage keeps reporting it.
Iterator step_over(const std::function<Iterator()>& make, const BlobKey& bad) {
  const auto at = [&](const BlobKey& key) {
    Iterator iterator = make();
    iterator->Seek(key.bytes());
    return iterator;
  };
  const auto works = [&](const BlobKey& key) { return at(key)->status().ok(); };
  BlobKey next{bad.span + 1, 0, 0};
  if (const auto number = first_that_works(
          bad.number, std::numeric_limits<std::uint32_t>::max(), [&](std::uint64_t n) {
            return works({bad.span, bad.offset, static_cast<std::uint32_t>(n)});
          })) {
    next = {bad.span, bad.offset, static_cast<std::uint32_t>(*number)};
  } else if (const auto offset = first_that_works(bad.offset, std::numeric_limits<LogOffset>::max(),
                                                  [&](std::uint64_t n) {
                                                    return works({bad.span, n, 0});
                                                  })) {
    next = {bad.span, *offset, 0};
  } else if (bad.span == span_never) {
    return nullptr;
  }
  return at(next);
}

}  // namespace

bool is_readable(const TableFile& file) noexcept {
  return file.is_cold || file.family.empty() || file.family == rocksdb::kDefaultColumnFamilyName ||
         file.family == journal_family || file.family == joined_family;
}

TableReading read_table(TableFile& file, const VisitEntry& visit) {
  TableReading reading;
  const auto note = [&](const rocksdb::Status& status) {
    if (status.ok() || !reading.status) return;
    reading.offset = offset_in(status.ToString());
    reading.status = Error{ErrorCode::storage_damaged, status.ToString()};
  };
  // Of tables of another form that of the whole file is compared, by the caller.
  if (!file.has_block_form) return reading;
  rocksdb::SstFileReader reader{read_options()};
  rocksdb::Status status = reader.Open(file.path);
  note(status);
  if (!status.ok()) return reading;
  if (const auto properties = reader.GetTableProperties(); properties && file.family.empty()) {
    file.family = properties->column_family_name;
    file.entries = properties->num_entries;
  }
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  note(reader.VerifyChecksum(options));
  if (!is_readable(file)) return reading;
  const auto make = [&] { return Iterator{reader.NewIterator(options)}; };
  Iterator at = make();
  BlobKey key = file.first;
  // Each iteration reads an entry or skips a block.
  for (at->SeekToFirst();;) {
    for (; at->Valid(); at->Next()) {
      ++reading.entries;
      reading.bytes += at->key().size() + at->value().size();
      visit(at->key().ToStringView(), at->value().ToStringView());
      static_cast<void>(
          BlobKey::read(at->key().ToStringView(), key));  // on failure the key is unchanged
    }
    if (at->status().ok()) return reading;
    note(at->status());
    if (!file.family.empty() && file.family != journal_family) return reading;
    at = step_over(make, key);
    if (at == nullptr || !at->Valid()) return reading;
  }
}

std::optional<LogOffset> segment_begin(const std::string& path) {
  const std::string name = std::filesystem::path{path}.filename().string();
  const LogOffset begin = std::strtoull(name.c_str(), nullptr, 16);
  if (name != segment_name(begin)) return std::nullopt;
  return begin;
}

std::string named_in(const std::string& problem, const std::string& directory) {
  // RocksDB looks for a missing table under its old name, .ldb, last.
  std::smatch table;
  if (std::regex_search(problem, table, std::regex{"([0-9]{6,})\\.(sst|ldb)"})) {
    return directory + "/" + table[1].str() + ".sst";
  }
  const std::size_t manifest = problem.find("MANIFEST-");
  if (manifest != std::string::npos) {
    const std::size_t stop = problem.find_first_not_of("0123456789", manifest + 9);
    return directory + "/" + problem.substr(manifest, stop - manifest);
  }
  return problem.find("CURRENT") != std::string::npos ? directory + "/CURRENT" : directory;
}

Status sync_path(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error(path);
  const bool good = fsync(descriptor) == 0;
  const Error error = good ? Error{} : system_error("fsync " + path);
  close(descriptor);
  return good ? Status{Done{}} : error;
}

bool each_mutation(Bytes group, const std::function<void(const Mutation&, Bytes)>& visit) {
  const DurableClock durable_clock{0};
  while (!group.empty()) {
    const Bytes before = group;
    Mutation mutation;
    if (!decode(group, durable_clock, Timestamp{}, mutation)) return false;
    visit(mutation, before.substr(0, before.size() - group.size()));
  }
  return true;
}

Result<StorageView> StorageView::read(const std::string& directory, bool is_snapshot) {
  StorageView view;
  view.directory = directory;
  std::error_code code;
  if (!std::filesystem::is_directory(directory, code)) {
    const bool is_there = std::filesystem::exists(directory, code);
    return Error{ErrorCode::storage_failed,
                 directory + (is_there ? ": is not a directory" : ": there is no such directory")};
  }
  if (!std::filesystem::exists(directory + "/mark", code) &&
      !std::filesystem::exists(directory + "/rocksdb", code)) {
    return Error{ErrorCode::storage_failed,
                 directory + ": has neither mark nor rocksdb/, so it is not a storage"};
  }
  for (const auto step : {&StorageView::read_checkpoint, &StorageView::list_segments,
                          &StorageView::open_database, &StorageView::list_tables}) {
    SEMEL_CHECK((view.*step)());
  }
  const std::string boot = Disk{}.boot_id();
  view.same_boot = !is_snapshot && !boot.empty() && boot == view.checkpoint.boot();
  return view;
}

ScanRules StorageView::rules() const noexcept {
  ScanRules rules;
  rules.storage_id = storage_id();
  rules.sound_to = same_boot ? std::numeric_limits<LogOffset>::max() : checkpoint.synced;
  rules.whole_from = checkpoint.begin;
  rules.whole_to = std::min(rules.sound_to, checkpoint.whole);
  return rules;
}

LogFiles StorageView::classify_log_files() const {
  std::vector<std::string> names;
  names.reserve(segments.size());
  for (const std::string& path : segments) {
    names.push_back(std::filesystem::path{path}.filename().string());
  }
  // From the database, or from the checkpoint if it cannot be opened.
  LogBounds bounds = log_bounds(checkpoint, database == nullptr ? checkpoint.drained : drained,
                                description.floor, rules(), same_boot);
  bounds.knows_drained = database != nullptr;
  return classify_log(directory + "/log", names, bounds);
}

Status StorageView::read_checkpoint() {
  const std::string path = directory + "/mark";
  const std::optional<std::string> bytes = base::read_file(path);
  if (!bytes && errno != ENOENT) return system_error("reading " + path);
  found = Checkpoint::read(bytes.value_or(""), checkpoint);
  if (found == Checkpoint::Found::content && checkpoint.format > format_version) {
    return unknown_format(directory, checkpoint.format);
  }
  return Done{};
}

Status StorageView::list_segments() {
  std::error_code code;
  if (!std::filesystem::exists(directory + "/log", code)) return Done{};
  SEMEL_TRY(names, list_directory(directory + "/log"));
  for (const std::string& name : names) {
    segments.push_back(directory + "/log/" + name);
    bytes_total += size_of(segments.back());
  }
  return Done{};
}

Status StorageView::open_database() {
  auto opened = ReadOnlyDatabase::open(directory + "/rocksdb",
                                       rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords);
  if (!opened) {
    database_status = opened.error();
    return Done{};
  }
  database = *std::move(opened);
  sequence = database->database().GetLatestSequenceNumber();
  return read_description();
}

Status StorageView::read_description() {
  for (rocksdb::ColumnFamilyHandle* family : database->families()) {
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    const std::unique_ptr<rocksdb::Iterator> at{database->database().NewIterator(options, family)};
    if (family->GetName() == rocksdb::kDefaultColumnFamilyName) {
      for (at->SeekToFirst(); at->Valid(); at->Next()) {
        merge_description_entry(at->key().ToStringView(), at->value().ToStringView(), description);
      }
    } else if (family->GetName() == journal_family) {
      at->SeekForPrev(BlobKey{1, 0, 0}.bytes());
      BlobKey key;
      if (at->Valid() && BlobKey::read(at->key().ToStringView(), key) && key.span == 0) {
        drained = key.offset;
      }
    }
  }
  if (description.format != 0 &&
      (description.format < format_oldest || description.format > format_version)) {
    return unknown_format(directory, description.format);
  }
  return Done{};
}

Status StorageView::list_tables() {
  const std::string path = directory + "/rocksdb";
  std::vector<rocksdb::LiveFileMetaData> live;
  if (database != nullptr) database->database().GetLiveFilesMetaData(&live);
  for (const rocksdb::LiveFileMetaData& file : live) {
    TableFile table{path + file.name,
                    file.column_family_name,
                    file.size,
                    file.num_entries,
                    {},
                    {},
                    {file.file_checksum_func_name, file.file_checksum}};
    if (const auto form = database->forms().find(table.family); form != database->forms().end())
      table.has_block_form = form->second.has_block_tables();
    static_cast<void>(BlobKey::read(file.smallestkey, table.first));  // of other families: none
    static_cast<void>(BlobKey::read(file.largestkey, table.last));    // the same
    // From the file's metadata: RocksDB 7.8 treats a damaged block of another file as the end of
    // the data.
    if (table.family == journal_family && table.last.span == 0) {
      drained = std::max(drained, table.last.offset);
    }
    tables.push_back(std::move(table));
  }
  std::error_code code;
  if (database == nullptr && std::filesystem::exists(path, code)) {
    SEMEL_TRY(names, list_directory(path));
    for (const std::string& name : names) {
      if (is_table(name))
        tables.push_back({path + "/" + name, {}, size_of(path + "/" + name), 0, {}, {}, {}});
    }
  }
  for (const TableFile& table : tables) bytes_total += table.bytes;
  return Done{};
}

}  // namespace semel::storage
