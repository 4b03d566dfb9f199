// RocksDB 7.8 deletes the files it was taking in when its manifest could not be synced, though the
// manifest may name them all the same: the next open then finds a file missing, and refuses. So
// while files are taken in nothing is deleted; afterwards it is, unless that failed. What no
// manifest names goes at the next open, and until then the archive takes in no more: each further
// attempt would leave its files as well.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace semel::storage {

class KeptTables final : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "KeptTables"; }

  void begin() {
    const std::lock_guard lock{mutex_};
    keeps_ = true;
  }
  void end(bool deletes) {
    std::vector<std::string> kept;
    {
      const std::lock_guard lock{mutex_};
      keeps_ = false;
      kept.swap(kept_);
    }
    for (const std::string& path : deletes ? kept : std::vector<std::string>{}) {
      // What cannot be deleted now goes at the next open.
      static_cast<void>(target_->DeleteFile(path, rocksdb::IOOptions{}, nullptr));
    }
  }

  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    {
      const std::lock_guard lock{mutex_};
      if (keeps_ && path.ends_with(".sst")) {
        kept_.push_back(path);
        return rocksdb::IOStatus::OK();
      }
    }
    return target_->DeleteFile(path, options, debug);
  }

 private:
  std::mutex mutex_;
  bool keeps_ = false;             // under mutex_
  std::vector<std::string> kept_;  // under mutex_
};

/// A machine that is another in nothing but this.
class KeptTablesEnv final : public rocksdb::EnvWrapper {
 public:
  explicit KeptTablesEnv(rocksdb::Env* base)
      : EnvWrapper(base), tables_(std::make_shared<KeptTables>(base->GetFileSystem())) {
    file_system_ = tables_;
  }
  const char* Name() const override { return "KeptTablesEnv"; }
  [[nodiscard]] KeptTables& tables() noexcept { return *tables_; }

 private:
  const std::shared_ptr<KeptTables> tables_;
};

}  // namespace semel::storage
