// The directory of a storage: its files, the lock that gives it to one process, and the check that
// it is the copy written last.
//
// The file `lock`, locked while a process uses the storage, contains the identity:
//
//    0  u64  "SMELLOCK"
//    8  u64  id of the storage
//   16  u64  incarnation: random, another one for each copy
//   24  u64  inode of this file
//   32  u64  its birth time, nanoseconds since 1970; 0: the file system has none
//   40  u64  its device
//   48  u64  XXH3 of the id of the boot in which it was written
//   56  u64  XXH3 of the 56 bytes before
//
// Source: docs/decisions/0028-identity-of-a-storage.md
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "semel/result.hpp"

namespace rocksdb {
class Env;
}

namespace semel::storage {

/// A directory that is missing or of a storage is accepted, and one that has nothing but
/// `own_files`, names of the caller's. Errors: storage_failed; names
/// the entry that is no part of a storage.
[[nodiscard]] Status check_not_foreign(const std::string& directory,
                                       std::span<const std::string> own_files);

/// A backup has this file (Storage::backup()). Its text tells people what to do.
inline constexpr const char* backup_file = "/backup";
[[nodiscard]] bool is_backup(const std::string& directory);
/// For a directory within a backup. Returns when the file has reached the disk.
[[nodiscard]] Status mark_as_backup(rocksdb::Env& env, const std::string& directory);
/// While a backup is made: links to the files that it is made of. What a killed process leaves is
/// removed by the next open.
inline constexpr const char* backup_links = "/backing-up";
/// Whether an entry of a storage's directory belongs to the storage.
[[nodiscard]] bool is_part_of_storage(std::string_view name);

struct Identity {
  std::uint64_t storage_id = 0;
  std::uint64_t incarnation = 0;
};

/// The lock on a directory. It excludes other processes, and this process by every path that leads
/// to the directory. It ends with the process, also if a forked child lives on.
class DirectoryLock {
 public:
  enum class Missing { create, accept };  ///< what to do if there is no lock file

  /// With Missing::accept nothing is locked if there is no lock file, or the file system is
  /// read-only. Errors: storage_in_use, storage_failed.
  [[nodiscard]] static Result<DirectoryLock> acquire(const std::string& directory, Missing missing);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        file_(other.file_) {}
  DirectoryLock& operator=(DirectoryLock&&) = delete;

  /// The identity, if this directory is the one that it was written for. None: the directory is
  /// new, a copy, or its lock file is damaged.
  [[nodiscard]] std::optional<Identity> identity(const std::string& boot_id) const;
  /// It was written in this boot, on another disk: this is a snapshot of a volume.
  [[nodiscard]] bool is_snapshot(const std::string& boot_id) const;
  /// Returns when it has reached the disk. Errors: storage_failed.
  [[nodiscard]] Status write(const Identity& identity, const std::string& boot_id);

 private:
  explicit DirectoryLock(std::string path) noexcept : path_(std::move(path)) {}
  std::string path_;
  int descriptor_ = -1;                           // -1: nothing is locked
  std::pair<std::uint64_t, std::uint64_t> file_;  // its device and inode
};

}  // namespace semel::storage
