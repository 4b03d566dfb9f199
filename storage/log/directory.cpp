#include "storage/log/directory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <rocksdb/env.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "storage/log/disk.hpp"

namespace semel::storage {
namespace {

using File = std::pair<std::uint64_t, std::uint64_t>;  // device and inode

/// The lock files that this process has locked. A record lock does not exclude its own process, and
/// closing any descriptor of the file ends it, so such a file must not even be opened again.
struct LockedFiles {
  base::Mutex mutex;
  std::map<File, pid_t> owners SEMEL_GUARDED_BY(mutex);

  [[nodiscard]] bool contains(const File& file) const SEMEL_REQUIRES(mutex) {
    const auto found = owners.find(file);
    // An entry of the parent process: its lock was not inherited.
    return found != owners.end() && found->second == getpid();
  }
};

/// Record locks belong to the process, so this list does as well. Never destroyed: a storage may be
/// closed by a static destructor.
LockedFiles& locked_files() {
  static LockedFiles& files = *new LockedFiles;
  return files;
}

struct LockFile {
  static constexpr std::uint64_t magic_value = 0x4b434f4c'4c454d53;  // "SMELLOCK"
  std::uint64_t magic = magic_value;
  std::uint64_t storage_id = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t inode = 0;
  std::uint64_t born_ns = 0;
  std::uint64_t device = 0;
  std::uint64_t boot = 0;
  std::uint64_t digest = 0;

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(LockFile, digest));
  }
};
static_assert(sizeof(LockFile) == 64, "docs/disk-format.md");

/// Where a file is, as far as a copy cannot have the same.
struct Birth {
  std::uint64_t inode = 0;
  std::uint64_t born_ns = 0;
};

/// None: the file system may change these numbers from mount to mount.
std::optional<Birth> birth_of(int descriptor) {
  struct statfs system {};
  if (fstatfs(descriptor, &system) != 0 || system.f_type == FUSE_SUPER_MAGIC) return std::nullopt;
  struct statx info {};
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &info) != 0) {
    return std::nullopt;
  }
  Birth birth{info.stx_ino, 0};
  if ((info.stx_mask & STATX_BTIME) != 0) {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    birth.born_ns =
        static_cast<std::uint64_t>(info.stx_btime.tv_sec) * second_ns + info.stx_btime.tv_nsec;
  }
  return birth;
}

/// None: it is not there, not complete, or damaged.
std::optional<LockFile> read_lock_file(int descriptor) {
  LockFile content;
  if (descriptor < 0 || pread(descriptor, &content, sizeof content, 0) != sizeof content ||
      content.magic != LockFile::magic_value || content.digest != content.right_digest()) {
    return std::nullopt;
  }
  return content;
}

std::uint64_t digest_of(const std::string& text) {
  return XXH3_64bits(text.data(), text.size());
}

Error in_use(const std::string& path) {
  return {ErrorCode::storage_in_use, path + ": is locked"};
}

}  // namespace

bool is_part_of_storage(std::string_view name) {
  constexpr std::array<std::string_view, 11> names{
      "reserve", "mark",     "log",    "rocksdb",        "drain",     "lock",
      "cold",    "repaired", "backup", backup_links + 1, "lost+found"};  // the last: of a file
                                                                         // system
  return std::find(names.begin(), names.end(), name) != names.end() ||
         name.starts_with("lost+found-");
}

Status check_not_foreign(const std::string& directory, std::span<const std::string> own_files) {
  std::error_code code;
  if (!std::filesystem::exists(directory, code) ||
      std::filesystem::exists(directory + "/mark", code)) {
    return Done{};
  }
  SEMEL_TRY(names, list_directory(directory));
  for (const std::string& name : names) {
    if (is_part_of_storage(name)) continue;
    if (std::find(own_files.begin(), own_files.end(), name) != own_files.end()) continue;
    return Error{ErrorCode::storage_failed, directory +
                                                ": is not a storage, as it has no mark but has " +
                                                name + "; use an empty or a new directory"};
  }
  return Done{};
}

bool is_backup(const std::string& directory) {
  std::error_code code;
  return std::filesystem::exists(directory + backup_file, code);
}

Status mark_as_backup(rocksdb::Env& env, const std::string& directory) {
  const std::string path = directory + backup_file;
  std::unique_ptr<rocksdb::WritableFile> file;
  std::unique_ptr<rocksdb::Directory> opened;
  rocksdb::Status status = env.NewWritableFile(path, &file, {});
  if (status.ok()) {
    status = file->Append(
        "This directory is in a backup of a Semel storage. Do not open it. Make a storage of the "
        "backup:\nsemel restore BACKUP DIR\n");
  }
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  // The name of the file is on the disk when its own directory is synced.
  if (status.ok()) status = env.NewDirectory(directory, &opened);
  if (status.ok()) status = opened->Fsync();
  return status.ok() ? Status{Done{}}
                     : Error{ErrorCode::storage_failed, path + ": " + status.ToString()};
}

Result<DirectoryLock> DirectoryLock::acquire(const std::string& directory, Missing missing) {
  LockedFiles& files = locked_files();
  // Held to the end: no other thread of this process creates or locks the file.
  const base::MutexLock serial{files.mutex};
  DirectoryLock lock{directory + "/lock"};
  struct stat info {};
  if (stat(lock.path_.c_str(), &info) == 0) {
    if (files.contains({info.st_dev, info.st_ino})) return in_use(lock.path_);
  } else if (errno != ENOENT) {
    return system_error(lock.path_);
  } else if (missing == Missing::accept) {
    return lock;
  }
  // Made before anything has to be undone if there is no memory.
  auto entry = std::map<File, pid_t>{{{}, getpid()}}.extract(File{});
  bool writes = true;
  int descriptor = open(lock.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0 && (errno == EROFS || errno == EACCES) && missing == Missing::accept) {
    // A reader needs no right to write: its shared lock excludes writers, as theirs exclude it.
    writes = false;
    descriptor = open(lock.path_.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (descriptor < 0) {
    return system_error(directory + (writes ? ": cannot be written: lock" : "/lock"));
  }
  const bool known = fstat(descriptor, &info) == 0;
  lock.file_ = {info.st_dev, info.st_ino};
  if (!known || files.contains(lock.file_)) {
    // Another process has replaced the file since stat(). The descriptor stays open: closing it
    // would end the lock that this process has on the file.
    return in_use(lock.path_);
  }
  struct flock whole {};
  whole.l_type = writes ? F_WRLCK : F_RDLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(descriptor, F_SETLK, &whole) != 0) {
    const Error error = errno == EACCES || errno == EAGAIN ? in_use(lock.path_)
                                                           : system_error("locking " + lock.path_);
    close(descriptor);
    return error;
  }
  lock.descriptor_ = descriptor;   // from here on its destructor ends the lock
  files.owners.erase(lock.file_);  // an entry of the parent process
  entry.key() = lock.file_;
  files.owners.insert(std::move(entry));
  return lock;
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ < 0) return;
  LockedFiles& files = locked_files();
  const base::MutexLock serial{files.mutex};
  close(descriptor_);  // ends the lock
  files.owners.erase(file_);
}

std::optional<Identity> DirectoryLock::identity(const std::string& boot_id) const {
  const std::optional<LockFile> content = read_lock_file(descriptor_);
  if (!content || is_snapshot(boot_id)) return std::nullopt;
  const std::optional<Birth> birth = birth_of(descriptor_);
  if (birth && (birth->inode != content->inode || birth->born_ns != content->born_ns)) {
    return std::nullopt;
  }
  return Identity{content->storage_id, content->incarnation};
}

bool DirectoryLock::is_snapshot(const std::string& boot_id) const {
  const std::optional<LockFile> content = read_lock_file(descriptor_);
  if (!content || boot_id.empty() || content->boot != digest_of(boot_id)) return false;
  // Other file systems than those on disks (overlay, network) get a number with each mount.
  const auto is_disk = [](std::uint64_t device) { return major(device) != 0; };
  return content->device != file_.first && is_disk(content->device) && is_disk(file_.first);
}

Status DirectoryLock::write(const Identity& identity, const std::string& boot_id) {
  SEMEL_ASSERT(descriptor_ >= 0);
  const Birth birth = birth_of(descriptor_).value_or(Birth{});
  LockFile content;
  content.storage_id = identity.storage_id;
  content.incarnation = identity.incarnation;
  content.inode = birth.inode;
  content.born_ns = birth.born_ns;
  content.device = file_.first;
  content.boot = digest_of(boot_id);
  content.digest = content.right_digest();
  if (pwrite(descriptor_, &content, sizeof content, 0) != sizeof content ||
      fdatasync(descriptor_) != 0) {
    return system_error("writing " + path_);
  }
  return Done{};
}

}  // namespace semel::storage
