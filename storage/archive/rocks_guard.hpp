// What an exception leaves behind in RocksDB. A write that memory ends for is neither done nor
// undone, and its place in RocksDB's queue of writers is never given up: the next write would wait
// for ever. So
//
//   1. no call begins without some memory to spare: it is refused, and may be repeated;
//   2. after an exception all the same, RocksDB is not called again by this process.
//
// Threads of RocksDB itself are beyond this: where memory ends for them, the process ends.
#pragma once

#include <rocksdb/listener.h>
#include <rocksdb/sst_file_writer.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "semel/result.hpp"

namespace semel::storage {

/// Short enough to need no memory itself.
inline constexpr const char* no_memory = "no memory";

/// For the options of a database. Where the disk was full RocksDB goes on by itself when there is
/// space. In 7.8 it then takes files in under the number 0: it must stay stopped.
[[nodiscard]] inline std::shared_ptr<rocksdb::EventListener> no_recovery() {
  class Listener final : public rocksdb::EventListener {
   public:
    void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                              bool* auto_recovery) override {
      *auto_recovery = false;
    }
  };
  return std::make_shared<Listener>();
}

/// Remembers that a database has reported an error: in the background, or of a write to its log.
/// RocksDB reports it before the write returns. Thread-safe.
/// Concurrency: [rocks.error] release store, acquire load.
class ErrorListener final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* /*error*/) override {
    seen_.store(true, std::memory_order_release);  // mo: release [rocks.error]
  }
  [[nodiscard]] bool has_seen() const noexcept {
    return seen_.load(std::memory_order_acquire);  // mo: acquire [rocks.error]
  }

 private:
  std::atomic<bool> seen_{false};
};

/// Writes one table.
class TableWriter {
 public:
  TableWriter(const rocksdb::Options& options, bool drops_pages)
      : writer_(std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions{}, options, nullptr,
                                                         drops_pages)) {}
  [[nodiscard]] rocksdb::SstFileWriter& operator*() noexcept { return *writer_; }
  [[nodiscard]] rocksdb::SstFileWriter* operator->() noexcept { return writer_.get(); }
  [[nodiscard]] rocksdb::Status finish(rocksdb::ExternalSstFileInfo& written) {
    is_finishing_ = true;
    return writer_->Finish(&written);
  }
  /// After an exception. The destructor of a writer needs memory; and if it was finishing, it ends
  /// a process whose RocksDB was built with assertions, as Debian's is: then the writer is lost.
  [[nodiscard]] std::unique_ptr<rocksdb::SstFileWriter> leave() noexcept {
    if (is_finishing_) static_cast<void>(writer_.release());
    return std::move(writer_);
  }

 private:
  std::unique_ptr<rocksdb::SstFileWriter> writer_;
  bool is_finishing_ = false;
};

/// Concurrency: [rocks.broken] release store after an exception, acquire load before each call.
class RocksGuard {
 public:
  /// What `call` returns. Errors: also storage_failed, no_memory (nothing was begun) or that
  /// RocksDB is not called any more (is_broken).
  template <class Call>
  [[nodiscard]] Status run(Call&& call) {
    if (is_broken()) return broken();
    if (!has_memory()) return Error{ErrorCode::storage_failed, no_memory};
    const Inside inside;
    try {
      return std::forward<Call>(call)();
    } catch (...) {
      broken_.store(true, std::memory_order_release);  // mo: release [rocks.broken]
    }
    return broken();
  }
  /// `write` is called with a TableWriter; nothing but its file is touched, so an exception does no
  /// harm. One thread at a time. Errors: those of `write`, storage_failed (no_memory).
  template <class Write>
  [[nodiscard]] Status write_table(const rocksdb::Options& options, bool drops_pages,
                                   Write&& write) {
    if (!has_memory()) return Error{ErrorCode::storage_failed, no_memory};
    left_.reset();
    TableWriter writer{options, drops_pages};
    try {
      return std::forward<Write>(write)(writer);
    } catch (...) {
      left_ = writer.leave();
    }
    return Error{ErrorCode::storage_failed, no_memory};
  }
  /// This thread is in run(): what it takes was there when the call began.
  [[nodiscard]] static bool is_inside() noexcept { return depth_ != 0; }
  [[nodiscard]] bool is_broken() const noexcept {
    return broken_.load(std::memory_order_acquire);  // mo: acquire [rocks.broken]
  }

 private:
  struct Inside {
    Inside() noexcept { ++depth_; }
    ~Inside() { --depth_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };
  static inline constinit thread_local unsigned depth_ = 0;

  [[nodiscard]] static bool has_memory() noexcept {
    // What the largest of the calls takes for itself. Small enough for the heap of the thread,
    // which gives it back at once.
    constexpr std::size_t bytes = std::size_t{96} << 10;
    return std::unique_ptr<char[]>{new (std::nothrow) char[bytes]} != nullptr;
  }
  [[nodiscard]] static Error broken() noexcept {
    try {
      return {ErrorCode::storage_failed,
              "memory ended while RocksDB was at work; open the storage again in a new process"};
    } catch (...) {
      return {ErrorCode::storage_failed, no_memory};
    }
  }

  std::atomic<bool> broken_{false};               // [rocks.broken]
  std::unique_ptr<rocksdb::SstFileWriter> left_;  // after an exception, until there is memory
};

}  // namespace semel::storage
