// restore_backup(): a copy with higher versions than the storage it was made from.
#include <unistd.h>

#include <filesystem>

#include "storage/cold/cold_database.hpp"
#include "storage/repair/cold_check.hpp"
#include "storage/repair/storage_check.hpp"
#include "storage/repair/storage_view.hpp"

namespace semel {
namespace {

namespace fs = std::filesystem;

/// Files of a process, not of the data.
bool stays_behind(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == "LOCK" || name == "lock" || name == "backup" || name == "reserve" ||
         name == "LOG" || name.starts_with("LOG.old.") || name.starts_with("lost+found-") ||
         name == "drain" || "/" + name == storage::backup_links;
}

Status copy_one(const fs::path& from, const fs::path& to) {
  std::error_code code;
  fs::copy_file(from, to, code);
  if (code) return Error{ErrorCode::storage_failed, to.string() + ": " + code.message()};
  return storage::sync_path(to.string());
}

/// As many levels as a storage has.
Status copy_tree(const fs::path& from, const fs::path& to, int levels) {
  SEMEL_CHECK(storage::make_new_directory(to.string()));
  SEMEL_TRY(names, storage::list_directory(from.string()));
  for (const std::string& name : names) {
    std::error_code code;
    if (stays_behind(name)) continue;
    const bool is_directory = fs::is_directory(from / name, code);
    if (is_directory && levels == 0) continue;
    SEMEL_CHECK(is_directory ? copy_tree(from / name, to / name, levels - 1)
                             : copy_one(from / name, to / name));
  }
  return storage::sync_path(to.string());
}

Status first_finding(const StorageCheck& check) {
  if (check.findings.empty()) return Done{};
  const StorageFinding& first = check.findings.front();
  return Error{ErrorCode::storage_damaged,
               first.file + (first.offset ? ", offset " + std::to_string(*first.offset) : "") +
                   ": " + first.what + "; findings: " + std::to_string(check.findings.size())};
}

Status check_copy(const std::string& directory, const TellProgress& progress) {
  SEMEL_TRY(view, storage::StorageView::read(directory));
  StorageCheck check;
  SEMEL_CHECK(storage::check_storage(view, check, progress));
  SEMEL_CHECK(storage::check_cold(view, {}, check.cold, progress));
  check.findings.insert(check.findings.end(), check.cold.findings.begin(),
                        check.cold.findings.end());
  return first_finding(check);
}

/// The copy of the cold store fits no other storage, and this one no other cold store. Returns the
/// token; 0: there is none.
Result<std::uint64_t> bind_cold(storage::Disk& disk, const std::string& directory,
                                std::uint64_t storage_id) {
  const std::optional<std::string> found = storage::find_cold(directory, {});
  if (!found) return std::uint64_t{0};
  const std::uint64_t token = storage::random_id();
  SEMEL_TRY(cold, storage::ColdDatabase::open(disk, {*found, std::size_t{1} << 20, false}));
  SEMEL_CHECK(storage::write_bond(cold->database(), {storage_id, token, 0, false}));
  return token;
}

Status raise_versions(const std::string& directory) {
  storage::Disk disk;
  SEMEL_TRY(archive, storage::Archive::open(disk, {directory, false, {}}));
  storage::Description is = archive->description();
  is.versions += storage::random_version_jump();
  is.incarnation = storage::random_id();
  SEMEL_TRY(token, bind_cold(disk, directory, is.storage_id));
  is.cold_token = token;
  SEMEL_CHECK(archive->describe(is));
  SEMEL_TRY(lock,
            storage::DirectoryLock::acquire(directory, storage::DirectoryLock::Missing::create));
  return lock.write({is.storage_id, is.incarnation}, disk.boot_id());
}

Status make_copy(const std::string& from, const std::string& to, const TellProgress& progress) {
  SEMEL_CHECK(copy_tree(from, to, 2));
  SEMEL_CHECK(check_copy(to, progress));
  return raise_versions(to);
}

}  // namespace

Status restore_backup(const std::string& from, const std::string& to,
                      const TellProgress& progress) {
  std::error_code code;
  if (fs::exists(fs::symlink_status(to, code))) {
    return Error{ErrorCode::storage_failed, to + ": is there already"};
  }
  SEMEL_TRY(lock, storage::StorageLock::acquire(from));
  if (storage::is_backup(from)) {
    StorageCheck check;
    SEMEL_CHECK(storage::check_backup_list(from, check));
    SEMEL_CHECK(first_finding(check));
  }
  SEMEL_TRY(view, storage::StorageView::read(from, lock.is_snapshot()));
  view.database.reset();
  const std::string making = to + ".restoring-" + std::to_string(getpid());
  Status status = make_copy(from, making, progress);
  if (status && rename(making.c_str(), to.c_str()) != 0) status = storage::system_error(to);
  if (!status) {
    fs::remove_all(making, code);  // ours; if it stays, its name tells what it is
    return status;
  }
  const fs::path parent = fs::absolute(to, code).parent_path();
  return storage::sync_path(parent.string());
}

}  // namespace semel
