// inspect_storage(): lists everything that can be read.
#include <functional>

#include "storage/archive/rocks_status.hpp"
#include "storage/log/log_walk.hpp"
#include "storage/repair/cold_check.hpp"
#include "storage/repair/storage_view.hpp"

namespace semel {

using storage::BlobKey;
using storage::LogOffset;

namespace {

using VisitStored = std::function<void(const StoredMutation&)>;

void show(const std::string& file, LogOffset offset, Bytes group, const VisitStored& visit) {
  // Mutations after an unreadable one are not shown; verify reports them.
  static_cast<void>(storage::each_mutation(group, [&](const Mutation& mutation, Bytes bytes) {
    visit({file, offset, mutation, bytes.size()});
  }));
}

Status add_segment(const storage::StorageView& view, const storage::LogFile& file,
                   storage::PartCollector& parts, StorageInfo& info, const VisitStored& visit) {
  StorageInfo::SegmentInfo segment{file.path, 0, file.begin, 0, 0, 0, file.damage.has_value()};
  if (file.is == storage::LogFileIs::segment) {
    segment.number = file.begin / (file.end - file.begin);
    segment.end = file.end;
    SEMEL_TRY(walk, storage::walk_segment(file.path, view.rules(), parts,
                                          [&](LogOffset offset, Bytes group) {
                                            if (visit) show(file.path, offset, group, visit);
                                          }));
    segment.records = walk.report.records;
    segment.unfinished = walk.report.unfinished;
    segment.damaged = !walk.damage.empty();
  }
  info.segments.push_back(std::move(segment));
  return Done{};
}

Result<StorageInfo::ColdInfo> inspect_cold(const storage::StorageView& view,
                                           const std::string& named) {
  StorageInfo::ColdInfo info;
  info.needed_id = view.description.cold.id;
  info.needed_generation = view.description.cold.generation;
  const std::optional<std::string> found = storage::find_cold(view.directory, named);
  if (!found) return info;
  SEMEL_TRY(reading, storage::read_cold(*found, false));
  info.directory = *found;
  info.id = reading.mark.id;
  info.generation = reading.mark.generation;
  info.parts = std::move(reading.parts);
  return info;
}

}  // namespace

Result<StorageInfo> inspect_storage(const std::string& directory, const VisitStored& visit,
                                    const std::string& cold) {
  SEMEL_TRY(lock, storage::StorageLock::acquire(directory));
  SEMEL_TRY(view, storage::StorageView::read(directory, lock.is_snapshot()));
  if (view.description.format == 0 && view.mark() != storage::MarkIs::fresh) {
    return Error{ErrorCode::storage_damaged, view.database_status
                                                 ? directory + "/rocksdb: has no description"
                                                 : view.database_status.error().detail};
  }
  StorageInfo info;
  info.format = view.description.format;
  info.storage_id = view.description.storage_id;
  info.versions = view.description.versions;
  info.floor = view.description.floor;
  info.drained = view.drained;
  info.tail = view.checkpoint.tail;
  info.synced = view.checkpoint.synced;
  info.line_ms = view.line_ms();
  info.boot_id = view.checkpoint.boot();
  storage::PartCollector parts;
  for (const storage::LogFile& file : view.classify_log_files().files) {
    SEMEL_CHECK(add_segment(view, file, parts, info, visit));
  }
  for (storage::TableFile& table : view.tables) {
    info.files.push_back(
        {table.path, table.family, table.bytes, table.entries, table.first.span, table.last.span});
    if (!visit || table.family != storage::journal_family) continue;
    // Entries after damage may be missing; verify reports it.
    static_cast<void>(storage::read_table(table, [&](std::string_view key, std::string_view value) {
      BlobKey blob;
      if (BlobKey::read(key, blob)) show(table.path, blob.offset, value, visit);
    }));
  }
  SEMEL_TRY(beside, inspect_cold(view, cold));
  info.cold = std::move(beside);
  return info;
}

}  // namespace semel
