// What a Storage is made of.
//
// Concurrency
//   queue_mutex_        the open group and its ticket. Held for one encoding.
//   [storage.written]   release stores of the writer thread, acquire loads of those who wait: what
//   [storage.synced]    they are told has reached the system, or the disk.
//   [storage.accepts]   release store of the writer on trouble, acquire load before each change.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "semel/storage.hpp"
#include "storage/group_buffer.hpp"

namespace semel {

class Storage::Impl {
 public:
  Impl(const StorageOptions& options, const Clock& clock) : options_(options), clock_(clock) {}
  ~Impl();

  [[nodiscard]] Status open();
  [[nodiscard]] Version first_version() const noexcept { return first_version_; }
  [[nodiscard]] Result<RecoveryReport> recover(
      Engine& engine, const std::function<void(const RecoveryProgress&)>& progress);

  [[nodiscard]] Ticket append(std::span<const Mutation> group);
  [[nodiscard]] Status wait(Ticket ticket, Durability level);
  [[nodiscard]] Ticket newest() const;
  [[nodiscard]] bool accepts_writes() const noexcept {
    return accepts_.load(std::memory_order_acquire);  // mo: acquire [storage.accepts]
  }
  [[nodiscard]] Status drop_ended();
  [[nodiscard]] StorageStats stats() const;

 private:
  [[nodiscard]] Status open_database();
  [[nodiscard]] Status read_meta();
  [[nodiscard]] Status write_first_meta();
  [[nodiscard]] Status keep_remote_leases(Engine& engine);
  void run_writer();
  [[nodiscard]] bool write_next(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] rocksdb::Status commit(const storage::GroupBuffer& group, Ticket ticket, bool sync);
  void add_meta(rocksdb::WriteBatch& batch, Ticket ticket, Version largest);
  [[nodiscard]] rocksdb::Status forget_ended(storage::SpanNumber running);
  void fail(const rocksdb::Status& status);
  [[nodiscard]] std::int64_t now_ms() const noexcept {
    return clock_.now().time_since_epoch().count();
  }

  const StorageOptions options_;
  const Clock& clock_;
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  rocksdb::ColumnFamilyHandle* journal_ = nullptr;
  storage::TimeLine line_{0};
  std::string boot_id_;
  Version first_version_ = 1;
  std::atomic<Version> largest_version_{0};
  Version version_ceiling_ = 0;  // of the writer thread, after open

  mutable std::mutex queue_mutex_;
  std::condition_variable work_;     // for the writer
  storage::GroupBuffer open_group_;  // under queue_mutex_
  Ticket open_ticket_ = 1;           // of the open group, under queue_mutex_
  bool sync_wanted_ = false;         // under queue_mutex_
  bool stop_ = false;                // under queue_mutex_
  StorageStats stats_;               // under queue_mutex_

  std::atomic<Ticket> written_{0};   // [storage.written]
  std::atomic<Ticket> synced_{0};    // [storage.synced]
  std::atomic<bool> accepts_{true};  // [storage.accepts]
  mutable std::mutex done_mutex_;
  std::condition_variable done_;     // for those who wait
  std::string trouble_;              // under done_mutex_
  std::atomic<bool> failed_{false};  // nothing more will be written or synced
  Timestamp next_sync_{};            // of the writer thread, as the next
  storage::SpanNumber running_span_ = 0;
  std::thread writer_;
};

}  // namespace semel
