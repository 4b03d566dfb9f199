// The way back: one thread reads blobs, several put their mutations into the engine. The order does
// not matter (docs/decisions/0002-order-of-versions.md), so nobody waits for anybody.
#include <rocksdb/convenience.h>

#include <condition_variable>
#include <deque>
#include <optional>
#include <thread>

#include "storage/rocks_status.hpp"
#include "storage/storage_impl.hpp"
#include "storage/storage_keys.hpp"

namespace semel {
namespace {

/// Blobs on their way from the reader to those who put them back; bounded in bytes, for a blob may
/// be as large as the queue that was written at once. One is always let in.
class BlobQueue {
 public:
  /// False: somebody has failed, and no more are wanted.
  [[nodiscard]] bool push(std::string blob) {
    std::unique_lock lock{mutex_};
    room_.wait(lock,
               [&] { return blobs_.empty() || bytes_ + blob.size() <= bytes_max || stopped_; });
    if (stopped_) return false;
    bytes_ += blob.size();
    blobs_.push_back(std::move(blob));
    filled_.notify_one();
    return true;
  }
  void close() {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    filled_.notify_all();
  }
  void stop() {
    const std::lock_guard lock{mutex_};
    stopped_ = closed_ = true;
    blobs_.clear();
    filled_.notify_all();
    room_.notify_all();
  }
  /// False: there are no more.
  [[nodiscard]] bool pop(std::string& blob) {
    std::unique_lock lock{mutex_};
    filled_.wait(lock, [&] { return !blobs_.empty() || closed_; });
    if (blobs_.empty()) return false;
    blob = std::move(blobs_.front());
    blobs_.pop_front();
    bytes_ -= blob.size();
    room_.notify_one();
    return true;
  }

 private:
  static constexpr std::size_t bytes_max = std::size_t{64} << 20;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::condition_variable room_;
  std::deque<std::string> blobs_;
  std::size_t bytes_ = 0;
  bool closed_ = false;
  bool stopped_ = false;
};

class Recovery {
 public:
  Recovery(Engine& engine, const storage::TimeLine& line, std::uint64_t bytes_total,
           const std::function<void(const RecoveryProgress&)>& progress)
      : engine_(engine), line_(line), progress_(progress) {
    told_.bytes_total = bytes_total;
  }

  void run(BlobQueue& queue) {
    std::string blob;
    while (queue.pop(blob)) {
      if (Status status = restore(blob); !status) {
        fail(status.error());
        queue.stop();
        return;
      }
    }
  }
  void fail(const Error& error) {
    const std::lock_guard lock{mutex_};
    if (!error_) error_ = error;
  }
  [[nodiscard]] Result<RecoveryReport> result() {
    const std::lock_guard lock{mutex_};
    if (error_) return *error_;
    return report_;
  }

 private:
  [[nodiscard]] Status restore(const std::string& blob) {
    Bytes mutations;
    if (!storage::unseal(blob, mutations)) {
      return Error{ErrorCode::storage_damaged, "a blob of " + std::to_string(blob.size()) +
                                                   " bytes does not have its checksum"};
    }
    const Timestamp now = engine_.clock().now();
    RecoveryReport seen;
    seen.bytes = blob.size();
    while (!mutations.empty()) {
      Mutation mutation;
      if (!storage::decode(mutations, line_, now, mutation)) {
        return Error{ErrorCode::storage_damaged, "a mutation cannot be read"};
      }
      ++seen.mutations;
      if (mutation.due <= now) ++seen.ended;
      if (Status status = engine_.restore(mutation); !status) return status;
    }
    tell(seen);
    return Done{};
  }

  void tell(const RecoveryReport& seen) {
    const std::lock_guard lock{mutex_};
    report_.mutations += seen.mutations;
    report_.ended += seen.ended;
    report_.bytes += seen.bytes;
    told_.bytes = report_.bytes;
    told_.mutations = report_.mutations;
    if (progress_) progress_(told_);
  }

  Engine& engine_;
  const storage::TimeLine& line_;
  const std::function<void(const RecoveryProgress&)>& progress_;
  std::mutex mutex_;  // of what follows
  RecoveryReport report_;
  RecoveryProgress told_;
  std::optional<Error> error_;
};

}  // namespace

Result<RecoveryReport> Storage::Impl::recover(
    Engine& engine, const std::function<void(const RecoveryProgress&)>& progress) {
  std::uint64_t total = 0;
  static_cast<void>(database_->GetIntProperty(  // an estimate, for people
      journal_, rocksdb::DB::Properties::kEstimateLiveDataSize, &total));
  Recovery recovery{engine, line_, total, progress};
  BlobQueue queue;
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < options_.recovery_threads; ++i) {
    workers.emplace_back([&] { recovery.run(queue); });
  }
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.readahead_size = std::size_t{4} << 20;
  std::unique_ptr<rocksdb::Iterator> blob{database_->NewIterator(options, journal_)};
  // What ended before now starts in an earlier span and need not be read.
  const std::string first =
      storage::blob_key(storage::span_of(clock_.now(), line_, options_.span), 0);
  for (blob->Seek(first); blob->Valid(); blob->Next()) {
    if (!queue.push(blob->value().ToString())) break;
  }
  queue.close();
  for (std::thread& worker : workers) worker.join();
  if (!blob->status().ok()) recovery.fail(storage::error_of(blob->status(), "journal"));
  if (Status status = keep_remote_leases(engine); !status) recovery.fail(status.error());
  return recovery.result();
}

/// The lease of a remote owner has started again, so its record ends later than its span on disk.
/// It is written anew: else a third life would find the span over and the claim free. Only what
/// holds after everything is back: an older hold must not outlive the completion that came after
/// it.
Status Storage::Impl::keep_remote_leases(Engine& engine) {
  return engine.snapshot([this](const Mutation& mutation) {
    if (!mutation.claim || mutation.claim->state != ClaimState::held) return;
    if (mutation.claim->session == 0) static_cast<void>(append({&mutation, 1}));
  });
}

rocksdb::Status Storage::Impl::forget_ended(storage::SpanNumber running) {
  const std::string first = storage::blob_key(0, 0);
  const std::string last = storage::blob_key(running, 0);
  const rocksdb::Slice begin{first};
  const rocksdb::Slice end{last};
  // Whole files go at once; what shares one goes when that is compacted.
  const rocksdb::Status status =
      rocksdb::DeleteFilesInRange(database_.get(), journal_, &begin, &end);
  return status.ok() ? database_->DeleteRange({}, journal_, begin, end) : status;
}

Status Storage::Impl::drop_ended() {
  const storage::SpanNumber running = storage::span_of(clock_.now(), line_, options_.span);
  rocksdb::Status status = forget_ended(running);
  const std::string first = storage::blob_key(0, 0);
  const std::string last = storage::blob_key(running, 0);
  const rocksdb::Slice begin{first};
  const rocksdb::Slice end{last};
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kIfHaveCompactionFilter;
  if (status.ok()) status = database_->CompactRange(options, journal_, &begin, &end);
  return status.ok() ? Status{Done{}} : storage::error_of(status, "journal");
}

}  // namespace semel
