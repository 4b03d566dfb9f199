// Backups of a node's storage, one at a time, on a thread of their own.
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
  /// Makes a backup in a directory; blocks for the disk. It may throw.
  using Make = std::function<Status(const std::string& directory)>;
  /// Called when one has ended, on its thread.
  using Ended = std::function<void(const net::BackupState&)>;

  NodeBackup(const Clock& clock, Make make, Ended ended);
  /// Waits for the one that runs.
  ~NodeBackup();
  NodeBackup(const NodeBackup&) = delete;
  NodeBackup& operator=(const NodeBackup&) = delete;

  /// Begins one in `folder`/`name`. `name`: 1 to 128 letters, digits, '-', '_' and '.', not first.
  /// Thread-safe. Errors: bad_option (the name, or `folder` is empty), refused (one is running, or
  /// there is no thread).
  [[nodiscard]] Status start(const std::string& folder, const std::string& name);
  [[nodiscard]] net::BackupState state() const;

 private:
  void run(const std::string& directory) noexcept;

  const Clock& clock_;
  const Make make_;
  const Ended ended_;
  mutable base::Mutex mutex_;
  net::BackupState state_ SEMEL_GUARDED_BY(mutex_);
  std::thread thread_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::tool
