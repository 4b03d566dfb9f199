// RocksDB's files with somebody listening: each step that changes what a disk holds can be seen,
// made to wait, and made to fail.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/io_status.h>

#include <functional>
#include <memory>
#include <string>

namespace semel::faults {

enum class Step {
  create,      ///< a file is made, or one that exists is emptied
  write,       ///< bytes of it, its length
  sync,        ///< of a file
  sync_names,  ///< of a directory
  rename,      ///< path -> target
  link,        ///< path -> target
  remove,
};

struct FileStep {
  Step step;
  std::string path;
  std::string target{};
};

class FileHooks {
 public:
  virtual ~FileHooks() = default;
  /// `act` does the step on the real file. Called from any thread; what it returns is what RocksDB
  /// is told, so a listener may leave `act` out and return an error.
  virtual rocksdb::IOStatus on(const FileStep& step,
                               const std::function<rocksdb::IOStatus()>& act) = 0;
};

/// The machine's file system, every step of which goes through `hooks`. RocksDB's own text log is
/// left out: nothing depends on it.
[[nodiscard]] std::unique_ptr<rocksdb::Env> make_hooked_env(FileHooks& hooks);

}  // namespace semel::faults
