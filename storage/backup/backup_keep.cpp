// Which backups of a folder go when another is complete.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/file_text.hpp"
#include "semel/storage_tools.hpp"
#include "storage/backup/backup_io.hpp"
#include "storage/backup/backup_list.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/disk.hpp"

namespace semel {
namespace {

struct Found {
  std::string directory;
  storage::BackupList list;
};

/// Also of a backup that was not completed.
std::optional<storage::BackupList> list_in(const std::string& directory) {
  const std::optional<std::string> text = base::read_file(directory + storage::backup_file);
  if (!text) return std::nullopt;
  auto list = storage::backup_list_of(*text);
  if (!list || !list->has_files) return std::nullopt;
  return list;
}

/// From the first step on the backup is incomplete, and until the last step its list names its
/// storage: the next call finishes an interrupted removal.
Status remove_backup(rocksdb::Env& env, Found& found) {
  found.list.complete = false;
  SEMEL_CHECK(storage::write_backup_list(env, found.directory, found.list));
  SEMEL_TRY(names, storage::list_directory(found.directory));
  for (const std::string& name : names) {
    const std::string path = found.directory + "/" + name;
    std::error_code code;
    if ("/" + name == storage::backup_file) continue;
    std::filesystem::remove_all(path, code);  // follows no link
    if (code) return Error{ErrorCode::storage_failed, path + ": " + code.message()};
  }
  return storage::remove_tree(env, found.directory);
}

}  // namespace

Status keep_newest_backups(const std::string& newest, const std::string& prefix, std::size_t keep) {
  SEMEL_TRY(own, storage::read_backup_list(newest));
  const std::filesystem::path path{newest};
  const std::string folder = path.parent_path().empty() ? "." : path.parent_path().string();
  SEMEL_TRY(names, storage::list_directory(folder));
  std::vector<Found> older;
  for (const std::string& name : names) {
    const std::string directory = folder + "/" + name;
    if (!name.starts_with(prefix) || name == path.filename()) continue;
    auto list = list_in(directory);
    if (!list || list->storage_id != own.storage_id || list->unix_ms > own.unix_ms) continue;
    older.push_back({directory, *std::move(list)});
  }
  // Those that were not completed count for nothing, so they go first.
  std::sort(older.begin(), older.end(), [](const Found& a, const Found& b) {
    return std::pair{a.list.complete, a.list.unix_ms} > std::pair{b.list.complete, b.list.unix_ms};
  });
  storage::Disk disk;
  std::size_t kept = 1;
  for (Found& found : older) {
    if (found.list.complete && kept < std::max<std::size_t>(1, keep)) {
      ++kept;
      continue;
    }
    SEMEL_CHECK(remove_backup(*disk.env(), found));
  }
  return Done{};
}

}  // namespace semel
