// verify_storage(): compares a view with what a sound storage must have.
#include <algorithm>
#include <filesystem>

#include "storage/backup/backup_list.hpp"
#include "storage/joint/joined_files.hpp"
#include "storage/log/log_walk.hpp"
#include "storage/repair/cold_check.hpp"
#include "storage/repair/delta_check.hpp"
#include "storage/repair/namespace_check.hpp"
#include "storage/repair/storage_check.hpp"
#include "storage/repair/storage_view.hpp"

namespace semel::storage {
namespace {

bool holds_blobs(const TableFile& table) {
  return table.family == journal_family || table.family == joined_family;
}

class Checker {
 public:
  Checker(StorageView& view, StorageCheck& check, const TellProgress& progress) noexcept
      : view_(view), check_(check), progress_(progress) {}

  [[nodiscard]] Status run() {
    check_checkpoint();
    SEMEL_CHECK(check_rocks_log());
    check_segments();
    SEMEL_CHECK(check_log());
    check_tables();
    check_opening();
    return check_newest();
  }

 private:
  void find(StorageFinding finding) {
    if (check_.findings.size() < StorageCheck::findings_max) {
      check_.findings.push_back(std::move(finding));
    } else {
      ++check_.findings_left_off;
    }
  }
  void report_progress(std::uint64_t bytes) {
    check_.bytes += bytes;
    if (progress_) progress_({check_.bytes, view_.bytes_total});
  }
  [[nodiscard]] std::string path(const char* name) const { return view_.directory + name; }

  void check_checkpoint();
  void check_opening();
  [[nodiscard]] Status check_rocks_log();
  void check_segments();
  [[nodiscard]] Status check_log();
  void check_tables();
  void check_table(TableFile& table);
  [[nodiscard]] Status check_newest();

  StorageView& view_;
  StorageCheck& check_;
  const TellProgress& progress_;
  std::vector<std::string> readable_;  // segments with a valid header
  NamespaceCheck namespaces_;
  DeltaCheck deltas_;
};

void Checker::check_checkpoint() {
  const Description& is = view_.description;
  std::error_code code;
  if (std::filesystem::exists(path("/repaired"), code)) {
    find({path("/repaired"), {}, "a repair was interrupted: run it again", 0, 0});
  }
  const MarkIs mark = view_.mark();
  if (const auto damage = damage_of(mark, path("/mark"))) {
    find({damage->path, damage->offset, damage->what, 0, 0});
  }
  if (!view_.database_status) {
    return;  // see check_opening()
  }
  if (is.format == 0 && mark != MarkIs::fresh) {
    find({path("/rocksdb"), {}, "has no description", 0, 0});
  }
  if (view_.found != Checkpoint::Found::content) return;
  if (is.format != 0 && is.storage_id != view_.checkpoint.storage_id) {
    find({path("/mark"), 0, "belongs to another storage", 0, 0});
  }
  if (view_.drained < view_.checkpoint.drained) {
    find({path("/rocksdb"),
          {},
          "knows the log up to " + std::to_string(view_.drained) + ", but it was drained up to " +
              std::to_string(view_.checkpoint.drained),
          {},
          view_.checkpoint.drained - view_.drained});
  }
  if (view_.sequence < view_.checkpoint.rocks_sequence) {
    find({path("/rocksdb"),
          {},
          "ends at number " + std::to_string(view_.sequence) + ", but had reached " +
              std::to_string(view_.checkpoint.rocks_sequence),
          view_.checkpoint.rocks_sequence - view_.sequence,
          {}});
  }
}

/// Only data behind it tells a torn end of RocksDB's log from damage. So compare the log read up to
/// the first error with the log read past it.
Status Checker::check_rocks_log() {
  if (view_.database == nullptr) return Done{};
  for (const RefusedRecord& record : view_.database->refused()) {
    find({record.file, {}, record.text(), 1, record.bytes});
  }
  const auto strict =
      ReadOnlyDatabase::open(path("/rocksdb"), rocksdb::WALRecoveryMode::kPointInTimeRecovery);
  const std::uint64_t upto = strict ? (*strict)->database().GetLatestSequenceNumber() : 0;
  if (strict && upto == view_.sequence) return Done{};
  std::string file = path("/rocksdb");
  SEMEL_TRY(names, list_directory(file));
  for (const std::string& name : names) {
    std::error_code code;
    if (name.ends_with(".log") && std::filesystem::file_size(file + "/" + name, code) > 0) {
      file += "/" + name;
      break;
    }
  }
  find({file,
        {},
        strict ? "damaged: numbers " + std::to_string(upto + 1) + " to " +
                     std::to_string(view_.sequence) + " follow the damage"
               : strict.error().detail,
        {},
        {}});
  return Done{};
}

/// Checks the headers of the segments, and that they cover the journal without gaps.
void Checker::check_segments() {
  const LogFiles log = view_.classify_log_files();
  for (const LogFile& file : log.files) {
    if (file.damage) {
      find({file.path, file.damage->offset, file.damage->what, {}, file.end - file.begin});
    } else if (file.is == LogFileIs::segment) {
      readable_.push_back(file.path);
    }
  }
  for (const LogGap& gap : log.gaps) {
    find({gap.path, 0, gap.damage().what, {}, gap.to - gap.from});
  }
}

Status Checker::check_log() {
  PartCollector parts;
  for (const std::string& name : readable_) {
    ++check_.segments;
    const auto visit = [&](LogOffset offset, Bytes group) {
      const bool counts = offset >= view_.description.floor;
      const bool whole = each_mutation(group, [&](const Mutation& mutation, Bytes) {
        ++check_.mutations;
        if (!counts) return;
        namespaces_.add(mutation);
        deltas_.add(mutation);
      });
      if (!whole) {
        find({name, offset - *segment_begin(name), "a sealed record cannot be read", 1,
              group.size()});
      }
    };
    SEMEL_TRY(walk, walk_segment(name, view_.rules(), parts, visit));
    check_.records += walk.report.records;
    check_.unfinished += walk.report.unfinished;
    check_.bytes_skipped += walk.report.bytes_skipped;
    for (const SegmentWalk::Damage& damage : walk.damage) {
      find({name, damage.at.offset, damage.at.what, damage.records, damage.bytes});
    }
    report_progress(walk.bytes);
  }
  return Done{};
}

void Checker::check_tables() {
  for (TableFile& table : view_.tables) {
    ++check_.files;
    check_table(table);
    report_progress(table.bytes);
  }
}

void Checker::check_table(TableFile& table) {
  std::uint64_t wrong_blobs = 0;
  const TableReading reading = read_table(table, [&](std::string_view key, std::string_view value) {
    BlobKey blob;
    const bool is_key = BlobKey::read(key, blob);
    const bool is_blob = holds_blobs(table) || (view_.database == nullptr && is_key);
    if (!is_blob || value.empty()) return;
    ++check_.blobs;
    const bool counts = is_key && blob.offset >= view_.description.floor;
    const bool whole = each_mutation(value, [&](const Mutation& mutation, Bytes) {
      ++check_.mutations;
      if (!counts) return;
      namespaces_.add(mutation);
      deltas_.add(mutation);
    });
    wrong_blobs += !whole || !is_key;
  });
  if (wrong_blobs != 0) {
    find({table.path, {}, std::to_string(wrong_blobs) + " blobs cannot be read", {}, {}});
  }
  // Blocks have checksums of their own, which say where the damage is. That of the file covers the
  // rest as well, and where a block cannot be found at all.
  if (reading.status) {
    const Status whole = check_file(table.path, table.checksum);
    if (!whole) find({table.path, {}, "its bytes have another checksum than the manifest", 0, 0});
    return;
  }
  std::string what = reading.status.error().detail;
  if (table.entries != 0 && is_readable(table)) {
    what += "; " + std::to_string(reading.entries) + " of " + std::to_string(table.entries) +
            " entries can be read";
  }
  find({table.path,
        reading.offset,
        what,
        {},
        table.bytes > reading.bytes ? table.bytes - reading.bytes : 0});
}

/// Why RocksDB cannot be opened, unless a damaged table that was found explains it: of a table
/// whose end is damaged RocksDB names the manifest.
void Checker::check_opening() {
  if (view_.database_status) return;
  const std::string& what = view_.database_status.error().detail;
  const std::string file = named_in(what, path("/rocksdb"));
  const bool is_explained =
      std::any_of(check_.findings.begin(), check_.findings.end(), [&](const StorageFinding& found) {
        return found.file.ends_with(".sst") && (found.file == file || !file.ends_with(".sst"));
      });
  if (!is_explained) find({file, {}, what, {}, {}});
}

/// As recover() does: namespaces, but for a storage of an earlier release, which may not know them;
/// and deltas. The newest mutation of a key decides.
Status Checker::check_newest() {
  const bool asks_namespaces =
      view_.description.knows_namespaces && namespaces_.needs_second_pass();
  const bool asks_deltas = deltas_.needs_second_pass();
  if (!asks_namespaces && !asks_deltas) return Done{};
  const auto add = [&](LogOffset offset, Bytes group) {
    if (offset < view_.description.floor) return;
    // Unreadable mutations were reported before.
    static_cast<void>(each_mutation(group, [&](const Mutation& mutation, Bytes) {
      if (asks_namespaces) namespaces_.add_again(mutation);
      if (asks_deltas) deltas_.add_again(mutation);
    }));
  };
  PartCollector parts;
  for (const std::string& name : readable_) {
    SEMEL_CHECK(walk_segment(name, view_.rules(), parts, add));
  }
  for (TableFile& table : view_.tables) {
    if (!holds_blobs(table)) continue;
    static_cast<void>(read_table(table, [&](std::string_view key, std::string_view value) {
      BlobKey blob;
      if (BlobKey::read(key, blob)) add(blob.offset, value);
    }));
  }
  // As of the last time on disk: a claim that has ended since then is still found.
  const Timestamp now{Millis{view_.line_ms()}};
  if (asks_namespaces) check_.unknown_namespaces = namespaces_.unknown(now);
  if (const std::size_t missing = deltas_.missing(now); missing != 0) {
    find({view_.directory,
          {},
          std::to_string(missing) + " objects have changes and not the record that was changed",
          missing,
          {}});
  }
  return Done{};
}

}  // namespace

Status check_backup_list(const std::string& directory, StorageCheck& check) {
  SEMEL_TRY(damaged, check_backup(directory));
  for (const BackupDamage& damage : damaged) {
    if (check.findings.size() == StorageCheck::findings_max) break;
    check.findings.push_back({damage.file, {}, damage.what, {}, damage.bytes});
  }
  return Done{};
}

Status check_storage(StorageView& view, StorageCheck& check, const TellProgress& progress) {
  return Checker{view, check, progress}.run();
}

}  // namespace semel::storage

namespace semel {

Result<StorageCheck> verify_storage(const std::string& directory, const TellProgress& progress,
                                    const std::string& cold) {
  SEMEL_TRY(lock, storage::StorageLock::acquire(directory));
  StorageCheck check;
  if (storage::is_backup(directory)) SEMEL_CHECK(storage::check_backup_list(directory, check));
  SEMEL_TRY(view, storage::StorageView::read(directory, lock.is_snapshot()));
  SEMEL_CHECK(storage::check_storage(view, check, progress));
  SEMEL_CHECK(storage::check_cold(view, cold, check.cold, progress));
  return check;
}

}  // namespace semel
