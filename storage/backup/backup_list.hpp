// The list of a backup: the file `backup` in its directory, which says whether the backup is
// complete, of which storage it is, and what files it has.
//
//   semel-backup 1
//   This directory is a backup of a Semel storage. [...]
//   state complete                                    or incomplete
//   storage 00f1e2d3c4b5a697                          its id
//   incarnation 0123456789abcdef
//   unix_ms 1764040000000                             when it was begun
//   file 4711 89abcdef01234567 rocksdb/000012.sst     bytes, XXH3 of them or "-", path
//   digest 0123456789abcdef                           XXH3 of all lines before
//
// Source: docs/disk-format.md
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "semel/result.hpp"

namespace semel::storage {

struct BackupFile {
  std::string name;  ///< below the backup's directory
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> digest{};  ///< none: the file was linked, not read
};

struct BackupList {
  bool complete = false;
  bool has_files = true;  ///< false: of release 0.1, or repaired; its files are not known
  std::uint64_t storage_id = 0;
  std::uint64_t incarnation = 0;
  std::int64_t unix_ms = 0;
  std::vector<BackupFile> files{};
};

[[nodiscard]] std::string text_of(const BackupList& list);
/// None: it is no such text, or not all of it.
[[nodiscard]] std::optional<BackupList> backup_list_of(std::string_view text);

/// Of a complete backup. Errors: storage_failed (there is no list, or the backup was not
/// completed), storage_damaged.
[[nodiscard]] Result<BackupList> read_backup_list(const std::string& directory);
/// Replaces the list in one step, and returns when it has reached the disk. Errors: storage_failed.
[[nodiscard]] Status write_backup_list(rocksdb::Env& env, const std::string& directory,
                                       const BackupList& list);

/// The directory in `folder` that has the newest complete backup of this storage; empty: there is
/// none. Errors: storage_failed (it is no directory).
[[nodiscard]] Result<std::string> newest_backup(const std::string& folder,
                                                std::uint64_t storage_id);

/// A file of a backup that is not what its list says.
struct BackupDamage {
  std::string file;
  std::string what;
  std::uint64_t bytes = 0;  ///< by the list
};
/// Reads every file of the list. Errors: as read_backup_list().
[[nodiscard]] Result<std::vector<BackupDamage>> check_backup(const std::string& directory);

}  // namespace semel::storage
