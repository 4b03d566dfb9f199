#include "tests/storage/faults/hooked_files.hpp"

#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include <algorithm>
#include <utility>

namespace semel::faults {
namespace {

using rocksdb::DirFsyncOptions;
using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class HookedWritable final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  HookedWritable(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path, FileHooks& hooks)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(std::move(path)), hooks_(hooks) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return write([&] { return target()->Append(data, options, debug); });
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* debug) override {
    return write([&] { return target()->Append(data, options, info, debug); });
  }
  IOStatus PositionedAppend(const Slice& data, std::uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    return write([&] { return target()->PositionedAppend(data, offset, options, debug); });
  }
  IOStatus PositionedAppend(const Slice& data, std::uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& info,
                            IODebugContext* debug) override {
    return write([&] { return target()->PositionedAppend(data, offset, options, info, debug); });
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    return write([&] { return target()->Truncate(size, options, debug); });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return hooks_.on({Step::sync, path_}, [&] { return target()->Sync(options, debug); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return hooks_.on({Step::sync, path_}, [&] { return target()->Fsync(options, debug); });
  }

 private:
  IOStatus write(const std::function<IOStatus()>& act) {
    return hooks_.on({Step::write, path_}, act);
  }

  const std::string path_;
  FileHooks& hooks_;
};

class HookedRandom final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  HookedRandom(std::unique_ptr<rocksdb::FSRandomRWFile> file, std::string path, FileHooks& hooks)
      : FSRandomRWFileOwnerWrapper(std::move(file)), path_(std::move(path)), hooks_(hooks) {}

  IOStatus Write(std::uint64_t offset, const Slice& data, const IOOptions& options,
                 IODebugContext* debug) override {
    return hooks_.on({Step::write, path_},
                     [&] { return target()->Write(offset, data, options, debug); });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return hooks_.on({Step::sync, path_}, [&] { return target()->Sync(options, debug); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return hooks_.on({Step::sync, path_}, [&] { return target()->Fsync(options, debug); });
  }

 private:
  const std::string path_;
  FileHooks& hooks_;
};

class HookedDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  HookedDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, std::string path,
                  FileHooks& hooks)
      : FSDirectoryWrapper(std::move(directory)), path_(std::move(path)), hooks_(hooks) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return hooks_.on({Step::sync_names, path_},
                     [&] { return FSDirectoryWrapper::Fsync(options, debug); });
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const DirFsyncOptions& how) override {
    return hooks_.on({Step::sync_names, path_},
                     [&] { return FSDirectoryWrapper::FsyncWithDirOptions(options, debug, how); });
  }

 private:
  const std::string path_;
  FileHooks& hooks_;
};

class HookedFiles final : public rocksdb::FileSystemWrapper {
 public:
  explicit HookedFiles(FileHooks& hooks)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), hooks_(hooks) {}

  const char* Name() const override { return "HookedFiles"; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    const IOStatus status = hooks_.on(
        {Step::create, path}, [&] { return target_->NewWritableFile(path, options, file, debug); });
    if (status.ok()) *file = std::make_unique<HookedWritable>(std::move(*file), path, hooks_);
    return status;
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* debug) override {
    IOStatus status = target_->FileExists(path, options.io_options, debug);
    const Step step = status.ok() ? Step::write : Step::create;
    status = hooks_.on({step, path},
                       [&] { return target_->ReopenWritableFile(path, options, file, debug); });
    // A listener that only says that it is done cannot hand out a file.
    if (status.ok() && *file == nullptr) status = IOStatus::IOError("not opened", path);
    if (status.ok()) *file = std::make_unique<HookedWritable>(std::move(*file), path, hooks_);
    return status;
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string&, const FileOptions&,
                             std::unique_ptr<rocksdb::FSWritableFile>*, IODebugContext*) override {
    return IOStatus::NotSupported("logs are not recycled", path);
  }
  IOStatus NewRandomRWFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                           IODebugContext* debug) override {
    const IOStatus status = target_->NewRandomRWFile(path, options, file, debug);
    if (status.ok()) *file = std::make_unique<HookedRandom>(std::move(*file), path, hooks_);
    return status;
  }
  IOStatus NewMemoryMappedFileBuffer(const std::string& path,
                                     std::unique_ptr<rocksdb::MemoryMappedFileBuffer>*) override {
    return IOStatus::NotSupported("nobody would see the writes", path);
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                        IODebugContext* debug) override {
    const IOStatus status = target_->NewDirectory(path, options, directory, debug);
    if (status.ok()) {
      *directory = std::make_unique<HookedDirectory>(std::move(*directory), path, hooks_);
    }
    return status;
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* debug) override {
    return hooks_.on({Step::remove, path},
                     [&] { return target_->DeleteFile(path, options, debug); });
  }
  IOStatus Truncate(const std::string& path, std::size_t size, const IOOptions& options,
                    IODebugContext* debug) override {
    return hooks_.on({Step::write, path},
                     [&] { return target_->Truncate(path, size, options, debug); });
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override {
    return hooks_.on({Step::rename, from, to},
                     [&] { return target_->RenameFile(from, to, options, debug); });
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                    IODebugContext* debug) override {
    return hooks_.on({Step::link, from, to},
                     [&] { return target_->LinkFile(from, to, options, debug); });
  }

 private:
  FileHooks& hooks_;
};

/// RocksDB's background threads sleep for a second after an error, and closing waits for them.
/// There are many errors here.
class ShortSleeps final : public rocksdb::SystemClockWrapper {
 public:
  ShortSleeps() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  const char* Name() const override { return "ShortSleeps"; }
  void SleepForMicroseconds(int micros) override {
    target_->SleepForMicroseconds(std::min(micros, 1'000));
  }
};

class HookedEnv final : public rocksdb::EnvWrapper {
 public:
  explicit HookedEnv(FileHooks& hooks)
      : EnvWrapper(rocksdb::NewCompositeEnv(std::make_shared<HookedFiles>(hooks))) {
    system_clock_ = std::make_shared<ShortSleeps>();
  }
  const char* Name() const override { return "HookedEnv"; }
};

}  // namespace

std::unique_ptr<rocksdb::Env> make_hooked_env(FileHooks& hooks) {
  return std::make_unique<HookedEnv>(hooks);
}

}  // namespace semel::faults
