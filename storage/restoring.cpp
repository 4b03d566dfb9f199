#include "storage/restoring.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "semel/engine_host.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "storage/joint/joined_files.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/mutation_codec.hpp"

namespace semel::storage {

bool is_remote_hold(const Mutation& mutation) noexcept {
  return mutation.claim && mutation.claim->state == ClaimState::held &&
         mutation.claim->session == 0;
}

/// One unit of work: a blob, or the segment with this index.
struct Restoring::Job {
  std::string blob;
  std::size_t segment = 0;
};

/// Bounded in bytes, as a blob may be as large as the largest group. An empty queue takes any blob.
class Restoring::JobQueue {
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
class Restoring::Workers {
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

Status Restoring::read_all(Archive& archive) {
  JobQueue queue;
  Workers workers{queue};
  try {
    workers.start(context_.options.recovery_threads, [&] { run(queue); });
  } catch (const std::system_error& error) {
    return Error{ErrorCode::no_thread, context_.options.directory + ": " + error.what()};
  }
  for (std::size_t i = 0; i < source_.segments.size(); ++i) {
    if (!queue.push({{}, i})) break;
  }
  // Blobs of spans that had ended before need not be read.
  Status read = archive.read_blobs({journal_family, joined_family},
                                   running_span(earlier_.ended_before_ms), [&](std::string blob) {
                                     return queue.push({std::move(blob), 0});
                                   });
  workers.finish();
  return read;
}

void Restoring::run(JobQueue& queue) noexcept {
  name_thread("semel:recover");
  try {
    work(queue);
  } catch (...) {
    fail({ErrorCode::memory_full, no_memory});
    queue.stop();
  }
}

void Restoring::fail(Error error) noexcept {
  const base::MutexLock lock{mutex_};
  if (!error_) error_ = std::move(error);
}

void Restoring::work(JobQueue& queue) {
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

Status Restoring::restore_holds() {
  for (const EndedHolds::Hold& found : holds_.take()) {
    const Timestamp now = engine_.clock().now();
    Bytes rest = found.bytes;
    Mutation hold;
    if (!decode(rest, context_.durable_clock, now, hold)) continue;
    if (found.is_over) {
      // It keeps older copies away all the same: in the journal until keep_until, in a cold store
      // perhaps longer. As an erase, because the terms of the namespace may be others by now, by
      // which a hold would be held again.
      hold.type = Mutation::Type::erase;
      hold.claim.reset();
      const bool keeps_copies = hold.keep_until > now || engine_.host().cold_store() != nullptr;
      if (keeps_copies) SEMEL_CHECK(engine_.host().restore(hold));
      continue;
    }
    SEMEL_CHECK(engine_.host().restore(hold));
    const base::MutexLock lock{mutex_};
    claim_namespaces_.add(hold);
    remote_holds_.store(true, std::memory_order_relaxed);  // mo: relaxed: of this thread
  }
  return Done{};
}

Result<RecoveryReport> Restoring::result() {
  const base::MutexLock lock{mutex_};
  if (error_) return *error_;
  SEMEL_TRY(unknown, live_claims_without_namespace());
  report_.unknown_namespaces = std::move(unknown);
  // A group with missing parts was never acknowledged; ignore all of it.
  report_.unfinished += parts_.unfinished();
  return report_;
}

Status Restoring::restore_segment(std::size_t index, Seen& seen) {
  const OldSegment& segment = source_.segments[index];
  Status status = Done{};
  SEMEL_TRY(report, earlier_.scan(segment, [&](const LogRecord& record) {
    if (!status || record.offset < source_.floor) return;
    if (record.type != RecordType::part) {
      status = restore(record.payload, record.base, segment.path, seen);
    } else if (const auto group = parts_.add(record.payload)) {
      status = restore(*group, nullptr, segment.path, seen);
    }
  }));
  seen.report.unfinished += report.unfinished;
  seen.report.bytes_skipped += report.bytes_skipped;
  return status;
}

Status Restoring::restore(Bytes mutations, const MutationBase* base, const std::string& from,
                          Seen& seen) {
  if (is_second_pass_) return supersede(mutations, base, from);
  const Timestamp now = engine_.clock().now();
  std::array<Mutation, 16> group;
  seen.report.bytes += mutations.size();
  while (!mutations.empty()) {
    std::size_t count = 0;
    while (count < group.size() && !mutations.empty()) {
      const Bytes before = mutations;
      if (!decode(mutations, context_.durable_clock, now, group[count], base)) {
        return Error{ErrorCode::storage_damaged, from + ": a mutation cannot be read"};
      }
      const Mutation& mutation = group[count];
      if (mutation.type == Mutation::Type::db_map) map_.remember(mutation);
      ++seen.report.mutations;
      const Bytes bytes = before.substr(0, before.size() - mutations.size());
      const bool is_noted = note_ended_hold(mutation, bytes, base);
      // As in draining: a mutation that draining drops must not count here.
      if (is_noted || mutation.keep_until <= now) {
        ++seen.report.ended;
        continue;
      }
      if (is_delta(mutation)) {
        deltas_.note(mutation);
        continue;
      }
      ++count;
      if (mutation.due <= now) ++seen.report.ended;
      seen.claim_namespaces.add(mutation);
      // mo: relaxed: read when this thread has been joined.
      if (is_remote_hold(mutation)) remote_holds_.store(true, std::memory_order_relaxed);
    }
    if (Status status = engine_.host().restore({group.data(), count}); !status) return status;
  }
  return deltas_.is_due() ? deltas_.apply(engine_) : Done{};
}

Status Restoring::restore_deltas() {
  SEMEL_CHECK(deltas_.apply(engine_));
  const std::string left = deltas_.describe_left();
  if (left.empty()) return Done{};
  return Error{ErrorCode::storage_damaged, context_.options.directory + ": " + left};
}

/// Whether it is a remote hold that has ended. If no process ran then, its lease starts again,
/// unless something superseded it, which is perhaps found later. It may be kept longer than what
/// superseded it, for a copy in the cold store that both keep away.
bool Restoring::note_ended_hold(const Mutation& mutation, Bytes bytes, const MutationBase* base) {
  const Timestamp now = engine_.clock().now();
  if (!is_remote_hold(mutation) || mutation.due <= now) return false;
  constexpr Timestamp long_ago{-limits::ttl_max};  // no lease starts again then
  Mutation as_stored;
  Bytes rest = bytes;
  if (!decode(rest, context_.durable_clock, long_ago, as_stored, base)) return false;
  if (as_stored.due > now) return false;
  const bool lived = lived_before(as_stored.due);
  if (!lived && mutation.keep_until <= now) return true;
  std::string wide;
  if (base != nullptr) {
    if (!widen(bytes, *base, wide)) return false;  // it was decoded before
    bytes = wide;
  }
  holds_.note(mutation, bytes, lived);
  return true;
}

/// The process before still had a record that ended then. So what superseded it is still stored, as
/// that is kept until this end at least.
bool Restoring::lived_before(Timestamp end) const {
  return context_.durable_clock.to_durable_ms(end) > earlier_.ended_before_ms;
}

Status Restoring::supersede(Bytes mutations, const MutationBase* base, const std::string& from) {
  const Timestamp now = engine_.clock().now();
  while (!mutations.empty()) {
    Mutation mutation;
    if (!decode(mutations, context_.durable_clock, now, mutation, base)) {
      return Error{ErrorCode::storage_damaged, from + ": a mutation cannot be read"};
    }
    if (mutation.keep_until <= now) holds_.supersede(mutation);
  }
  return Done{};
}

/// Counts the live claims of each unknown namespace. A record may have been replaced since it was
/// read, and its namespace dropped, so the engine's records are counted.
Result<std::map<std::string, std::uint64_t>> Restoring::live_claims_without_namespace() const {
  std::map<std::string, std::uint64_t> live;
  const std::vector<std::string> known = engine_.namespaces();  // in order
  ClaimNamespaces::Names unknown;
  std::set_difference(claim_namespaces_.names().begin(), claim_namespaces_.names().end(),
                      known.begin(), known.end(), std::inserter(unknown, unknown.end()));
  if (unknown.empty()) return live;
  const Timestamp now = engine_.clock().now();
  SEMEL_CHECK(engine_.host().snapshot([&](const Mutation& mutation) {
    if (!is_claim_put(mutation) || mutation.due <= now) return;
    const auto name = unknown.find(namespace_of(mutation.key));
    if (name != unknown.end()) ++live[*name];
  }));
  return live;
}

void Restoring::report_progress(const RecoveryReport& seen) {
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

}  // namespace semel::storage
