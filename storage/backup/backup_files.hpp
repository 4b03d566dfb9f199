// Moves files into a backup: by links where that is possible and wanted, else by copies at a
// limited rate, with what an older backup has already.
//
// All writing goes through rocksdb::Env, so tests can make it fail and cut its power.
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/stopwatch.hpp"
#include "semel/result.hpp"
#include "semel/storage.hpp"
#include "storage/backup/backup_io.hpp"
#include "storage/backup/backup_list.hpp"
#include "storage/backup/backup_pace.hpp"

namespace semel::storage {

/// RocksDB never changes such a file, so that several names may share it.
[[nodiscard]] bool is_immutable_file(const std::string& name);

class BackupFiles {
 public:
  /// `base`: the list of the older backup in the directory `base_directory`, if there is one.
  BackupFiles(rocksdb::Env& env, const BackupOptions& options, BackupList base,
              std::string base_directory)
      : env_(env),
        options_(options),
        base_(std::move(base)),
        base_directory_(std::move(base_directory)),
        pace_(options.bytes_per_second) {}

  /// Every file of the directory `from`, none of whose files is written any more, gets into `to`,
  /// which is there. `prefix` is in front of the names in the list. Returns when they have reached
  /// the disk. Errors: storage_failed, refused (cancelled), callback_threw.
  [[nodiscard]] Status take_all(const std::string& from, const std::string& to,
                                const std::string& prefix);
  /// Adds a file that is in the backup already. Errors: storage_failed.
  [[nodiscard]] Status add_to_list(const std::string& directory, const std::string& name);

  [[nodiscard]] std::vector<BackupFile>& files() noexcept { return files_; }
  [[nodiscard]] BackupReport& report() noexcept { return report_; }

 private:
  [[nodiscard]] Status take(const std::string& from, const std::string& to, BackupFile file);
  /// True: it is linked.
  [[nodiscard]] Result<bool> link_from_base(const std::string& from, const std::string& to,
                                            BackupFile& file);
  [[nodiscard]] Result<std::uint64_t> copy(const std::string& from, const std::string& to);
  /// Reads all of `path` at the rate. Gives its digest, and its last tail_bytes.
  [[nodiscard]] Result<std::uint64_t> read_slowly(const std::string& path, std::string& tail);
  [[nodiscard]] Status wait_after(std::uint64_t bytes);
  [[nodiscard]] Status announce();

  rocksdb::Env& env_;
  const BackupOptions& options_;
  const BackupList base_;
  const std::string base_directory_;
  BackupPace pace_;
  const base::Stopwatch watch_{};
  std::vector<BackupFile> files_;
  BackupReport report_;
  std::uint64_t bytes_total_ = 0;
  std::uint64_t moving_ = 0;  // bytes of the file that is being copied
};

}  // namespace semel::storage
