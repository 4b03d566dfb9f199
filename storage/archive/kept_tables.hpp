// RocksDB 7.8 deletes the files of an ingestion if its manifest could not be synced, although the
// manifest may name them: the next open then finds a file missing, and refuses. So nothing is
// deleted during an ingestion, and afterwards only if it succeeded. Files that no manifest names
// are deleted at the next open. Until then nothing more is ingested, as each attempt would leave
// its files as well.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/mutex.hpp"

namespace semel::storage {

class KeptTables final : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "KeptTables"; }

  void begin() {
    const base::MutexLock lock{mutex_};
    SEMEL_ASSERT(!keeps_);
    keeps_ = true;
  }
  void end(bool deletes) noexcept {
    std::vector<std::string> kept;
    {
      const base::MutexLock lock{mutex_};
      keeps_ = false;
      kept.swap(kept_);
    }
    if (!deletes) return;
    for (const std::string& path : kept) {
      // A file that cannot be deleted now, as for want of memory, is deleted at the next open.
      try {
        static_cast<void>(target_->DeleteFile(path, rocksdb::IOOptions{}, nullptr));
      } catch (...) {
      }
    }
  }

  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    {
      const base::MutexLock lock{mutex_};
      if (keeps_ && path.ends_with(".sst")) {
        kept_.push_back(path);
        return rocksdb::IOStatus::OK();
      }
    }
    return target_->DeleteFile(path, options, debug);
  }

 private:
  base::Mutex mutex_;
  bool keeps_ SEMEL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> kept_ SEMEL_GUARDED_BY(mutex_);
};

/// An Env that differs in nothing else.
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
