#include "storage/cold/cold_files.hpp"

#include <rocksdb/convenience.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <vector>

#include "base/assert.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_bond.hpp"
#include "storage/cold/cold_database.hpp"
#include "storage/cold/cold_format.hpp"

namespace semel::storage {

namespace {

/// A file on its way into the database, gone at the end in any case. If it stays, the next open
/// removes it.
class Leftover {
 public:
  Leftover(const rocksdb::DB& database, const std::string& path) noexcept
      : database_(database), path_(path) {}
  ~Leftover() {
    try {
      static_cast<void>(database_.GetEnv()->DeleteFile(path_));
    } catch (...) {  // as above
    }
  }
  Leftover(const Leftover&) = delete;
  Leftover& operator=(const Leftover&) = delete;

 private:
  const rocksdb::DB& database_;
  const std::string& path_;
};

}  // namespace

void ColdFiles::check_invariants() const noexcept {
  SEMEL_ASSERT(database_ == nullptr || family_ != nullptr);
  SEMEL_ASSERT(database_ != nullptr || has_stopped_);
}

rocksdb::Status ColdFiles::get(const std::string& key, std::string& bytes) const {
  const base::SharedLock open{opening_};
  if (database_ == nullptr)
    return rocksdb::Status::IOError("the cold store could not be opened again");
  return database_->Get({}, family_, key, &bytes);
}

std::uint64_t ColdFiles::readers_bytes() const {
  std::uint64_t bytes = 0;
  const base::SharedLock open{opening_};
  if (database_ != nullptr) {
    static_cast<void>(database_->GetIntProperty(  // on failure: 0
        family_, rocksdb::DB::Properties::kEstimateTableReadersMem, &bytes));
  }
  return bytes;
}

Status ColdFiles::be_writable(std::size_t bytes_free) {
  const std::string& directory = settings_.directory;
  if (bytes_free != 0 && settings_.disk != nullptr &&
      settings_.disk->bytes_free(directory) < bytes_free) {
    return Error{ErrorCode::storage_failed,
                 directory + ": no space for " + std::to_string(bytes_free) + " bytes"};
  }
  return has_stopped_ ? reopen() : Status{Done{}};
}

/// RocksDB's Resume() is not used: in 7.8, files ingested after it get the sequence number 0. A new
/// open has the effect of a restart by an operator.
Status ColdFiles::reopen() {
  constexpr std::size_t enough = std::size_t{8} << 20;
  const std::string& directory = settings_.directory;
  if (!settings_.reopen || guard_.is_broken()) {
    return Error{ErrorCode::storage_failed,
                 directory + ": a change has failed; open the cold store again"};
  }
  if (settings_.disk != nullptr && settings_.disk->bytes_free(directory) < enough) {
    return Error{ErrorCode::storage_failed, directory + ": no space to go on after an error"};
  }
  {
    const base::ExclusiveLock alone{opening_};
    const Status opened = settings_.reopen();
    std::tie(database_, family_) = settings_.opened();
    check_invariants();
    if (!opened) return opened.error();
  }
  SEMEL_CHECK(delete_strangers());
  has_stopped_ = false;
  return guard_.run([&]() -> Status {
    compact_facts();  // each opening leaves a small file
    return Done{};
  });
}

/// A part is one file, so nothing else has to be deleted.
rocksdb::Status ColdFiles::delete_file_of(std::uint64_t number) {
  const std::string begin_key = cold_key(number, ColdKey::facts, 0);
  const std::string end_key = cold_key(number + 1, ColdKey::facts, 0);
  const rocksdb::Slice begin{begin_key};
  const rocksdb::Slice end{end_key};
  return rocksdb::DeleteFilesInRange(database_, family_, &begin, &end, false);
}

Status ColdFiles::delete_strangers() {
  std::vector<std::uint64_t> known;
  const std::shared_ptr<const Catalog> seen = catalogs_.now();
  for (const Generation& generation : seen->generations) {
    for (const auto& part : generation.parts()) known.push_back(part->facts.number);
  }
  return guard_.run([&]() -> Status {
    std::vector<rocksdb::LiveFileMetaData> files;
    database_->GetLiveFilesMetaData(&files);
    for (const rocksdb::LiveFileMetaData& file : files) {
      if (file.column_family_name != family_->GetName()) continue;
      const std::uint64_t number = cold_part_of(file.smallestkey).value_or(0);
      if (number == 0 || std::find(known.begin(), known.end(), number) != known.end()) continue;
      const rocksdb::Status status = delete_file_of(number);
      if (!status.ok()) return error_of(status, "cold parts");
    }
    return Done{};
  });
}

Status ColdFiles::put(const std::string& key, const std::string& bytes) {
  constexpr std::size_t log_bytes = std::size_t{1} << 20;
  SEMEL_CHECK(be_writable(log_bytes));
  rocksdb::WriteOptions options;
  options.sync = true;
  return change([&](rocksdb::DB& database) {
    const rocksdb::Status status = database.Put(options, family_, key, bytes);
    return status.ok() ? Status{Done{}} : error_of(status, "cold store");
  });
}

Result<std::uint64_t> ColdFiles::write_part(
    const std::string& path, const std::function<rocksdb::Status(rocksdb::SstFileWriter&)>& fill) {
  const Leftover leftover{*database_, path};
  rocksdb::ExternalSstFileInfo info;
  SEMEL_CHECK(
      guard_.write_table(database_->GetOptions(family_), true, [&](TableWriter& file) -> Status {
        rocksdb::Status status = file->Open(path);
        if (status.ok()) status = fill(*file);
        if (status.ok()) status = file.finish(info);  // synced
        return status.ok() ? Status{Done{}} : error_of(status, path);
      }));
  SEMEL_CHECK(ingest(path, info));
  return info.file_size;
}

/// After one that failed the manifest may name the file or not, so it stays until the database is
/// opened again (kept_tables.hpp).
Status ColdFiles::ingest(const std::string& path, const rocksdb::ExternalSstFileInfo& info) {
  rocksdb::IngestExternalFileArg part;
  part.column_family = family_;
  part.external_files = {path};
  if (!info.file_checksum.empty()) {
    part.files_checksums = {info.file_checksum};
    part.files_checksum_func_names = {info.file_checksum_func_name};
  }
  part.options.move_files = true;
  part.options.failed_move_fall_back_to_copy = true;
  part.options.snapshot_consistency = false;  // no snapshot contains this part
  // As in Archive::ingest().
  part.options.write_global_seqno = false;
  part.options.verify_file_checksum = false;
  if (settings_.tables != nullptr) settings_.tables->begin();
  const Status status = change([&](rocksdb::DB& database) {
    const rocksdb::Status ingested = database.IngestExternalFiles({part});
    return ingested.ok() ? Status{Done{}} : error_of(ingested, path);
  });
  if (settings_.tables != nullptr) settings_.tables->end(status.ok());
  return status;
}

Status ColdFiles::delete_part(std::uint64_t number) {
  SEMEL_CHECK(be_writable(0));
  return change([&](rocksdb::DB&) {
    const rocksdb::Status status = delete_file_of(number);
    return status.ok() ? Status{Done{}} : error_of(status, "cold parts");
  });
}

Result<DurableClock> ColdFiles::follow_clock(const StorageClock& clock, const DurableClock& own) {
  SEMEL_CHECK(be_writable(0));
  DurableClock next = own;
  SEMEL_CHECK(change([&](rocksdb::DB& database) -> Status {
    SEMEL_TRY(followed, storage::follow_clock(database, clock, own));
    next = followed;
    return Done{};
  }));
  return next;
}

Status ColdFiles::copy_to(const std::string& directory) {
  SEMEL_CHECK(make_new_directory(directory));
  if (database_ == nullptr) SEMEL_CHECK(be_writable(0));
  SEMEL_CHECK(mark_as_backup(*database_->GetEnv(), directory));
  return guard_.run([&] {  // a target that fails is no error of the store
    rocksdb::Checkpoint* made = nullptr;
    rocksdb::Status status = rocksdb::Checkpoint::Create(database_, &made);
    const std::unique_ptr<rocksdb::Checkpoint> copier{made};
    // 0 flushes the memtables: RocksDB 7.8 does not sync all of a linked log.
    if (status.ok()) status = copier->CreateCheckpoint(cold_database_path(directory), 0);
    return status.ok() ? Status{Done{}} : error_of(status, directory);
  });
}

void ColdFiles::remove_leftovers() const {
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator{database_->GetName(), ignored}) {
    const std::string name = file.path().filename();
    if (name.starts_with("cold-") && name.ends_with(".part")) {
      static_cast<void>(database_->GetEnv()->DeleteFile(file.path()));  // it stays, then
    }
  }
}

void ColdFiles::compact_facts() const {
  constexpr std::ptrdiff_t files_max = 8;
  std::vector<rocksdb::LiveFileMetaData> files;
  database_->GetLiveFilesMetaData(&files);
  const auto has_facts = [&](const rocksdb::LiveFileMetaData& file) {
    return file.column_family_name == family_->GetName() && cold_part_of(file.smallestkey) == 0;
  };
  if (std::count_if(files.begin(), files.end(), has_facts) <= files_max) return;
  const std::string first = cold_key(0, ColdKey::facts, 0);
  const std::string last = cold_key(0, ColdKey::bucket, 0);
  const rocksdb::Slice begin{first};
  const rocksdb::Slice end{last};
  // On an error they stay.
  static_cast<void>(database_->CompactRange({}, family_, &begin, &end));
}

}  // namespace semel::storage
