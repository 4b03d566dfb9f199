// The write path: callers fill a group, one thread writes it, everybody who waits for it is told.
#include <rocksdb/write_batch.h>

#include <utility>

#include "storage/rocks_status.hpp"
#include "storage/storage_impl.hpp"
#include "storage/storage_keys.hpp"

namespace semel {

using storage::GroupBuffer;

Storage::Storage(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Storage::~Storage() = default;

Result<std::unique_ptr<Storage>> Storage::open(const StorageOptions& options, const Clock& clock) {
  auto impl = std::make_unique<Impl>(options, clock);
  SEMEL_TRY(opened, impl->open());
  static_cast<void>(opened);
  return std::unique_ptr<Storage>{new Storage{std::move(impl)}};
}

Version Storage::first_version() const noexcept {
  return impl_->first_version();
}
Result<RecoveryReport> Storage::recover(
    Engine& engine, const std::function<void(const RecoveryProgress&)>& progress) {
  return impl_->recover(engine, progress);
}
Ticket Storage::append(std::span<const Mutation> group) {
  return impl_->append(group);
}
Status Storage::wait(Ticket ticket, Durability level) {
  return impl_->wait(ticket, level);
}
Ticket Storage::newest() const {
  return impl_->newest();
}
bool Storage::accepts_writes() const noexcept {
  return impl_->accepts_writes();
}
Status Storage::drop_ended() {
  return impl_->drop_ended();
}
StorageStats Storage::stats() const {
  return impl_->stats();
}

Storage::Impl::~Impl() {
  {
    const std::lock_guard lock{queue_mutex_};
    stop_ = true;
  }
  work_.notify_one();
  if (writer_.joinable()) writer_.join();
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    static_cast<void>(database_->DestroyColumnFamilyHandle(family));  // cannot fail for an open one
  }
}

Ticket Storage::Impl::append(std::span<const Mutation> group) {
  const Timestamp now = clock_.now();
  bool first = false;
  Ticket ticket = 0;
  {
    const std::lock_guard lock{queue_mutex_};
    first = open_group_.empty();
    for (const Mutation& mutation : group) {
      open_group_.add(mutation, line_, options_.span, now);
      // mo: relaxed: written under queue_mutex_; the writer reads it after taking that.
      if (mutation.version > largest_version_.load(std::memory_order_relaxed)) {
        largest_version_.store(mutation.version, std::memory_order_relaxed);  // mo: as above
      }
    }
    ticket = open_ticket_;
    if (open_group_.bytes() > options_.queue_bytes) {
      accepts_.store(false, std::memory_order_release);  // mo: release [storage.accepts]
    }
  }
  if (first) work_.notify_one();
  return ticket;
}

Ticket Storage::Impl::newest() const {
  const std::lock_guard lock{queue_mutex_};
  return open_group_.empty() ? open_ticket_ - 1 : open_ticket_;
}

Status Storage::Impl::wait(Ticket ticket, Durability level) {
  if (level == Durability::memory) return Done{};
  if (level == Durability::quorum) return Error{ErrorCode::refused, "this storage has no replicas"};
  std::atomic<Ticket>& reached = level == Durability::logged ? written_ : synced_;
  // mo: acquire [storage.synced]
  if (level == Durability::synced && reached.load(std::memory_order_acquire) < ticket) {
    const std::lock_guard lock{queue_mutex_};
    sync_wanted_ = true;
    work_.notify_one();
  }
  // mo: acquire [storage.written] [storage.synced]
  const auto is_there = [&] { return reached.load(std::memory_order_acquire) >= ticket; };
  if (is_there()) return Done{};
  std::unique_lock lock{done_mutex_};
  // mo: relaxed: set under done_mutex_.
  done_.wait(lock, [&] { return is_there() || failed_.load(std::memory_order_relaxed); });
  if (is_there()) return Done{};
  return Error{ErrorCode::outcome_unknown, trouble_};
}

void Storage::Impl::run_writer() {
  std::unique_lock lock{queue_mutex_};
  while (write_next(lock)) {
  }
}

/// Writes the group that is open, or syncs what is due. False: this was the last.
bool Storage::Impl::write_next(std::unique_lock<std::mutex>& lock) {
  // mo: relaxed: this thread wrote them.
  const auto unsynced = [&] {
    return written_.load(std::memory_order_relaxed) != synced_.load(std::memory_order_relaxed);
  };
  work_.wait_for(lock, options_.sync_every,
                 [&] { return stop_ || !open_group_.empty() || (sync_wanted_ && unsynced()); });
  // mo: relaxed: only this thread sets it.
  if (failed_.load(std::memory_order_relaxed)) {
    work_.wait(lock, [&] { return stop_; });
    return false;
  }
  const bool last = stop_ && open_group_.empty();
  const bool due = clock_.now() >= next_sync_;
  const bool sync = sync_wanted_ || stop_ || (due && (unsynced() || !open_group_.empty()));
  sync_wanted_ = false;
  GroupBuffer group = std::exchange(open_group_, {});
  const Ticket ticket = group.empty() ? open_ticket_ - 1 : open_ticket_++;
  accepts_.store(true, std::memory_order_release);  // mo: release [storage.accepts]
  stats_.groups += group.empty() ? 0 : 1;
  stats_.syncs += sync ? 1 : 0;
  stats_.mutations += group.mutations();
  stats_.bytes += group.bytes();
  lock.unlock();

  rocksdb::Status status;
  if (!group.empty()) {
    status = commit(group, ticket, sync);
  } else if (sync && unsynced()) {
    status = database_->SyncWAL();
  }
  if (status.ok()) {
    if (sync) next_sync_ = clock_.now() + options_.sync_every;
    {
      const std::lock_guard done{done_mutex_};            // nobody is between looking and sleeping
      written_.store(ticket, std::memory_order_release);  // mo: release [storage.written]
      if (sync) synced_.store(ticket, std::memory_order_release);  // mo: release [storage.synced]
    }
    done_.notify_all();
    // After the answers: dropping files takes its time.
    const storage::SpanNumber running = storage::span_of(clock_.now(), line_, options_.span);
    if (running != std::exchange(running_span_, running)) status = forget_ended(running);
  }
  if (!status.ok()) fail(status);
  lock.lock();
  return !last;
}

rocksdb::Status Storage::Impl::commit(const GroupBuffer& group, Ticket ticket, bool sync) {
  rocksdb::WriteBatch batch;
  for (const auto& [span, mutations] : group.parts()) {
    const std::string name = storage::blob_key(span, ticket);
    const std::string seal = storage::seal_of(mutations);
    const rocksdb::Slice key{name};
    const rocksdb::Slice value[] = {seal, mutations};
    const rocksdb::Status put = batch.Put(journal_, {&key, 1}, {value, 2});
    if (!put.ok()) return put;
  }
  // mo: relaxed: see append(); the group was taken under queue_mutex_.
  add_meta(batch, ticket, largest_version_.load(std::memory_order_relaxed));
  rocksdb::WriteOptions options;
  options.sync = sync;
  return database_->Write(options, &batch);
}

void Storage::Impl::fail(const rocksdb::Status& status) {
  // After a failed write or sync nobody knows what the disk holds, and asking again would be told
  // that all is well. Reads go on; nothing is acknowledged any more until the storage is opened
  // anew.
  accepts_.store(false, std::memory_order_release);  // mo: release [storage.accepts]
  {
    const std::lock_guard done{done_mutex_};
    trouble_ = status.ToString();
    failed_.store(true, std::memory_order_release);  // mo: release [storage.accepts]
  }
  done_.notify_all();
}

StorageStats Storage::Impl::stats() const {
  StorageStats stats;
  {
    const std::lock_guard lock{queue_mutex_};
    stats = stats_;
    stats.bytes_queued = open_group_.bytes();
  }
  {
    const std::lock_guard done{done_mutex_};
    stats.trouble = trouble_;
  }
  stats.accepting = accepts_writes();
  std::uint64_t bytes = 0;
  if (database_->GetIntProperty(journal_, rocksdb::DB::Properties::kTotalSstFilesSize, &bytes)) {
    stats.bytes_disk = bytes;
  }
  return stats;
}

}  // namespace semel
