// repair_storage(): everything that is whole goes into a new database beside the old one; then they
// change places. A storage in whatever state is treated the same way, and at no moment is there
// less than before.
//
//   repaired/            what is being made: rocksdb/, log/, mark
//   repaired/complete    it is whole, and only has to be moved
//   lost+found-N/        what was there before
#include <rocksdb/write_batch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "storage/archive/rocks_status.hpp"
#include "storage/log/log_walk.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/repair/storage_check.hpp"
#include "storage/repair/storage_view.hpp"

namespace semel {

using storage::BlobKey;
using storage::BlobSet;
using storage::Place;

namespace {

bool exists(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

Status move(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return Done{};
  return storage::system_error("moving " + from + " to " + to);
}

/// Carries what is whole into a new archive.
class Salvage {
 public:
  static constexpr std::size_t batch_bytes = std::size_t{64} << 20;

  Salvage(storage::StorageView& view, storage::Archive& to, const TellProgress& progress)
      : view_(view), to_(to), progress_(progress), end_(end_of_all(view)) {}

  [[nodiscard]] Status run() {
    SEMEL_TRY(tables, take_tables());
    SEMEL_TRY(log, take_log());
    SEMEL_TRY(families, take_families());
    SEMEL_TRY(described, describe());
    static_cast<void>(tables), static_cast<void>(log), static_cast<void>(families);
    static_cast<void>(described);
    return to_.add(blobs_, end_);
  }
  [[nodiscard]] std::uint64_t mutations() const noexcept { return mutations_; }
  [[nodiscard]] Version versions() const noexcept { return versions_; }
  [[nodiscard]] Place end() const noexcept { return end_; }

 private:
  /// Above every place that was ever taken, so that nothing new meets something old.
  [[nodiscard]] static Place end_of_all(const storage::StorageView& view) {
    Place end = std::max({view.mark.tail, view.drained, view.description.floor,
                          Place{storage::segment_header_bytes}});
    for (const std::string& path : view.segments) {
      std::error_code code;
      const auto bytes = std::filesystem::file_size(path, code);
      if (!code) end = std::max(end, storage::segment_begin(path).value_or(0) + bytes);
    }
    for (const storage::TableFile& table : view.tables) end = std::max(end, table.last.place + 8);
    return (end + 7) / 8 * 8;
  }

  void keep(storage::SpanNumber span, Bytes group) {
    storage::MutationExtent extent;
    while (!group.empty() && storage::extent_of(group, extent)) {
      // One place for all, which no record has: keys of blobs that were drained before from the
      // same record cannot hide these, or be hidden.
      blobs_.add(span, end_ - 1, group.substr(0, extent.bytes));
      group.remove_prefix(extent.bytes);
      versions_ = std::max(versions_, extent.version);
      ++mutations_;
    }
    if (status_ && blobs_.bytes() >= batch_bytes) {
      status_ = to_.add(blobs_, 0);
      blobs_.clear();
    }
  }
  void tell(std::uint64_t bytes) {
    bytes_ += bytes;
    if (progress_) progress_({bytes_, view_.bytes_total});
  }

  [[nodiscard]] Status take_tables() {
    for (storage::TableFile& table : view_.tables) {
      // What cannot be read was told by the check and stays in lost+found.
      static_cast<void>(
          storage::read_table(table, [&](std::string_view key, std::string_view value) {
            BlobKey blob;
            const bool is_blob =
                BlobKey::read(key, blob) && (table.family == storage::journal_family ||
                                             (view_.database == nullptr && table.family.empty()));
            if (is_blob && blob.place >= view_.description.floor) keep(blob.span, value);
            if (view_.database == nullptr && table.family == rocksdb::kDefaultColumnFamilyName) {
              storage::take_description(key, value, view_.description);
            }
          }));
      tell(table.bytes);
    }
    return status_;
  }

  [[nodiscard]] Status take_log() {
    storage::PartCollector parts;
    for (const std::string& path : view_.segments) {
      const auto begin = storage::segment_begin(path);
      const auto file = storage::SegmentFile::open(path);
      if (!begin || !file || file->header().magic != storage::SegmentHeader::magic_value ||
          file->header().digest != file->header().right_digest() ||
          file->header().bytes != file->bytes().size()) {
        continue;
      }
      // For how long is not known here, as the length of a span is an option: until the files are
      // written anew.
      SEMEL_TRY(walk,
                storage::walk_segment(path, view_.rules(), parts, [&](Place place, Bytes group) {
                  if (place >= view_.description.floor) keep(storage::span_never, group);
                }));
      tell(walk.bytes);
    }
    return status_;
  }

  /// Those of the user, for as long as RocksDB can read them.
  [[nodiscard]] Status take_families() {
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
        status = to_.database().Put({}, to_.family(name), at->key(), at->value());
      }
      if (!status.ok()) return storage::error_of(status, name);
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
    if (is.storage_id == 0) is.storage_id = 1 + versions_;  // nothing is left to tell it from
    versions_ = std::max(versions_, is.versions) + storage::version_jump;
    is.versions = versions_;
    if (view_.mark.line_ms > is.anchor.line_ms) {
      is.anchor = {view_.mark.line_ms, view_.mark.engine_ms, view_.mark.unix_ms, view_.mark.boot()};
    }
    return to_.describe(is);
  }

  storage::StorageView& view_;
  storage::Archive& to_;
  const TellProgress& progress_;
  const Place end_;
  BlobSet blobs_;
  Status status_{Done{}};
  std::uint64_t mutations_ = 0;
  std::uint64_t bytes_ = 0;
  Version versions_ = 0;
};

Status write_mark(storage::Disk& disk, const std::string& path, const storage::Description& is,
                  Place end, std::uint64_t sequence, std::uint64_t segment_bytes) {
  SEMEL_TRY(mark, storage::Mark::open(disk, path));
  storage::MarkContent content;
  content.storage_id = is.storage_id;
  content.format = storage::format_version;
  content.segment_bytes = segment_bytes;
  content.begin = content.tail = content.whole = content.synced = content.drained = end;
  content.rocks_sequence = sequence;
  content.line_ms = is.anchor.line_ms;
  content.engine_ms = is.anchor.engine_ms;
  is.anchor.boot_id.copy(content.boot_id, sizeof content.boot_id - 1);
  mark->write(content);
  return mark->sync();
}

Status build(storage::StorageView& view, const std::string& to, StorageRepair& repair,
             const TellProgress& progress) {
  storage::Disk disk;
  std::error_code code;
  std::filesystem::remove_all(to, code);  // ours, of a repair that did not come to its end
  SEMEL_TRY(made, storage::make_new_directory(to));
  SEMEL_TRY(made_log, storage::make_directory(to + "/log"));
  static_cast<void>(made), static_cast<void>(made_log);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  if (view.database != nullptr) {
    for (rocksdb::ColumnFamilyHandle* family : view.database->families()) {
      const std::string& name = family->GetName();
      if (name == rocksdb::kDefaultColumnFamilyName || name == storage::journal_family) continue;
      families.emplace_back(name, rocksdb::ColumnFamilyOptions{});
    }
  }
  SEMEL_TRY(archive, storage::Archive::open(disk, {to, true, families}));
  Salvage salvage{view, *archive, progress};
  SEMEL_TRY(saved, salvage.run());
  SEMEL_TRY(marked, write_mark(disk, to + "/mark", archive->description(), salvage.end(),
                               archive->database().GetLatestSequenceNumber(),
                               std::max<std::uint64_t>(view.mark.segment_bytes, 1 << 16)));
  static_cast<void>(saved), static_cast<void>(marked);
  repair.mutations = salvage.mutations();
  repair.versions = salvage.versions();
  archive.reset();
  SEMEL_TRY(complete, disk.create(to + "/complete", 8));
  close(complete);
  return storage::sync_path(to);
}

/// Puts what is in repaired/ in the place of what is there. Goes on where it was killed.
Status change_places(const std::string& directory, std::string& moved_to) {
  const std::string from = directory + "/repaired";
  for (int n = 1; moved_to.empty(); ++n) {
    const std::string lost = directory + "/lost+found-" + std::to_string(n);
    if (mkdir(lost.c_str(), 0700) == 0) {
      moved_to = lost;
    } else if (errno != EEXIST) {
      return storage::system_error(lost);
    }
  }
  // The new database is held while it takes its place.
  SEMEL_TRY(lock, storage::StorageLock::take(from));
  static_cast<void>(lock);
  // The mark is there all the time: without one a storage would be taken for a new one.
  if (exists(from + "/mark")) {
    if (exists(directory + "/mark") &&
        link((directory + "/mark").c_str(), (moved_to + "/mark").c_str()) != 0) {
      return storage::system_error(moved_to + "/mark");
    }
    if (!exists(directory + "/mark")) {
      SEMEL_TRY(moved, move(from + "/mark", directory + "/mark"));
      static_cast<void>(moved);
    }
  }
  for (const char* name : {"/rocksdb", "/log", "/mark"}) {
    if (!exists(from + name)) continue;
    if (std::string_view{name} != "/mark" && exists(directory + name)) {
      SEMEL_TRY(moved, move(directory + name, moved_to + name));
      static_cast<void>(moved);
    }
    SEMEL_TRY(moved, move(from + name, directory + name));
    SEMEL_TRY(synced, storage::sync_path(directory));
    static_cast<void>(moved), static_cast<void>(synced);
  }
  std::error_code code;
  std::filesystem::remove_all(from, code);
  if (code) return Error{ErrorCode::storage_failed, from + ": " + code.message()};
  return storage::sync_path(directory);
}

}  // namespace

Result<StorageRepair> repair_storage(const std::string& directory, bool accept_loss,
                                     const TellProgress& progress) {
  SEMEL_TRY(lock, storage::StorageLock::take(directory));
  static_cast<void>(lock);
  StorageRepair repair;
  if (accept_loss && exists(directory + "/repaired/complete")) {
    SEMEL_TRY(changed, change_places(directory, repair.moved_to));
    static_cast<void>(changed);
    repair.changed = true;
    SEMEL_TRY(view, storage::StorageView::look(directory));
    repair.versions = view.description.versions;
    SEMEL_TRY(checked, storage::check_storage(view, repair.found, progress));
    static_cast<void>(checked);
    repair.mutations = repair.found.mutations;
    return repair;
  }
  SEMEL_TRY(view, storage::StorageView::look(directory));
  SEMEL_TRY(checked, storage::check_storage(view, repair.found, progress));
  static_cast<void>(checked);
  if (!accept_loss || repair.found.findings.empty()) return repair;
  SEMEL_TRY(built, build(view, directory + "/repaired", repair, progress));
  view.database.reset();
  SEMEL_TRY(changed, change_places(directory, repair.moved_to));
  static_cast<void>(built), static_cast<void>(changed);
  repair.changed = true;
  return repair;
}

}  // namespace semel
