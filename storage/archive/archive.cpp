#include "storage/archive/archive.hpp"

#include <rocksdb/convenience.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "storage/archive/rocks_status.hpp"

namespace semel::storage {
namespace {

constexpr const char* format_key = "format";
constexpr const char* storage_key = "storage";
constexpr const char* versions_key = "versions";
constexpr const char* floor_key = "floor";
constexpr const char* anchor_key = "anchor";
constexpr const char* boot_first_key = "boot_first";

std::string words(std::initializer_list<std::uint64_t> values) {
  std::string bytes(values.size() * 8, '\0');
  char* to = bytes.data();
  for (const std::uint64_t value : values) {
    put_big_endian(value, to);
    to += 8;
  }
  return bytes;
}

/// RocksDB names the file when it is not its log.
std::string named_in(const rocksdb::Status& status, const std::string& path) {
  const std::string text = status.ToString();
  const bool has_name = text.find(".sst") != std::string::npos ||
                        text.find("MANIFEST") != std::string::npos ||
                        text.find("CURRENT") != std::string::npos;
  Result<std::vector<std::string>> names = list_directory(path);
  if (!status.IsCorruption() || has_name || !names) return path;
  std::string logs;
  for (const std::string& name : *names) {
    if (name.ends_with(".log")) logs += (logs.empty() ? "/" : " or ") + name;
  }
  return path + logs;
}

/// Others may keep files as well. Until RocksDB 9 a parameter says that theirs stay, too.
template <class Database>
rocksdb::Status keep_no_longer(Database& database) {
  if constexpr (requires { database.EnableFileDeletions(false); }) {
    return database.EnableFileDeletions(false);
  } else {
    return database.EnableFileDeletions();
  }
}

/// As long as it lives, RocksDB deletes no file: what its compaction replaces meanwhile, as it may
/// from the moment a database is open, can still be read by name.
class KeptFiles {
 public:
  explicit KeptFiles(rocksdb::DB& database)
      : database_(database), keeps_(database.DisableFileDeletions().ok()) {}
  ~KeptFiles() {
    if (keeps_) static_cast<void>(keep_no_longer(database_));
  }
  KeptFiles(const KeptFiles&) = delete;
  KeptFiles& operator=(const KeptFiles&) = delete;

 private:
  rocksdb::DB& database_;
  const bool keeps_;
};

}  // namespace

/// Packaged RocksDB 7.8.3; why each is set: docs/decisions/0005-storage-layout.md.
rocksdb::Options database_options(Disk& disk) {
  rocksdb::Options options;
  options.env = disk.env();
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.paranoid_checks = true;
  options.max_bgerror_resume_count = 0;
  options.max_background_jobs = 2;
  options.max_open_files = 256;  // files are read once, at recovery
  options.keep_log_file_num = 4;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  return options;
}

rocksdb::ColumnFamilyOptions journal_options() {
  rocksdb::ColumnFamilyOptions options;
  options.compression = rocksdb::CompressionType::kNoCompression;
  return options;
}

void BlobSet::add(SpanNumber span, Place place, std::string_view mutation) {
  std::vector<Blob>& blobs = spans_[span];
  if (blobs.empty() || blobs.back().bytes.size() >= blob_bytes) {
    const auto [last, is_first] = last_.try_emplace(span, BlobKey{span, place, 0});
    if (!is_first) {
      const std::uint32_t number = last->second.place == place ? last->second.number + 1 : 0;
      last->second = {span, place, number};
    }
    blobs.push_back({last->second, {}});
    blobs.back().bytes.reserve(blob_bytes + mutation.size());
  }
  blobs.back().bytes.append(mutation);
  bytes_ += mutation.size();
}

Result<std::unique_ptr<Archive>> Archive::open(Disk& disk, const Setup& setup) {
  auto archive = std::unique_ptr<Archive>{new Archive{disk, setup.directory}};
  SEMEL_TRY(opened, archive->open_database(setup));
  SEMEL_TRY(read, archive->read_description());
  static_cast<void>(opened), static_cast<void>(read);
  // What a process left that was writing files when it ended.
  SEMEL_TRY(left, list_directory(setup.directory + "/drain"));
  for (const std::string& name : left) {
    SEMEL_TRY(removed, disk.remove(setup.directory + "/drain/" + name));
    static_cast<void>(removed);
  }
  return archive;
}

Archive::~Archive() {
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    static_cast<void>(database_->DestroyColumnFamilyHandle(family));  // cannot fail for an open one
  }
}

Status Archive::open_database(const Setup& setup) {
  SEMEL_TRY(made, make_directory(directory_ + "/drain"));
  static_cast<void>(made);
  const std::string path = directory_ + "/rocksdb";
  rocksdb::Options options = database_options(disk_);
  options.env = &environment_;
  options.create_if_missing = setup.may_create;
  options.create_missing_column_families = true;
  std::vector<rocksdb::ColumnFamilyDescriptor> families{
      {rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions{}},
      {journal_family, journal_options()}};
  families.insert(families.end(), setup.families.begin(), setup.families.end());
  // RocksDB opens all families or none; those that nobody names now are opened as they are.
  std::vector<std::string> present;
  const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(options, path, &present);
  for (const std::string& name : listed.ok() ? present : std::vector<std::string>{}) {
    const bool named = std::any_of(families.begin(), families.end(),
                                   [&](const auto& family) { return family.name == name; });
    if (!named) families.emplace_back(name, rocksdb::ColumnFamilyOptions{});
  }
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, path, families, &families_, &opened);
  if (!status.ok()) return error_of(status, named_in(status, path));
  database_.reset(opened);
  return make_directory(path);  // RocksDB made it, and syncs what is in it, not its name
}

rocksdb::ColumnFamilyHandle* Archive::family(const std::string& name) const noexcept {
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    if (family->GetName() == name) return family;
  }
  return nullptr;
}

Status Archive::read_description() {
  Description& is = description_;
  const auto get = [&](const char* key, std::size_t least, std::string& value) -> Status {
    const rocksdb::Status status = database_->Get({}, families_[0], key, &value);
    if (!status.ok() && !status.IsNotFound()) return error_of(status, key);
    if (status.ok() ? value.size() >= least : is.format == 0) return Done{};
    return Error{ErrorCode::storage_damaged,
                 directory_ + "/rocksdb: the description has no right '" + key + "'"};
  };
  std::string value;
  SEMEL_TRY(a, get(format_key, 8, value));
  if (value.empty()) return Done{};
  is.format = get_big_endian(value.data());
  if (is.format < format_oldest || is.format > format_version) {
    return Error{is.format > format_version ? ErrorCode::storage_newer : ErrorCode::storage_failed,
                 directory_ + ": format " + std::to_string(is.format) + ", this release knows " +
                     std::to_string(format_version)};
  }
  SEMEL_TRY(b, get(storage_key, 8, value));
  is.storage_id = get_big_endian(value.data());
  SEMEL_TRY(c, get(versions_key, 8, value));
  is.versions = get_big_endian(value.data());
  SEMEL_TRY(d, get(floor_key, 8, value));
  is.floor = get_big_endian(value.data());
  SEMEL_TRY(e, get(anchor_key, 24, value));
  is.anchor.line_ms = static_cast<std::int64_t>(get_big_endian(value.data()));
  is.anchor.engine_ms = static_cast<std::int64_t>(get_big_endian(value.data() + 8));
  is.anchor.unix_ms = static_cast<std::int64_t>(get_big_endian(value.data() + 16));
  is.anchor.boot_id = value.substr(24);
  // Directories of earlier releases do not have it.
  const rocksdb::Status first = database_->Get({}, families_[0], boot_first_key, &value);
  if (!first.ok() && !first.IsNotFound()) return error_of(first, boot_first_key);
  is.boot_first = first.ok() && value.size() >= 8 ? get_big_endian(value.data())
                                                  : std::numeric_limits<std::uint64_t>::max();
  static_cast<void>(a), static_cast<void>(b), static_cast<void>(c), static_cast<void>(d);
  static_cast<void>(e);
  return Done{};
}

Status Archive::describe(const Description& is) {
  // Each entry carries a checksum on its way through memory.
  rocksdb::WriteBatch batch{0, 0, 8, 0};
  std::string anchor = words({static_cast<std::uint64_t>(is.anchor.line_ms),
                              static_cast<std::uint64_t>(is.anchor.engine_ms),
                              static_cast<std::uint64_t>(is.anchor.unix_ms)});
  anchor += is.anchor.boot_id;
  const std::pair<const char*, std::string> entries[] = {{format_key, words({format_version})},
                                                         {storage_key, words({is.storage_id})},
                                                         {versions_key, words({is.versions})},
                                                         {floor_key, words({is.floor})},
                                                         {anchor_key, anchor},
                                                         {boot_first_key, words({is.boot_first})}};
  rocksdb::Status status;
  for (const auto& [key, value] : entries) {
    if (status.ok()) status = batch.Put(families_[0], key, value);
  }
  rocksdb::WriteOptions options;
  options.sync = true;
  if (status.ok()) status = database_->Write(options, &batch);
  if (!status.ok()) return error_of(status, directory_ + "/rocksdb");
  description_ = is;
  return Done{};
}

Result<Place> Archive::drained() const {
  const std::unique_ptr<rocksdb::Iterator> it{database_->NewIterator({}, families_[1])};
  const std::string last = BlobKey{1, 0, 0}.bytes();
  it->SeekForPrev(last);
  if (!it->status().ok()) return error_of(it->status(), directory_ + "/rocksdb");
  BlobKey key;
  if (!it->Valid() || !BlobKey::read(it->key().ToStringView(), key) || key.span != 0) {
    return Place{0};
  }
  return key.place;
}

Status Archive::read_blobs(std::initializer_list<std::string_view> families, SpanNumber first,
                           const std::function<bool(std::string)>& visit) {
  // File by file: an iterator over the family, in RocksDB 7.8, meets a damaged first block of a
  // file as if it were the end of everything, and says OK. (What its log held is in a file since
  // open.)
  const KeptFiles kept{*database_};
  std::vector<rocksdb::LiveFileMetaData> files;
  database_->GetLiveFilesMetaData(&files);
  bool more = true;
  for (const rocksdb::LiveFileMetaData& file : files) {
    BlobKey last;
    if (std::count(families.begin(), families.end(), file.column_family_name) == 0) continue;
    if (BlobKey::read(file.largestkey, last) && last.span < first) continue;
    SEMEL_TRY(read, read_blobs_of(file.db_path + file.name, first, visit, more));
    static_cast<void>(read);
    if (!more) break;
  }
  return Done{};
}

Status Archive::read_blobs_of(const std::string& path, SpanNumber first,
                              const std::function<bool(std::string)>& visit, bool& more) {
  rocksdb::SstFileReader reader{rocksdb::Options{database_options(disk_), journal_options()}};
  if (rocksdb::Status status = reader.Open(path); !status.ok()) return error_of(status, path);
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.readahead_size = std::size_t{4} << 20;
  const std::unique_ptr<rocksdb::Iterator> blob{reader.NewIterator(options)};
  for (blob->Seek(BlobKey{first, 0, 0}.bytes()); more && blob->Valid(); blob->Next()) {
    BlobKey key;
    if (!BlobKey::read(blob->key().ToStringView(), key)) {
      return Error{ErrorCode::storage_damaged, path + ": a key is wrong"};
    }
    if (key.place < description_.floor || blob->value().empty()) continue;
    more = visit(blob->value().ToString());
  }
  return blob->status().ok() ? Status{Done{}} : error_of(blob->status(), path);
}

Result<std::string> Archive::write_file(const std::vector<BlobSet::Blob>& blobs) {
  const std::string path = directory_ + "/drain/" + std::to_string(++file_number_) + ".sst";
  // Its pages stay where they are: to drop them costs more than it gives.
  constexpr bool drops_pages = false;
  rocksdb::SstFileWriter writer{rocksdb::EnvOptions{},
                                rocksdb::Options{database_options(disk_), journal_options()},
                                nullptr, drops_pages};
  rocksdb::Status status = writer.Open(path);
  for (const BlobSet::Blob& blob : blobs) {
    if (status.ok()) status = writer.Put(blob.key.bytes(), blob.bytes);
  }
  if (status.ok()) status = writer.Finish();
  if (status.ok()) return path;
  static_cast<void>(disk_.remove(path));
  return error_of(status, path);
}

Status Archive::ingest(const std::vector<std::string>& files) {
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.snapshot_consistency = false;  // nobody reads what is taken in before the next open
  environment_.tables().begin();
  const rocksdb::Status status = database_->IngestExternalFile(families_[1], files, options);
  environment_.tables().end(status.ok());
  if (status.ok()) return Done{};
  // The manifest may name the files or not, so they stay. Each further attempt would leave more of
  // them, and could not succeed while RocksDB is stopped: there is none before the next open.
  Error error = error_of(status, directory_ + "/rocksdb");
  error.detail += reopen_remedy;
  ingest_failure_ = error.detail;
  ingest_failed_.store(true, std::memory_order_release);  // mo: release [archive.ingest]
  return error;
}

Status Archive::add(const BlobSet& blobs, Place drained) {
  if (const std::string_view why = ingest_failure(); !why.empty()) {
    return Error{ErrorCode::storage_failed, std::string{why}};
  }
  // A full disk in the middle of RocksDB's own bookkeeping would stop it until the next open.
  constexpr std::size_t margin = std::size_t{4} << 20;
  if (disk_.bytes_free(directory_) < blobs.bytes() + blobs.bytes() / 8 + margin) {
    return Error{ErrorCode::storage_failed,
                 directory_ + ": no space for " + std::to_string(blobs.bytes()) + " bytes"};
  }
  std::vector<std::string> files;
  Status status = Done{};
  const auto write = [&](const std::vector<BlobSet::Blob>& file) {
    Result<std::string> path = write_file(file);
    if (path) {
      files.push_back(*path);
    } else {
      status = path.error();
    }
  };
  if (drained != 0) write({{{0, drained, 0}, {}}});
  for (const auto& [span, file] : blobs.spans()) {
    if (status) write(file);
  }
  if (status && !files.empty()) status = ingest(files);
  for (const std::string& file : files) {
    static_cast<void>(disk_.remove(file));  // it was linked, or is in the way
  }
  if (status && drained != 0) status = delete_files({0, 0, 0}, {0, drained - 1, 0});
  return status;
}

Status Archive::delete_files(const BlobKey& first, const BlobKey& last) {
  const std::string begin = first.bytes();
  const std::string end = last.bytes();
  const rocksdb::Slice from{begin};
  const rocksdb::Slice to{end};
  const rocksdb::Status status =
      rocksdb::DeleteFilesInRange(database_.get(), families_[1], &from, &to);
  return status.ok() ? Status{Done{}} : error_of(status, directory_ + "/rocksdb");
}

Status Archive::forget(SpanNumber running) {
  return delete_files({1, 0, 0}, {running, 0, 0});
}

Status Archive::forget_before(Place floor) {
  std::vector<rocksdb::LiveFileMetaData> files;
  database_->GetLiveFilesMetaData(&files);
  for (const rocksdb::LiveFileMetaData& file : files) {
    BlobKey first;
    BlobKey last;
    if (file.column_family_name != journal_family || !BlobKey::read(file.smallestkey, first) ||
        !BlobKey::read(file.largestkey, last) || first.span == 0) {
      continue;
    }
    if (first.span != last.span || last.place >= floor) continue;
    SEMEL_TRY(deleted, delete_files(first, last));
    static_cast<void>(deleted);
  }
  return Done{};
}

Status Archive::compact(SpanNumber running) {
  SEMEL_TRY(forgotten, forget(running));
  static_cast<void>(forgotten);
  const std::string first = BlobKey{1, 0, 0}.bytes();
  const std::string last = BlobKey{running, 0, 0}.bytes();
  const rocksdb::Slice begin{first};
  const rocksdb::Slice end{last};
  rocksdb::Status status = database_->DeleteRange({}, families_[1], begin, end);
  if (status.ok()) status = database_->CompactRange({}, families_[1], &begin, &end);
  return status.ok() ? Status{Done{}} : error_of(status, directory_ + "/rocksdb");
}

std::uint64_t Archive::bytes() const {
  std::uint64_t bytes = 0;
  return database_->GetIntProperty(families_[1], rocksdb::DB::Properties::kTotalSstFilesSize,
                                   &bytes)
             ? bytes
             : 0;
}

bool Archive::is_stuck() const {
  if (!ingest_failure().empty()) return true;
  std::uint64_t errors = 0;
  return database_->GetIntProperty(rocksdb::DB::Properties::kBackgroundErrors, &errors) &&
         errors > 0;
}

}  // namespace semel::storage
