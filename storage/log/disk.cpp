#include "storage/log/disk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <pthread.h>
#include <rocksdb/env.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "base/assert.hpp"

namespace semel::storage {
namespace {

/// Closed at its end, also where memory for the text of an error is missing.
class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return number_; }
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// A file that is removed at its end unless it is kept.
class NewFile {
 public:
  explicit NewFile(const std::string& path) noexcept : path_(path) {}
  ~NewFile() {
    if (!kept_) unlink(path_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void keep() noexcept { kept_ = true; }

 private:
  const std::string& path_;
  bool kept_ = false;
};

/// A new file's name has reached the disk when its directory has.
Status sync_directory_of(const std::string& path) {
  std::filesystem::path parent = std::filesystem::path{path}.parent_path();
  // "a/b/" names a/b; the parent of "a" is the working directory.
  if (!std::filesystem::path{path}.has_filename()) parent = parent.parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  const Descriptor descriptor{open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (descriptor.get() < 0) return system_error(directory);
  return fsync(descriptor.get()) == 0 ? Status{Done{}} : system_error("fsync " + directory);
}

/// On btrfs every write to a block that was synced needs a new one, so nothing could be appended to
/// a file on a full disk, though it has all its blocks. Makes an empty file, or all files created
/// later in a directory, be written in place. Journal and database have checksums of their own. A
/// snapshot of the volume shares the blocks all the same. If it cannot be set, a write fails later.
void write_in_place(int descriptor) noexcept {
  struct statfs system {};
  if (fstatfs(descriptor, &system) != 0 || system.f_type != BTRFS_SUPER_MAGIC) return;
  long flags = 0;
  if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_NOCOW_FL;
  static_cast<void>(ioctl(descriptor, FS_IOC_SETFLAGS, &flags));  // as above
}

Status directory_made(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    write_in_place(descriptor);
    close(descriptor);
  }
  return sync_directory_of(path);
}

}  // namespace

Error damage_at(const std::string& path, std::uint64_t offset, const std::string& what) {
  return {ErrorCode::storage_damaged, path + ", offset " + std::to_string(offset) + ": " + what};
}

Error system_error(const std::string& what) {
  return {ErrorCode::storage_failed, what + ": " + std::strerror(errno)};
}

void name_thread(const char* name) noexcept {
  static_cast<void>(pthread_setname_np(pthread_self(), name));  // for people only
}

void yield_to_others() noexcept {
  constexpr int niceness = 10;
  // Of Linux: that of one thread. Without it the work is done all the same.
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness));
}

Result<int> Disk::create(const std::string& path, std::size_t bytes) {
  Descriptor descriptor{open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (descriptor.get() < 0) return system_error(path);
  NewFile made{path};
  write_in_place(descriptor.get());  // it must be empty yet
  // The system call, not posix_fallocate, which writes zeros where blocks cannot be reserved: on a
  // copy-on-write file system a later page fault could still find the disk full.
  if (fallocate(descriptor.get(), 0, 0, static_cast<off_t>(bytes)) != 0 ||
      fsync(descriptor.get()) != 0) {
    return system_error("reserving " + std::to_string(bytes) + " bytes for " + path);
  }
  SEMEL_CHECK(sync_directory_of(path));
  made.keep();
  return descriptor.release();
}

bool write_all(int descriptor, std::string_view bytes, std::uint64_t at) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
    at += static_cast<std::uint64_t>(count);
  }
  return true;
}

bool Disk::write_at(int descriptor, std::string_view bytes, std::uint64_t at) noexcept {
  return write_all(descriptor, bytes, at);
}

Status Disk::write_zeros(int descriptor, const std::string& path, std::size_t bytes) {
  // By pages: larger writes make larger units in the page cache, and a later sync writes a whole
  // unit even if a few bytes changed.
  constexpr std::size_t page = 4096;
  const std::string zeros(page, '\0');
  for (std::size_t at = 0; at < bytes; at += page) {
    if (!write_at(descriptor, zeros, at)) return system_error("writing zeros to " + path);
  }
  return fsync(descriptor) == 0 ? Status{Done{}} : system_error("fsync " + path);
}

Status Disk::sync(int descriptor, const std::string& path) {
  if (fdatasync(descriptor) == 0) return Done{};
  return system_error("fdatasync " + path);
}

Status Disk::sync_file(const std::string& path) {
  const Descriptor descriptor{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (descriptor.get() < 0) return system_error(path);
  return sync(descriptor.get(), path);
}

namespace {

/// Where blocks are copied on write, a full disk may have none for bytes that are there already.
bool is_full(int error) noexcept {
  return error == ENOSPC || error == EDQUOT;
}

}  // namespace

/// A part that cannot be read is left to the scan, which names its place; on a full disk the rest
/// is left as it is, so that the storage can be opened.
Status Disk::rewrite_file(const std::string& path, std::uint64_t from) {
  const Descriptor descriptor{open(path.c_str(), O_RDWR | O_CLOEXEC)};
  if (descriptor.get() < 0) return system_error(path);
  std::array<char, std::size_t{64} << 10> part;
  auto at = static_cast<off_t>(from - from % 4096);
  for (;;) {
    const ssize_t got = pread(descriptor.get(), part.data(), part.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    ssize_t put = 0;
    while (put < got) {
      const ssize_t count = pwrite(descriptor.get(), part.data() + put,
                                   static_cast<std::size_t>(got - put), at + put);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && is_full(errno)) return sync(descriptor.get(), path);
      if (count < 0) return system_error("writing " + path);
      put += count;
    }
    at += got;
  }
  return sync(descriptor.get(), path);
}

Status Disk::sync_part(char* memory, const std::string& path, std::size_t from, std::size_t to) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  SEMEL_ASSERT(from <= to);
  from -= from % page;
  if (msync(memory + from, to - from, MS_SYNC) == 0) return Done{};
  return system_error("msync " + path);
}

Status Disk::wait_written(int descriptor, const std::string& path, std::uint64_t from,
                          std::uint64_t to) {
  const bool is_done =
      sync_file_range(descriptor, static_cast<off64_t>(from), static_cast<off64_t>(to - from),
                      SYNC_FILE_RANGE_WAIT_BEFORE) == 0;
  if (is_done || (errno != EIO && !is_full(errno))) return Done{};
  return system_error("writing " + path);
}

Status Disk::remove(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return Done{};
  return system_error(path);
}

Status Disk::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return system_error(from + " to " + to);
  return sync_directory_of(to);
}

std::size_t Disk::bytes_free(const std::string& path) {
  struct statvfs info {};
  if (statvfs(path.c_str(), &info) != 0) return 0;
  return static_cast<std::size_t>(info.f_bavail) * info.f_frsize;
}

bool Disk::maps_safely(const std::string& directory) {
  struct statfs system {};
  if (statfs(directory.c_str(), &system) != 0) return false;
  // Not XFS and not OverlayFS: blocks may be shared with another file (reflinks), also from
  // outside.
  return system.f_type == EXT4_SUPER_MAGIC || system.f_type == TMPFS_MAGIC;
}

std::string Disk::boot_id() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  std::getline(file, id);
  return id;
}

rocksdb::Env* Disk::env() {
  return rocksdb::Env::Default();
}

Status make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return directory_made(path);
  if (errno != EEXIST) return system_error(path);
  // Also for an existing directory: the process that made it may have ended before its name reached
  // the disk.
  return sync_directory_of(path);
}

Status make_new_directory(const std::string& path) {
  return mkdir(path.c_str(), 0700) == 0 ? directory_made(path) : system_error(path);
}

/// By the system's call: std::filesystem's iterator ends the process where memory ends, as it
/// allocates in a function that may not throw.
Result<std::vector<std::string>> list_directory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory{opendir(path.c_str()), closedir};
  if (directory == nullptr) return system_error(path);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name{entry->d_name};
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return system_error(path);
  std::sort(names.begin(), names.end());
  return names;
}

Status check_descriptors(std::uint64_t needed, const std::string& where) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return Done{};
  std::error_code code;  // without /proc: as if none were open
  std::uint64_t open = 0;
  for (std::filesystem::directory_iterator at{"/proc/self/fd", code}, end; !code && at != end;
       at.increment(code)) {
    ++open;
  }
  if (limit.rlim_cur >= open + needed) return Done{};
  return Error{ErrorCode::storage_failed,
               where + ": the limit of open files is " + std::to_string(limit.rlim_cur) +
                   ", of which " + std::to_string(open) + " are open; at least " +
                   std::to_string(open + needed) + " are needed. Raise it (ulimit -n)"};
}

}  // namespace semel::storage
