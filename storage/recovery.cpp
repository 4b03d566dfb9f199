// Recovery: one thread reads blobs and lists the segments of the log; several threads put their
// mutations into the engine. Their order does not matter
// (docs/decisions/0002-order-of-versions.md), so they do not wait for each other.
#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "storage/archive/rocks_status.hpp"
#include "storage/log/claim_namespaces.hpp"
#include "storage/log/ended_holds.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/log/stopwatch.hpp"
#include "storage/storage_impl.hpp"

namespace semel {
namespace {

using storage::LogOffset;

/// Held by an owner in another process, which may still be alive.
[[nodiscard]] bool is_remote_hold(const Mutation& mutation) noexcept {
  return mutation.claim && mutation.claim->state == ClaimState::held &&
         mutation.claim->session == 0;
}

/// One unit of work: a blob, or the segment with this index.
struct Job {
  std::string blob;
  std::size_t segment = 0;
};

/// Bounded in bytes, as a blob may be as large as the largest group. An empty queue takes any blob.
class JobQueue {
 public:
  /// False: a worker has failed, and no more jobs are needed.
  [[nodiscard]] bool push(Job job) {
    base::MutexLock lock{mutex_};
    while (!jobs_.empty() && bytes_ + job.blob.size() > bytes_max && !stopped_) room_.wait(lock);
    if (stopped_) return false;
    bytes_ += job.blob.size();
    jobs_.push_back(std::move(job));
    filled_.notify_one();
    return true;
  }
  void close() {
    const base::MutexLock lock{mutex_};
    closed_ = true;
    filled_.notify_all();
  }
  void stop() {
    const base::MutexLock lock{mutex_};
    stopped_ = closed_ = true;
    jobs_.clear();
    filled_.notify_all();
    room_.notify_all();
  }
  /// False: there are no more.
  [[nodiscard]] bool pop(Job& job) {
    base::MutexLock lock{mutex_};
    while (jobs_.empty() && !closed_) filled_.wait(lock);
    if (jobs_.empty()) return false;
    job = std::move(jobs_.front());
    jobs_.pop_front();
    bytes_ -= job.blob.size();
    room_.notify_one();
    return true;
  }

 private:
  static constexpr std::size_t bytes_max = std::size_t{8} << 20;
  base::Mutex mutex_;
  base::Condition filled_;
  base::Condition room_;
  std::deque<Job> jobs_ SEMEL_GUARDED_BY(mutex_);
  std::size_t bytes_ SEMEL_GUARDED_BY(mutex_) = 0;
  bool closed_ SEMEL_GUARDED_BY(mutex_) = false;
  bool stopped_ SEMEL_GUARDED_BY(mutex_) = false;
};

/// Threads that work on a queue. They end, also where an exception leaves the thread that fills it.
class Workers {
 public:
  explicit Workers(JobQueue& queue) noexcept : queue_(queue) {}
  ~Workers() {
    if (threads_.empty()) return;
    queue_.stop();
    join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void start(unsigned count, const std::function<void()>& work) {
    threads_.reserve(count);
    for (unsigned i = 0; i < count; ++i) threads_.emplace_back(work);
  }
  /// Returns when all jobs are done.
  void finish() {
    queue_.close();
    join();
  }

 private:
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  JobQueue& queue_;
  std::vector<std::thread> threads_;
};

}  // namespace

class Storage::Impl::Recovery {
 public:
  /// `segments` must not change meanwhile: recover() holds archive_mutex_.
  Recovery(Impl& storage, Engine& engine, std::span<const OldSegment> segments, LogOffset floor,
           std::uint64_t bytes_total, const std::function<void(const RecoveryProgress&)>& progress)
      : storage_(storage),
        engine_(engine),
        segments_(segments),
        floor_(floor),
        progress_(progress) {
    progress_now_.bytes_total = bytes_total;
  }

  void run(JobQueue& queue) noexcept {
    storage::name_thread("semel:recover");
    try {
      work(queue);
    } catch (...) {
      fail({ErrorCode::memory_full, storage::no_memory});
      queue.stop();
    }
  }
  void fail(Error error) noexcept {
    const base::MutexLock lock{mutex_};
    if (!error_) error_ = std::move(error);
  }
  void work(JobQueue& queue) {
    Job job;
    Seen seen;
    while (queue.pop(job)) {
      seen.report = {};
      const Status status = job.blob.empty() ? restore_segment(job.segment, seen)
                                             : restore(job.blob, nullptr, "a blob", seen);
      if (!status) {
        fail(status.error());
        queue.stop();
        return;
      }
      if (!is_second_pass_) report_progress(seen.report);
    }
    const base::MutexLock lock{mutex_};
    claim_namespaces_.add(seen.claim_namespaces);
  }
  /// Everything has to be read once more, for what supersedes the holds that were noted.
  [[nodiscard]] bool needs_second_pass() const { return !is_second_pass_ && holds_.any(); }
  void begin_second_pass() noexcept { is_second_pass_ = true; }
  /// Puts the holds that are left into the engine; their lease begins now.
  [[nodiscard]] Status restore_holds() {
    for (const std::string& bytes : holds_.take()) {
      Bytes rest = bytes;
      Mutation hold;
      if (!storage::decode(rest, storage_.durable_clock_, engine_.clock().now(), hold)) continue;
      SEMEL_CHECK(engine_.restore(hold));
      const base::MutexLock lock{mutex_};
      claim_namespaces_.add(hold);
      remote_holds_.store(true, std::memory_order_relaxed);  // mo: relaxed: of this thread
    }
    return Done{};
  }
  [[nodiscard]] bool remote_holds() const noexcept {
    return remote_holds_.load(std::memory_order_relaxed);  // mo: relaxed: the threads have ended
  }
  [[nodiscard]] Result<RecoveryReport> result() {
    const base::MutexLock lock{mutex_};
    if (error_) return *error_;
    SEMEL_TRY(unknown, live_claims_without_namespace());
    report_.unknown_namespaces = std::move(unknown);
    // A group with missing parts was never acknowledged; ignore all of it.
    report_.unfinished += parts_.unfinished();
    return report_;
  }

 private:
  /// What one thread has seen.
  struct Seen {
    RecoveryReport report;  // of its present job
    storage::ClaimNamespaces claim_namespaces;
  };

  [[nodiscard]] Status restore_segment(std::size_t index, Seen& seen) {
    const OldSegment& segment = segments_[index];
    Status status = Done{};
    SEMEL_TRY(report, storage_.scan_old(segment, [&](const storage::LogRecord& record) {
      if (!status || record.offset < floor_) return;
      if (record.type != storage::RecordType::part) {
        status = restore(record.payload, record.base, segment.path, seen);
      } else if (const auto group = parts_.add(record.payload)) {
        status = restore(*group, nullptr, segment.path, seen);
      }
    }));
    seen.report.unfinished += report.unfinished;
    seen.report.bytes_skipped += report.bytes_skipped;
    return status;
  }

  /// Sixteen at a time, so that their cache misses overlap. `base`: of the near form, or null.
  [[nodiscard]] Status restore(Bytes mutations, const storage::MutationBase* base,
                               const std::string& from, Seen& seen) {
    if (is_second_pass_) return supersede(mutations, base, from);
    const Timestamp now = engine_.clock().now();
    std::array<Mutation, 16> group;
    seen.report.bytes += mutations.size();
    while (!mutations.empty()) {
      std::size_t count = 0;
      while (count < group.size() && !mutations.empty()) {
        const Bytes before = mutations;
        if (!storage::decode(mutations, storage_.durable_clock_, now, group[count], base)) {
          return Error{ErrorCode::storage_damaged, from + ": a mutation cannot be read"};
        }
        const Mutation& mutation = group[count];
        if (mutation.type == Mutation::Type::db_map) storage_.remember_map(mutation);
        ++seen.report.mutations;
        // As in draining: what is dropped there must not count here.
        if (mutation.keep_until <= now) {
          ++seen.report.ended;
          const Bytes bytes = before.substr(0, before.size() - mutations.size());
          if (is_remote_hold(mutation) && mutation.due > now) note_hold(mutation, bytes, base);
          continue;
        }
        ++count;
        if (mutation.due <= now) ++seen.report.ended;
        seen.claim_namespaces.add(mutation);
        // mo: relaxed: read when this thread has been joined.
        if (is_remote_hold(mutation)) remote_holds_.store(true, std::memory_order_relaxed);
      }
      if (Status status = engine_.restore({group.data(), count}); !status) return status;
    }
    return Done{};
  }

  void note_hold(const Mutation& hold, Bytes bytes, const storage::MutationBase* base) {
    std::string wide;
    if (base != nullptr) {
      if (!storage::widen(bytes, *base, wide)) return;  // it was decoded before
      bytes = wide;
    }
    if (lived_before(bytes)) holds_.note(hold, bytes);
  }

  /// Of a remote hold: the process before still had it. So what superseded it is still stored, as
  /// that is kept until the hold's end at least.
  [[nodiscard]] bool lived_before(Bytes bytes) const {
    constexpr Timestamp long_ago{-limits::ttl_max};  // no lease starts again then
    Mutation hold;
    if (!storage::decode(bytes, storage_.durable_clock_, long_ago, hold)) return false;
    return storage_.durable_clock_.to_durable_ms(hold.due) > storage_.ended_before_ms_;
  }
  [[nodiscard]] Status supersede(Bytes mutations, const storage::MutationBase* base,
                                 const std::string& from) {
    const Timestamp now = engine_.clock().now();
    while (!mutations.empty()) {
      Mutation mutation;
      if (!storage::decode(mutations, storage_.durable_clock_, now, mutation, base)) {
        return Error{ErrorCode::storage_damaged, from + ": a mutation cannot be read"};
      }
      if (mutation.keep_until <= now) holds_.supersede(mutation);
    }
    return Done{};
  }

  /// Names and numbers of claims. What was read may have been replaced since, and its namespace
  /// dropped, so the records themselves are asked, where there is anything to ask.
  [[nodiscard]] Result<std::map<std::string, std::uint64_t>> live_claims_without_namespace() const
      SEMEL_REQUIRES(mutex_) {
    std::map<std::string, std::uint64_t> live;
    const std::vector<std::string> known = engine_.namespaces();  // in order
    storage::ClaimNamespaces::Names unknown;
    std::set_difference(claim_namespaces_.names().begin(), claim_namespaces_.names().end(),
                        known.begin(), known.end(), std::inserter(unknown, unknown.end()));
    if (unknown.empty()) return live;
    const Timestamp now = engine_.clock().now();
    SEMEL_CHECK(engine_.snapshot([&](const Mutation& mutation) {
      if (!storage::is_claim_put(mutation) || mutation.due <= now) return;
      const auto name = unknown.find(storage::namespace_of(mutation.key));
      if (name != unknown.end()) ++live[*name];
    }));
    return live;
  }

  void report_progress(const RecoveryReport& seen) {
    const base::MutexLock lock{mutex_};
    report_.mutations += seen.mutations;
    report_.ended += seen.ended;
    report_.bytes += seen.bytes;
    report_.unfinished += seen.unfinished;
    report_.bytes_skipped += seen.bytes_skipped;
    if (!progress_) return;
    progress_now_.bytes = report_.bytes;
    progress_now_.mutations = report_.mutations;
    progress_now_.seconds = time_.seconds();
    if (progress_now_.seconds > 0 && progress_now_.bytes > 0) {
      progress_now_.rate = static_cast<double>(progress_now_.mutations) / progress_now_.seconds;
      const std::uint64_t left = progress_now_.bytes_total > progress_now_.bytes
                                     ? progress_now_.bytes_total - progress_now_.bytes
                                     : 0;
      progress_now_.eta = progress_now_.seconds * static_cast<double>(left) /
                          static_cast<double>(progress_now_.bytes);
    }
    progress_(progress_now_);
  }

  Impl& storage_;
  Engine& engine_;
  const std::span<const OldSegment> segments_;
  std::atomic<bool> remote_holds_{false};
  storage::EndedHolds holds_;
  bool is_second_pass_ = false;  // set while no other thread runs
  const LogOffset floor_;
  const std::function<void(const RecoveryProgress&)>& progress_;
  const storage::Stopwatch time_;
  storage::PartCollector parts_;
  base::Mutex mutex_;
  RecoveryReport report_ SEMEL_GUARDED_BY(mutex_);
  storage::ClaimNamespaces claim_namespaces_ SEMEL_GUARDED_BY(mutex_);
  RecoveryProgress progress_now_ SEMEL_GUARDED_BY(mutex_);
  std::optional<Error> error_ SEMEL_GUARDED_BY(mutex_);
};

/// Claims without the terms of their namespace: whoever declares it anew, in another database say,
/// would be granted finished work again.
Status Storage::Impl::check_namespaces(const std::map<std::string, std::uint64_t>& unknown,
                                       storage::Description& is) const {
  is.knows_namespaces = is.knows_namespaces || unknown.empty();
  if (unknown.empty() || !is.knows_namespaces || options_.accept_unknown_namespaces) return Done{};
  return Error{ErrorCode::storage_damaged,
               options_.directory + ": " + storage::describe_unknown(unknown) +
                   "; to open it all the same, set accept_unknown_namespaces, and declare them as "
                   "they were before anything is claimed"};
}

/// Of a storage that an earlier release has written: a kill in between leaves claims that have been
/// folded and others that have not, and the next start goes on.
Status Storage::Impl::fold_memos(Engine& engine) {
  {
    const base::MutexLock lock{archive_mutex_};
    if (archive_->description().has_folded_memos) return Done{};
  }
  SEMEL_TRY(folded, engine.fold_memos());
  if (engine.journal() != journal_) return Done{};  // nothing was written down
  if (folded != 0) SEMEL_CHECK(engine.confirm(Durability::synced));
  const base::MutexLock lock{archive_mutex_};
  storage::Description is = archive_->description();
  is.has_folded_memos = true;
  return archive_->describe(is);
}

/// Passes everything that is stored to the threads of the recovery.
Status Storage::Impl::read_all(Recovery& recovery) {
  JobQueue queue;
  Workers workers{queue};
  try {
    workers.start(options_.recovery_threads, [&] { recovery.run(queue); });
  } catch (const std::system_error& error) {
    return Error{ErrorCode::no_thread, options_.directory + ": " + error.what()};
  }
  for (std::size_t i = 0; i < old_segments_.size(); ++i) {
    if (!queue.push({{}, i})) break;
  }
  // Blobs of spans that had ended before need not be read.
  Status read =
      archive_->read_blobs({storage::journal_family, storage::joined_family},
                           storage::running_span(ended_before_ms_), [&](std::string blob) {
                             return queue.push({std::move(blob), 0});
                           });
  workers.finish();
  return read;
}

Result<RecoveryReport> Storage::Impl::recover(
    Engine& engine, const std::function<void(const RecoveryProgress&)>& progress) {
  SEMEL_CHECK(bind_cold(engine.cold_store()));
  base::MutexLock lock{archive_mutex_};
  std::uint64_t total = file_bytes();
  for (const OldSegment& segment : old_segments_) total += segment.end - segment.begin;
  engine.expect_restores(total);
  Recovery recovery{*this, engine, old_segments_, archive_->description().floor, total, progress};
  if (Status read = read_all(recovery); !read) recovery.fail(read.error());
  if (recovery.needs_second_pass()) {
    recovery.begin_second_pass();
    if (Status read = read_all(recovery); !read) recovery.fail(read.error());
    if (Status restored = recovery.restore_holds(); !restored) recovery.fail(restored.error());
  }
  lock.unlock();
  if (recovery.remote_holds()) {
    if (Status status = keep_remote_leases(engine); !status) recovery.fail(status.error());
  }
  Result<RecoveryReport> result = recovery.result();
  if (!result) return result;
  lock.lock();
  storage::Description is = archive_->description();
  SEMEL_CHECK(check_namespaces(result->unknown_namespaces, is));
  record_life(is, log_begin_);
  SEMEL_CHECK(archive_->describe(is));
  lock.unlock();
  {
    const base::ExclusiveLock attach{engine_mutex_};
    engine_ = &engine;
    restores_ = engine.restores();
    const bool drops = engine.journal() == journal_ && joined_files().family() == nullptr;
    drops_.store(drops, std::memory_order_relaxed);  // mo: relaxed: see may_drop()
    rewrite_ends_.store(false,
                        std::memory_order_relaxed);  // mo: relaxed: only a hint to stop early
  }
  // mo: relaxed: read after [storage.recovered]
  is_tiered_.store(engine.has_cold_store(), std::memory_order_relaxed);
  recovered_.store(true, std::memory_order_release);  // mo: release [storage.recovered]
  drain_signal_.raise();
  SEMEL_CHECK(fold_memos(engine));
  return result;
}

Result<storage::ScanReport> Storage::Impl::scan_old(const OldSegment& segment,
                                                    const storage::VisitRecord& visit,
                                                    const std::function<void()>& at_end) const {
  SEMEL_TRY(file, storage::SegmentFile::open(segment.path));
  if (file.unreadable()) return file.unreadable()->error();
  storage::ScanRules how = rules();
  how.stop = segment.stop;
  storage::ScanReport report =
      storage::scan(file.bytes(), file.header(), file.path(), how, false, visit);
  at_end();
  if (!report.damage.empty()) return report.damage.front().error();
  return report;
}

/// On a full disk the log may have no segment yet: draining may free the space for it. Until
/// recover() has returned nothing is dropped that has ended, so a wait costs no lease.
Status Storage::Impl::await_log() {
  const storage::Stopwatch time;
  while (!log_->has_begun()) {
    const std::uint32_t seen = waiters_signal_.seen();
    if (time.passed() >= options_.confirm_within) {
      const base::MutexLock lock{mutex_};
      return Error{ErrorCode::storage_failed,
                   options_.directory +
                       ": leases of remote owners have to be written down, and for " +
                       std::to_string(options_.confirm_within.count()) + " ms there was no room: " +
                       (drain_status_ ? std::string{} : drain_status_.error().detail)};
    }
    waiters_signal_.wait(seen, Millis{20});
  }
  return Done{};
}

/// The lease of a remote owner starts again, so its record now ends later than its span on disk. It
/// is written again: otherwise the span could end before the lease, and after another restart the
/// claim would be free. This runs after everything is restored, so that an older hold does not
/// replace a later completion. Only what is synced outlives the power together with the time of
/// this process, by which the hold that it replaces has ended.
Status Storage::Impl::keep_remote_leases(Engine& engine) {
  if (!log_->has_begun()) {
    // A hold that was read may have been completed since, and then nothing has to be written.
    bool is_any_held = false;
    SEMEL_CHECK(engine.snapshot(
        [&](const Mutation& mutation) { is_any_held = is_any_held || is_remote_hold(mutation); }));
    if (!is_any_held) return Done{};
    SEMEL_CHECK(await_log());
  }
  std::optional<Ticket> newest;
  SEMEL_CHECK(engine.snapshot([&](const Mutation& mutation) {
    if (is_remote_hold(mutation)) newest = append({&mutation, 1});
  }));
  // A failed append has set the storage to failed, and the wait says so.
  const Status synced = newest ? wait(*newest, Durability::synced) : Done{};
  if (synced) return Done{};
  return Error{ErrorCode::storage_failed,
               options_.directory +
                   ": leases of remote owners are not written down: " + synced.error().detail};
}

}  // namespace semel
