// Backups beside a running engine, in three steps:
//
//   1. drain: everything appended before is in files. With joined commits once more, for changes
//      that arrived during the first pass; new ones wait.
//   2. under the mutex of the files, for some milliseconds: RocksDB makes links to its files in the
//      directory `backing-up` of the storage. From here on the content of the backup is fixed.
//   3. copy, at the given rate, without a lock; then the list of files, as the last step.
//
// Until the list says `complete`, the directory does not count as a backup. The links go at the
// end, or when the storage is opened the next time.
//
// Concurrency
//   [storage.backup]    release store at the end of a backup, acquire exchange before the next.
#pragma once

#include <atomic>
#include <string>

#include "semel/cold.hpp"
#include "semel/result.hpp"
#include "semel/storage.hpp"
#include "storage/drain/drain_requests.hpp"
#include "storage/drain/live_engine.hpp"
#include "storage/drain/log_to_files.hpp"
#include "storage/files/stored_files.hpp"
#include "storage/joint/joined_gate.hpp"
#include "storage/start/context.hpp"

namespace semel::storage {

/// Thread-safe.
class Backups {
 public:
  /// `gate`: of joined commits.
  Backups(const Context& context, StoredFiles& files, LogToFiles& log_to_files,
          DrainRequests& requests, const LiveEngine& engine, JoinedGate& gate) noexcept
      : context_(context),
        files_(files),
        log_to_files_(log_to_files),
        requests_(requests),
        engine_(engine),
        gate_(gate) {}

  /// Storage::backup(), both.
  [[nodiscard]] Result<BackupReport> make(const std::string& directory,
                                          const BackupOptions& options);
  [[nodiscard]] Result<BackupReport> make(const std::string& directory, ColdStore& cold,
                                          const BackupOptions& options);

 private:
  class Making;
  [[nodiscard]] Result<BackupReport> make_with(const std::string& directory, ColdStore& cold,
                                               const BackupOptions& options);
  [[nodiscard]] Status check_target(const std::string& directory) const;
  [[nodiscard]] Status remove_links() const;

  const Context& context_;
  StoredFiles& files_;
  LogToFiles& log_to_files_;
  DrainRequests& requests_;
  const LiveEngine& engine_;
  JoinedGate& gate_;
  std::atomic<bool> backing_up_{false};  // [storage.backup]
};

}  // namespace semel::storage
