// repair_storage(): copies everything intact into a new database beside the old one, then swaps the
// two. All damage is treated the same way, and at no moment is less data there than before.
//
//   repaired/            the new storage while it is made: rocksdb/, log/, mark
//   repaired/complete    it is complete; only the swap is left
//   lost+found-N/        the old files
#include <rocksdb/wide_columns.h>
#include <rocksdb/write_batch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "semel/cold_directory.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/backup/backup_list.hpp"
#include "storage/log/log_walk.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/repair/cold_check.hpp"
#include "storage/repair/delta_check.hpp"
#include "storage/repair/rocks_log_repair.hpp"
#include "storage/repair/storage_check.hpp"
#include "storage/repair/storage_view.hpp"

namespace semel {

using storage::BlobKey;
using storage::BlobSet;
using storage::LogOffset;

namespace {

bool exists(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

Status move(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return Done{};
  return storage::system_error("moving " + from + " to " + to);
}

storage::FamilyForm form_of(const storage::StorageView& view, const std::string& family) {
  const auto form = view.database->forms().find(family);
  return form == view.database->forms().end() ? storage::FamilyForm{} : form->second;
}

/// Copies intact mutations into a new archive.
class Salvage {
 public:
  static constexpr std::size_t batch_bytes = std::size_t{64} << 20;

  Salvage(storage::StorageView& view, storage::Archive& to, const TellProgress& progress)
      : view_(view), to_(to), progress_(progress), end_(end_of_all(view)) {}

  [[nodiscard]] Status run() {
    // A delta is of no use without its base.
    SEMEL_CHECK(copy_tables());
    SEMEL_CHECK(copy_log());
    static_cast<void>(deltas_.needs_second_pass());  // only sorts out the orphans
    is_copying_ = true;
    SEMEL_CHECK(copy_tables());
    SEMEL_CHECK(copy_log());
    SEMEL_CHECK(copy_families());
    SEMEL_CHECK(describe());
    return to_.add(blobs_, end_);
  }
  [[nodiscard]] std::uint64_t mutations() const noexcept { return mutations_; }
  [[nodiscard]] Version versions() const noexcept { return versions_; }
  [[nodiscard]] LogOffset end() const noexcept { return end_; }

 private:
  /// Larger than every log offset that was ever used, so that new data cannot collide with old
  /// data.
  [[nodiscard]] static LogOffset end_of_all(const storage::StorageView& view) {
    LogOffset end = std::max({view.checkpoint.tail, view.drained, view.description.floor,
                              LogOffset{storage::segment_header_bytes}});
    for (const std::string& path : view.segments) {
      std::error_code code;
      const auto bytes = std::filesystem::file_size(path, code);
      if (!code) end = std::max(end, storage::segment_begin(path).value_or(0) + bytes);
    }
    for (const storage::TableFile& table : view.tables) end = std::max(end, table.last.offset + 8);
    return (end + 7) / 8 * 8;
  }

  void keep(storage::SpanNumber span, Bytes group) {
    if (!is_copying_) {
      static_cast<void>(storage::each_mutation(  // those behind an unreadable one do not count
          group, [this](const Mutation& mutation, Bytes) { deltas_.add(mutation); }));
      return;
    }
    storage::MutationExtent extent;
    while (!group.empty() && storage::extent_of(group, extent)) {
      // One offset for all, which no record has: the keys cannot collide with those of blobs that
      // were drained from the same record.
      const Bytes mutation = group.substr(0, extent.bytes);
      group.remove_prefix(extent.bytes);
      if (extent.is_delta && deltas_.is_orphan(extent.db, extent.key, extent.version)) continue;
      blobs_.add(span, end_ - 1, mutation);
      versions_ = std::max(versions_, extent.version);
      ++mutations_;
    }
    if (status_ && blobs_.bytes() >= batch_bytes) {
      status_ = to_.add(blobs_, 0);
      blobs_.clear();
    }
  }
  void report_progress(std::uint64_t bytes) {
    if (!is_copying_) return;
    bytes_ += bytes;
    if (progress_) progress_({bytes_, view_.bytes_total});
  }

  [[nodiscard]] Status copy_tables() {
    for (storage::TableFile& table : view_.tables) {
      // Unreadable entries were reported by the check and stay in lost+found.
      static_cast<void>(
          storage::read_table(table, [&](std::string_view key, std::string_view value) {
            BlobKey blob;
            const bool is_blob =
                BlobKey::read(key, blob) && (table.family == storage::journal_family ||
                                             (view_.database == nullptr && table.family.empty()));
            if (is_blob && blob.offset >= view_.description.floor) keep(blob.span, value);
            if (view_.database == nullptr && table.family == rocksdb::kDefaultColumnFamilyName) {
              storage::merge_description_entry(key, value, view_.description);
            }
          }));
      report_progress(table.bytes);
    }
    return status_;
  }

  [[nodiscard]] Status copy_log() {
    storage::PartCollector parts;
    for (const std::string& path : files_of_log()) {
      // Their span is unknown here, as its length is an option. They stay until the files are
      // rewritten.
      SEMEL_TRY(walk, storage::walk_segment(path, view_.rules(), parts,
                                            [&](LogOffset offset, Bytes group) {
                                              if (offset >= view_.description.floor)
                                                keep(storage::span_never, group);
                                            }));
      report_progress(walk.bytes);
    }
    return status_;
  }

  /// What counts when the storage is opened. If its description is lost, every file that has a
  /// valid header.
  [[nodiscard]] std::vector<std::string> files_of_log() const {
    std::vector<std::string> paths;
    if (view_.description.format != 0) {
      for (const storage::LogFile& file : view_.classify_log_files().files) {
        if (file.is == storage::LogFileIs::segment) paths.push_back(file.path);
      }
      return paths;
    }
    for (const std::string& path : view_.segments) {
      const auto file = storage::SegmentFile::open(path);
      if (storage::segment_begin(path) && file && file->header().is_valid() &&
          file->header().bytes == file->bytes().size()) {
        paths.push_back(path);
      }
    }
    return paths;
  }

  /// Copies the user's families, as far as RocksDB can read them.
  [[nodiscard]] Status copy_families() {
    if (view_.database == nullptr) return Done{};
    for (rocksdb::ColumnFamilyHandle* family : view_.database->families()) {
      const std::string& name = family->GetName();
      if (name == rocksdb::kDefaultColumnFamilyName || name == storage::journal_family) continue;
      rocksdb::ReadOptions options;
      options.verify_checksums = true;
      const std::unique_ptr<rocksdb::Iterator> at{
          view_.database->database().NewIterator(options, family)};
      rocksdb::Status status;
      for (at->SeekToFirst(); at->Valid() && status.ok(); at->Next()) {
        const rocksdb::WideColumns& columns = at->columns();
        const bool is_plain =
            columns.size() == 1 && columns.front().name() == rocksdb::kDefaultWideColumnName;
        status = is_plain ? to_.database().Put({}, to_.family(name), at->key(), at->value())
                          : to_.database().PutEntity({}, to_.family(name), at->key(), columns);
      }
      // Damage ends the copy of a family. That its operator is not here must not.
      if (status.ok() && !form_of(view_, name).merge_operator.empty()) status = at->status();
      if (!status.ok()) return storage::error_of(status, "the column family '" + name + "'");
    }
    return Done{};
  }

  [[nodiscard]] Status describe() {
    storage::Description is = view_.description;
    is.storage_id = view_.storage_id();
    for (const std::string& path : view_.segments) {
      const auto file = storage::SegmentFile::open(path);
      if (is.storage_id == 0 && file) is.storage_id = file->header().storage_id;
    }
    if (is.storage_id == 0) is.storage_id = 1 + versions_;  // no id was found; any number will do
    versions_ = std::max(versions_, is.versions) + storage::random_version_jump();
    is.versions = versions_;
    if (view_.checkpoint.line_ms > is.anchor.line_ms) {
      is.anchor = {view_.checkpoint.line_ms, view_.checkpoint.engine_ms, view_.checkpoint.unix_ms,
                   view_.checkpoint.boot()};
    }
    return to_.describe(is);
  }

  storage::StorageView& view_;
  storage::Archive& to_;
  const TellProgress& progress_;
  const LogOffset end_;
  storage::DeltaCheck deltas_;
  bool is_copying_ = false;  // the first time everything is only looked at
  BlobSet blobs_;
  Status status_{Done{}};
  std::uint64_t mutations_ = 0;
  std::uint64_t bytes_ = 0;
  Version versions_ = 0;
};

Status write_checkpoint(storage::Disk& disk, const std::string& path,
                        const storage::Description& is, LogOffset end, std::uint64_t sequence,
                        std::uint64_t segment_bytes) {
  SEMEL_TRY(checkpoint, storage::Checkpoint::open(disk, path));
  storage::CheckpointContent content;
  content.storage_id = is.storage_id;
  content.format = storage::format_version;
  content.segment_bytes = segment_bytes;
  content.begin = content.tail = content.whole = content.synced = content.drained = end;
  content.rocks_sequence = sequence;
  content.line_ms = is.anchor.line_ms;
  content.engine_ms = is.anchor.engine_ms;
  is.anchor.boot_id.copy(content.boot_id, sizeof content.boot_id - 1);
  return checkpoint->write_and_sync(content);
}

Status build(storage::StorageView& view, const std::string& to, StorageRepair& repair,
             const TellProgress& progress) {
  storage::Disk disk;
  std::error_code code;
  std::filesystem::remove_all(to, code);  // left by an interrupted repair
  SEMEL_CHECK(storage::make_new_directory(to));
  SEMEL_CHECK(storage::make_directory(to + "/log"));
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  if (view.database != nullptr) {
    for (rocksdb::ColumnFamilyHandle* family : view.database->families()) {
      const std::string& name = family->GetName();
      if (name == rocksdb::kDefaultColumnFamilyName || name == storage::journal_family) continue;
      const storage::FamilyForm form = form_of(view, name);
      if (!form.has_known_order() || !form.has_block_tables()) {
        const std::string needs = form.has_known_order()
                                      ? "tables of the form " + form.table
                                      : "the comparator '" + form.comparator + "'";
        return Error{ErrorCode::storage_failed, "the column family '" + name + "' has " + needs +
                                                    ", without which it cannot be copied"};
      }
      families.emplace_back(name, storage::options_for(form, {}));
    }
  }
  SEMEL_TRY(archive, storage::Archive::open(disk, {to, true, families}));
  Salvage salvage{view, *archive, progress};
  SEMEL_CHECK(salvage.run());
  SEMEL_CHECK(write_checkpoint(disk, to + "/mark", archive->description(), salvage.end(),
                               archive->database().GetLatestSequenceNumber(),
                               std::max<std::uint64_t>(view.checkpoint.segment_bytes, 1 << 16)));
  repair.mutations = salvage.mutations();
  repair.versions = salvage.versions();
  archive.reset();
  SEMEL_TRY(complete, disk.create(to + "/complete", 8));
  close(complete);
  return storage::sync_path(to);
}

/// Makes the directory for removed files.
Result<std::string> make_lost_and_found(const std::string& directory) {
  for (int n = 1;; ++n) {  // bounded: by the repairs before
    std::string lost = directory + "/lost+found-" + std::to_string(n);
    if (mkdir(lost.c_str(), 0700) == 0) return lost;
    if (errno != EEXIST) return storage::system_error(lost);
  }
}

/// After a repair a backup's files are others than those in its list.
Status forget_backup_files(const std::string& directory) {
  if (!storage::is_backup(directory)) return Done{};
  SEMEL_TRY(list, storage::read_backup_list(directory));
  list.files.clear();
  list.has_files = false;
  return storage::write_backup_list(*storage::Disk{}.env(), directory, list);
}

/// Leaves what RocksDB refuses out of its log; all else stays as it is. Returns the directory with
/// the logs as they were.
Result<std::string> leave_refused_out(const std::string& directory,
                                      const std::vector<storage::RefusedRecord>& refused) {
  SEMEL_TRY(lost, make_lost_and_found(directory));
  SEMEL_CHECK(storage::leave_out(refused, lost));
  SEMEL_CHECK(forget_backup_files(directory));
  return lost;
}

/// Replaces the storage by the content of repaired/, also after an attempt that was killed. Returns
/// the directory that the files were moved to.
Result<std::string> install_repaired(const std::string& directory) {
  const std::string from = directory + "/repaired";
  SEMEL_TRY(moved_to, make_lost_and_found(directory));
  // Lock the new database until it is in place.
  SEMEL_TRY(lock, storage::StorageLock::acquire(from));
  // The file `mark` exists at all times: without it the directory would count as a new storage.
  if (exists(from + "/mark")) {
    if (exists(directory + "/mark") &&
        link((directory + "/mark").c_str(), (moved_to + "/mark").c_str()) != 0) {
      return storage::system_error(moved_to + "/mark");
    }
    if (!exists(directory + "/mark")) {
      SEMEL_CHECK(move(from + "/mark", directory + "/mark"));
    }
  }
  for (const char* name : {"/rocksdb", "/log", "/mark"}) {
    if (!exists(from + name)) continue;
    if (std::string_view{name} != "/mark" && exists(directory + name)) {
      SEMEL_CHECK(move(directory + name, moved_to + name));
    }
    SEMEL_CHECK(move(from + name, directory + name));
    SEMEL_CHECK(storage::sync_path(directory));
  }
  std::error_code code;
  std::filesystem::remove_all(from, code);
  if (code) return Error{ErrorCode::storage_failed, from + ": " + code.message()};
  SEMEL_CHECK(storage::sync_path(directory));
  SEMEL_CHECK(forget_backup_files(directory));
  return moved_to;
}

/// Repairs the findings: first RocksDB's log alone, in place; then the remaining ones by a copy of
/// the whole storage.
Status repair_files(storage::StorageView& view, const std::string& directory, StorageRepair& repair,
                    const TellProgress& progress) {
  StorageCheck left = repair.found;
  if (view.database != nullptr && !view.database->refused().empty()) {
    const std::vector<storage::RefusedRecord> refused = view.database->refused();
    view.database.reset();
    SEMEL_TRY(moved_to, leave_refused_out(directory, refused));
    repair.moved_to = std::move(moved_to);
    repair.changed = true;
    SEMEL_TRY(next, storage::StorageView::read(directory));
    view = std::move(next);
    left = {};
    SEMEL_CHECK(storage::check_storage(view, left, {}));
    repair.mutations = left.mutations;
    repair.versions = view.description.versions;
  }
  if (!left.findings.empty()) {
    SEMEL_CHECK(build(view, directory + "/repaired", repair, progress));
    view.database.reset();
    SEMEL_TRY(moved_to, install_repaired(directory));
    repair.moved_to = std::move(moved_to);
    repair.changed = true;
    SEMEL_TRY(repaired, storage::StorageView::read(directory));
    left = {};
    SEMEL_CHECK(storage::check_storage(repaired, left, {}));
  }
  repair.unknown_namespaces = std::move(left.unknown_namespaces);
  return Done{};
}

/// The storage and the store at `found` fit each other from now on. False: the store cannot be
/// opened, or belongs to another storage.
Result<bool> bind_cold(const std::string& found, storage::Description& is) {
  const SystemClock clock;
  auto opened = open_cold_directory({.directory = found}, clock);
  if (!opened && opened.error().code == ErrorCode::storage_in_use) return opened.error();
  if (!opened) return false;
  ColdStore& cold = **opened;
  if (cold.bond().storage != 0 && cold.bond().storage != is.storage_id) return false;
  is.cold = cold.mark();
  is.cold_token = storage::random_id();
  is.versions = std::max(is.versions, cold.first_version());
  SEMEL_CHECK(cold.bind({is.storage_id, is.cold_token, 0, false}));
  return true;
}

/// Applies the cold store options of StorageRepairOptions.
Status mend_cold(const std::string& directory, const StorageRepairOptions& options,
                 StorageRepair& repair) {
  storage::Disk disk;
  SEMEL_TRY(archive, storage::Archive::open(disk, {directory, false, {}}));
  storage::Description is = archive->description();
  const std::optional<std::string> found = storage::find_cold(directory, options.cold);
  if (options.without_cold) {
    is.cold = {};
    is.cold_token = 0;
    repair.cold_given_up = true;
  } else if (found) {
    SEMEL_TRY(bound, bind_cold(*found, is));
    repair.cold_bound = bound;
  }
  if (!repair.cold_bound && !repair.cold_given_up) return Done{};
  is.versions += storage::random_version_jump();
  repair.versions = is.versions;
  repair.changed = true;
  return archive->describe(is);
}

/// Finishes a repair that was killed.
Result<StorageRepair> finish_repair(const std::string& directory, const TellProgress& progress) {
  StorageRepair repair;
  SEMEL_TRY(moved_to, install_repaired(directory));
  repair.moved_to = std::move(moved_to);
  repair.changed = true;
  SEMEL_TRY(view, storage::StorageView::read(directory));
  repair.versions = view.description.versions;
  SEMEL_CHECK(storage::check_storage(view, repair.found, progress));
  repair.mutations = repair.found.mutations;
  return repair;
}

}  // namespace

Result<StorageRepair> repair_storage(const std::string& directory,
                                     const StorageRepairOptions& options,
                                     const TellProgress& progress) {
  SEMEL_TRY(lock, storage::StorageLock::acquire(directory));
  // Repair cannot complete an incomplete backup.
  if (storage::is_backup(directory)) SEMEL_CHECK(storage::read_backup_list(directory));
  if (options.accept_loss && exists(directory + "/repaired/complete")) {
    return finish_repair(directory, progress);
  }
  StorageRepair repair;
  if (storage::is_backup(directory)) {
    SEMEL_CHECK(storage::check_backup_list(directory, repair.found));
  }
  SEMEL_TRY(view, storage::StorageView::read(directory, lock.is_snapshot()));
  SEMEL_CHECK(storage::check_storage(view, repair.found, progress));
  SEMEL_CHECK(storage::check_cold(view, options.cold, repair.found.cold, progress));
  if (!options.accept_loss) return repair;
  if (!repair.found.findings.empty()) SEMEL_CHECK(repair_files(view, directory, repair, progress));
  view.database.reset();
  lock.release_database();
  if (!repair.found.cold.findings.empty()) SEMEL_CHECK(mend_cold(directory, options, repair));
  return repair;
}

Result<StorageRepair> repair_storage(const std::string& directory, bool accept_loss,
                                     const TellProgress& progress) {
  return repair_storage(directory, StorageRepairOptions{.accept_loss = accept_loss}, progress);
}

}  // namespace semel
