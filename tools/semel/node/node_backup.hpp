// Backups of a node's storage, one at a time, on their own thread.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "net/commands/node_hooks.hpp"
#include "semel/clock.hpp"

namespace semel::tool {

class NodeBackup {
 public:
  /// Reports the progress of a backup. False: it must end.
  using Step = std::function<bool(std::uint64_t bytes, std::uint64_t bytes_total)>;
  /// Makes a backup in a directory, with the older ones in `folder`; blocks for the disk. It may
  /// throw.
  using Make = std::function<Status(const std::string& folder, const std::string& directory,
                                    const Step& step)>;
  /// Called at the end of a backup, on its thread.
  using Ended = std::function<void(const net::BackupState&)>;

  NodeBackup(const Clock& clock, Make make, Ended ended);
  /// Ends the running one.
  ~NodeBackup();
  NodeBackup(const NodeBackup&) = delete;
  NodeBackup& operator=(const NodeBackup&) = delete;

  /// Begins one in `folder`/`name`. `name`: 1 to 128 letters, digits, '-', '_' and '.', not first.
  /// Thread-safe. Errors: bad_option (the name, or `folder` is empty), refused (one is running, or
  /// there is no thread).
  /// `changes`: Stats::changes now, which the state shows when it is done.
  [[nodiscard]] Status start(const std::string& folder, const std::string& name,
                             std::uint64_t changes = 0);
  /// Returns at once. Errors: refused (none is running).
  [[nodiscard]] Status cancel();
  [[nodiscard]] net::BackupState state() const;

 private:
  void run(const std::string& folder, const std::string& directory) noexcept;
  [[nodiscard]] bool step(std::uint64_t bytes, std::uint64_t bytes_total);

  const Clock& clock_;
  const Make make_;
  const Ended ended_;
  mutable base::Mutex mutex_;
  net::BackupState state_ SEMEL_GUARDED_BY(mutex_);
  std::thread thread_ SEMEL_GUARDED_BY(mutex_);
  bool is_cancelled_ SEMEL_GUARDED_BY(mutex_) = false;
};

}  // namespace semel::tool
