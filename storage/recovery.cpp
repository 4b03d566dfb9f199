// The way back: one thread reads blobs and names segments of the log, several put their mutations
// into the engine. The order does not matter (docs/decisions/0002-order-of-versions.md), so nobody
// waits for anybody.
#include <array>
#include <condition_variable>
#include <deque>
#include <optional>
#include <thread>

#include "storage/archive/rocks_status.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/log/stopwatch.hpp"
#include "storage/storage_impl.hpp"

namespace semel {
namespace {

using storage::Place;

/// Held by an owner of another process, who may be alive.
[[nodiscard]] bool is_remote_hold(const Mutation& mutation) noexcept {
  return mutation.claim && mutation.claim->state == ClaimState::held &&
         mutation.claim->session == 0;
}

/// What one of the threads does next: a blob, or the segment with this index.
struct Job {
  std::string blob;
  std::size_t segment = 0;
};

/// Bounded in bytes, for a blob may be as large as the largest group. One is always let in.
class JobQueue {
 public:
  /// False: somebody has failed, and no more are wanted.
  [[nodiscard]] bool push(Job job) {
    std::unique_lock lock{mutex_};
    room_.wait(lock,
               [&] { return jobs_.empty() || bytes_ + job.blob.size() <= bytes_max || stopped_; });
    if (stopped_) return false;
    bytes_ += job.blob.size();
    jobs_.push_back(std::move(job));
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
    jobs_.clear();
    filled_.notify_all();
    room_.notify_all();
  }
  /// False: there are no more.
  [[nodiscard]] bool pop(Job& job) {
    std::unique_lock lock{mutex_};
    filled_.wait(lock, [&] { return !jobs_.empty() || closed_; });
    if (jobs_.empty()) return false;
    job = std::move(jobs_.front());
    jobs_.pop_front();
    bytes_ -= job.blob.size();
    room_.notify_one();
    return true;
  }

 private:
  static constexpr std::size_t bytes_max = std::size_t{8} << 20;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::condition_variable room_;
  std::deque<Job> jobs_;
  std::size_t bytes_ = 0;
  bool closed_ = false;
  bool stopped_ = false;
};

}  // namespace

class Storage::Impl::Recovery {
 public:
  Recovery(Impl& storage, Engine& engine, Place floor, std::uint64_t bytes_total,
           const std::function<void(const RecoveryProgress&)>& progress)
      : storage_(storage), engine_(engine), floor_(floor), progress_(progress) {
    told_.bytes_total = bytes_total;
  }

  void run(JobQueue& queue) {
    Job job;
    while (queue.pop(job)) {
      RecoveryReport seen;
      const Status status =
          job.blob.empty() ? restore_segment(job.segment, seen) : restore(job.blob, "a blob", seen);
      if (!status) {
        fail(status.error());
        queue.stop();
        return;
      }
      tell(seen);
    }
  }
  void fail(const Error& error) {
    const std::lock_guard lock{mutex_};
    if (!error_) error_ = error;
  }
  [[nodiscard]] bool remote_holds() const noexcept {
    return remote_holds_.load(std::memory_order_relaxed);  // mo: relaxed: the threads have ended
  }
  [[nodiscard]] Result<RecoveryReport> result() {
    const std::lock_guard lock{mutex_};
    if (error_) return *error_;
    // A group some of whose parts are missing was never acknowledged: nothing of it counts.
    report_.unfinished += parts_.unfinished();
    return report_;
  }

 private:
  [[nodiscard]] Status restore_segment(std::size_t index, RecoveryReport& seen) {
    const OldSegment& segment = storage_.old_segments_[index];
    Status status = Done{};
    SEMEL_TRY(report,
              storage_.scan_old(segment, [&](Place place, storage::RecordType type, Bytes payload) {
                if (!status || place < floor_) return;
                if (type != storage::RecordType::part) {
                  status = restore(payload, segment.path, seen);
                } else if (const auto group = parts_.add(payload)) {
                  status = restore(*group, segment.path, seen);
                }
              }));
    seen.unfinished += report.unfinished;
    seen.bytes_skipped += report.bytes_skipped;
    return status;
  }

  /// Sixteen at a time, so that their cache misses are waited for together.
  [[nodiscard]] Status restore(Bytes mutations, const std::string& from, RecoveryReport& seen) {
    const Timestamp now = engine_.clock().now();
    std::array<Mutation, 16> group;
    seen.bytes += mutations.size();
    while (!mutations.empty()) {
      std::size_t count = 0;
      while (count < group.size() && !mutations.empty()) {
        if (!storage::decode(mutations, storage_.line_, now, group[count])) {
          return Error{ErrorCode::storage_damaged, from + ": a mutation cannot be read"};
        }
        const Mutation& mutation = group[count];
        if (mutation.type == Mutation::Type::db_map) storage_.note_map(mutation);
        ++seen.mutations;
        // As in draining: what is forgotten there must not count here.
        if (mutation.keep_until <= now) {
          ++seen.ended;
          continue;
        }
        ++count;
        if (mutation.due <= now) ++seen.ended;
        // mo: relaxed: read when this thread has been joined.
        if (is_remote_hold(mutation)) remote_holds_.store(true, std::memory_order_relaxed);
      }
      if (Status status = engine_.restore({group.data(), count}); !status) return status;
    }
    return Done{};
  }

  void tell(const RecoveryReport& seen) {
    const std::lock_guard lock{mutex_};
    report_.mutations += seen.mutations;
    report_.ended += seen.ended;
    report_.bytes += seen.bytes;
    report_.unfinished += seen.unfinished;
    report_.bytes_skipped += seen.bytes_skipped;
    if (!progress_) return;
    told_.bytes = report_.bytes;
    told_.mutations = report_.mutations;
    told_.seconds = time_.seconds();
    if (told_.seconds > 0 && told_.bytes > 0) {
      told_.rate = static_cast<double>(told_.mutations) / told_.seconds;
      const std::uint64_t left =
          told_.bytes_total > told_.bytes ? told_.bytes_total - told_.bytes : 0;
      told_.eta = told_.seconds * static_cast<double>(left) / static_cast<double>(told_.bytes);
    }
    progress_(told_);
  }

  Impl& storage_;
  Engine& engine_;
  std::atomic<bool> remote_holds_{false};
  const Place floor_;
  const std::function<void(const RecoveryProgress&)>& progress_;
  const storage::Stopwatch time_;
  storage::PartCollector parts_;
  std::mutex mutex_;  // of what follows
  RecoveryReport report_;
  RecoveryProgress told_;
  std::optional<Error> error_;
};

Result<RecoveryReport> Storage::Impl::recover(
    Engine& engine, const std::function<void(const RecoveryProgress&)>& progress) {
  std::unique_lock lock{archive_mutex_};
  std::uint64_t total = archive_->bytes() + joined_files().bytes();
  for (const OldSegment& segment : old_segments_) total += segment.end - segment.begin;
  Recovery recovery{*this, engine, archive_->description().floor, total, progress};
  JobQueue queue;
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < options_.recovery_threads; ++i) {
    workers.emplace_back([&] { recovery.run(queue); });
  }
  for (std::size_t i = 0; i < old_segments_.size(); ++i) {
    if (!queue.push({{}, i})) break;
  }
  // What ended before now starts in an earlier span and need not be read.
  const Status read =
      archive_->read_blobs({storage::journal_family, storage::joined_family},
                           storage::running_span(line_now()), [&](std::string blob) {
                             return queue.push({std::move(blob), 0});
                           });
  queue.close();
  for (std::thread& worker : workers) worker.join();
  if (!read) recovery.fail(read.error());
  lock.unlock();
  if (recovery.remote_holds()) {
    if (Status status = keep_remote_leases(engine); !status) recovery.fail(status.error());
  }
  Result<RecoveryReport> result = recovery.result();
  if (!result) return result;
  {
    const std::lock_guard attach{engine_mutex_};
    engine_ = &engine;
    rewrite_ends_.store(false, std::memory_order_relaxed);  // mo: relaxed: a wish to hurry
  }
  recovered_.store(true, std::memory_order_release);  // mo: release, with the signal
  crossed_.raise();
  return result;
}

Result<storage::ScanReport> Storage::Impl::scan_old(const OldSegment& segment,
                                                    const storage::VisitRecord& visit) const {
  SEMEL_TRY(file, storage::SegmentFile::open(segment.path));
  storage::ScanRules how = rules();
  how.stop = segment.stop;
  storage::ScanReport report =
      storage::scan(file.bytes(), file.header(), file.path(), how, false, visit);
  if (!report.damage.empty()) return report.damage.front().error();
  return report;
}

/// The lease of a remote owner has started again, so its record ends later than its span on disk.
/// It is written anew: else a third life would find the span over and the claim free. Only what
/// holds after everything is back: an older hold must not outlive the completion that came after
/// it.
Status Storage::Impl::keep_remote_leases(Engine& engine) {
  return engine.snapshot([this](const Mutation& mutation) {
    if (is_remote_hold(mutation)) static_cast<void>(append({&mutation, 1}));
  });
}

}  // namespace semel
