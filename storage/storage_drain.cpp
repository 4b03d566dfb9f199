// The draining thread: prepares segments of the log, and moves full ones into the archive.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/assert.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

using storage::LogOffset;
using storage::ScanReport;

namespace {

/// Segments drained at once: fewer and larger files.
constexpr std::uint64_t drain_count = storage::Log::segment_count / 4;
/// Drained at once, about half a millisecond.
constexpr std::uint64_t records_in_a_row = 1'000;
/// Where superseded mutations are dropped, segments stay in the log until so many are complete: the
/// longer, the more of their mutations have been superseded. Then some of them are drained at once.
/// Writers are slowed down from 24 segments on.
constexpr std::uint64_t complete_max = storage::Log::segment_count / 2 - 2;
constexpr std::uint64_t drain_count_late = storage::Log::segment_count / 8;

/// Memory for one segment. Not from the heap: the heap of a thread would keep it.
class SegmentBuffer {
 public:
  explicit SegmentBuffer(std::size_t bytes) noexcept
      : bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~SegmentBuffer() {
    if (!is_made()) return;
    // Piece by piece: page faults of all threads wait while a piece is unmapped.
    constexpr std::size_t piece = std::size_t{256} << 10;
    for (std::size_t at = 0; at < bytes_; at += piece) {
      munmap(get() + at, std::min(piece, bytes_ - at));
    }
  }
  SegmentBuffer(const SegmentBuffer&) = delete;
  SegmentBuffer& operator=(const SegmentBuffer&) = delete;

  [[nodiscard]] bool is_made() const noexcept { return memory_ != MAP_FAILED; }
  [[nodiscard]] char* get() const noexcept { return static_cast<char*>(memory_); }

 private:
  const std::size_t bytes_;
  void* const memory_;
};

}  // namespace

Status Storage::Impl::drain_round() {
  const storage::WorkTimer::Scope at_work{drain_round_};
  look_for_calm();
  Status status = prepare_segments();
  // Drain even if the disk is full: draining frees space.
  if (Status drained = drain_some(take_drain_request()); !drained) status = drained;
  if (Status forgotten = forget_ended(); !forgotten) status = forgotten;
  record_drain_status(status);
  if (!has_reserve_ && status) keep_reserve();
  return status;
}

/// What a round had not finished when memory ended is repeated by the next.
Status Storage::Impl::try_drain_round() noexcept {
  try {
    return drain_round();
  } catch (...) {
    count_starved();
  }
  const Status status = Error{ErrorCode::storage_failed, storage::no_memory};
  record_drain_status(status);
  return status;
}

void Storage::Impl::count_starved() noexcept {
  starved_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
}

/// Made when there is plenty of space: it must not be what fills the disk.
void Storage::Impl::keep_reserve() {
  if (disk_.bytes_free(options_.directory) < 4 * reserve_bytes()) return;
  const Result<int> made = disk_.create(options_.directory + "/reserve", reserve_bytes());
  if (made.ok()) close(*made);
  has_reserve_ = true;  // also after an error: the next open tries again
}

void Storage::Impl::run_drainer() noexcept {
  storage::name_thread("semel:drain");
  constexpr Millis look_again{50};  // for spans that end
  constexpr Millis try_again{250};  // after trouble
  for (;;) {
    const std::uint32_t seen = drain_signal_.seen();
    if (stop_.load(std::memory_order_acquire)) return;  // mo: acquire [storage.stop]
    const Status status = try_drain_round();
    drain_signal_.wait(seen, status ? look_again : try_again);
  }
}

/// Whether a caller of drain() waits for more than is drained by now. Callers repeat the request
/// whenever they wake; without this check a late repeat would drain what was written afterwards.
bool Storage::Impl::take_drain_request() {
  // mo: acq_rel [storage.drain_to]: the request is taken, and its target is read below
  if (!drain_requested_.exchange(false, std::memory_order_acq_rel)) return false;
  // mo: acquire [storage.old_left] [storage.drained] [storage.drain_to]
  return old_left_.load(std::memory_order_acquire) ||
         drained_.load(std::memory_order_acquire) < drain_to_.load(std::memory_order_acquire);
}

void Storage::Impl::record_drain_status(const Status& status) noexcept {
  Status next = Error{ErrorCode::storage_failed, storage::no_memory};
  try {
    // A failed ingestion stays an error in rounds that find nothing to drain.
    Status said = status ? archive_->ingest_status() : status;
    if (!status && archive_->is_stuck() && !archive_->is_broken() &&
        !status.error().detail.ends_with(storage::reopen_remedy)) {
      Error error = status.error();
      error.detail += storage::reopen_remedy;
      said = std::move(error);
    }
    next = std::move(said);
  } catch (...) {
    count_starved();
  }
  {
    const base::MutexLock lock{mutex_};
    drain_status_ = std::move(next);
  }
  waiters_signal_.raise();
}

Status Storage::Impl::prepare_segments() {
  // Opened on a full disk: see start_threads().
  if (!log_->has_begun()) SEMEL_CHECK(log_->begin());
  while (log_->wants_segment()) {
    // mo: relaxed: a figure
    const std::uint64_t rounds = requested_rounds_.load(std::memory_order_relaxed);
    const LogOffset tail = log_->tail();
    // Several segments are made in a row; decide again only when enough was written in between.
    if (tail - prepared_tail_ >= log_->segment_bytes() / 2) {
      // Zeroed segments make small syncs faster: worth it after many of them.
      constexpr std::uint64_t bytes_each = std::uint64_t{64} << 10;
      zeroes_ = tail - prepared_tail_ <= (rounds - prepared_rounds_) * bytes_each;
      prepared_rounds_ = rounds;
      prepared_tail_ = tail;
    }
    SEMEL_CHECK(log_->prepare(zeroes_));
    waiters_signal_.raise();  // a writer may wait for a segment
  }
  return Done{};
}

Status Storage::Impl::drain_some(bool all) {
  // Older segments first: the archive records one offset up to which everything was drained.
  // mo: acquire [storage.recovered]
  if (recovered_.load(std::memory_order_acquire) || all || log_->is_crowded()) {
    SEMEL_CHECK(all ? drain_old() : drain_old_again());
  }
  if (old_left_.load(std::memory_order_acquire)) return Done{};  // mo: acquire [storage.old_left]
  if (all) log_->close_segment();
  for (;;) {
    const bool late = may_drop();
    const std::uint64_t wanted = all || calm_ ? 1 : late ? complete_max : drain_count;
    const std::uint64_t at_most = all || calm_ || !late ? drain_count : drain_count_late;
    const std::uint64_t first = std::max(drain_next_, log_->oldest());
    std::uint64_t complete = 0;
    while (complete < std::max(wanted, at_most)) {
      const storage::Segment* const next = log_->segment(first + complete);
      if (next == nullptr || !next->is_complete()) break;
      ++complete;
    }
    if (complete < wanted) return Done{};
    make_ready(complete >= at_most && !all && !calm_);
    const std::uint64_t before = log_->number_of(log_->tail());
    SEMEL_CHECK(drain_complete(first + std::min(complete, at_most)));
    filled_ = log_->number_of(log_->tail()) - before;
    since_drain_.restart();
    SEMEL_CHECK(prepare_segments());
    rewrite_if_due();
  }
}

/// The kernel takes a processor away at its ticks only, 4 ms apart at 250 Hz, and several
/// background threads may run in a row: a claim that has lost its processor to them waits for all.
void Storage::Impl::pass_processor() const noexcept {
  // Not if writers come near: a thread that passes its processor gets less of it.
  if (log_->is_ahead()) sched_yield();
}

/// Before this thread drains, and makes no segments meanwhile: enough of them for what writers are
/// likely to fill. Without room for a change a writer is refused, at every level.
void Storage::Impl::make_ready(bool full_batch) {
  // So many were filled within so short a time: as many may follow before these are drained.
  constexpr Millis loaded_within{10'000};
  const bool loaded = full_batch && since_drain_.passed() < loaded_within;
  const std::uint64_t likely = loaded ? drain_count : 0;
  // Draining needs space itself, and must find some on a disk that is nearly full.
  const bool has_space = disk_.bytes_free(options_.directory) >= 2 * options_.log_bytes;
  log_->expect(has_space ? std::max(likely, filled_ + filled_ / 2) : 0);
  // Draining makes space, and the next attempt reports what is left of the error.
  static_cast<void>(prepare_segments());
}

/// Now and then: a storage that has little to do gives back what only a busy one needs.
void Storage::Impl::look_for_calm() {
  const std::uint64_t now_ms = durable_now();
  if (now_ms - looked_ms_ < calm_after_ms) return;
  looked_ms_ = now_ms;
  const LogOffset tail = log_->tail();
  calm_ = tail - looked_tail_ < log_->segment_bytes();
  looked_tail_ = tail;
  log_->keep_spares(!calm_);
  if (calm_) {
    log_->remove_spares();
    log_->expect(0);
    log_->take_back();
  }
  rewrite_if_due();
}

/// Drains and releases the segments before `end`, except those with a group that ends in a later
/// segment: they are read again with that one.
Status Storage::Impl::drain_complete(std::uint64_t end) {
  DrainBatch batch{.from = drain_next_ * log_->segment_bytes(),
                   .parts = storage::PartCollector{log_->oldest() * log_->segment_bytes()},
                   .blobs = {},
                   .candidates = {}};
  const base::MutexLock dropping{dropping_mutex_};
  batch.ended_ms = ended_now();
  batch.drops = keeps_all_ == 0 && may_drop();
  const storage::ScanRules all_whole{storage_id_, ~LogOffset{0}, 0, ~LogOffset{0}};
  std::uint64_t records = 0;
  const SegmentBuffer buffer{log_->segment_bytes()};
  if (!buffer.is_made()) return storage::system_error("memory for a segment");
  for (std::uint64_t number = log_->oldest(); number < end; ++number) {
    const storage::Segment& segment = *log_->segment(number);
    SEMEL_TRY(bytes, segment.read(buffer.get()));
    const ScanReport report = storage::scan(bytes, segment.header(), segment.path(), all_whole,
                                            false, [&](const storage::LogRecord& record) {
                                              drain_record(batch, record);
                                              if (++records % records_in_a_row == 0)
                                                pass_processor();
                                            });
    sift(batch);
    if (!report.damage.empty()) return report.damage.front().error();
  }
  SEMEL_ASSERT(drain_next_ < end);
  const std::uint64_t kept = std::min(end, log_->number_of(batch.parts.oldest()));
  const bool releases = kept > log_->oldest();
  if (batch.superseded != 0) {
    SEMEL_CHECK(sync_successors());
  }
  {
    const base::MutexLock lock{archive_mutex_};
    SEMEL_CHECK(archive_batch(batch, releases ? kept * log_->segment_bytes() : 0));
    // A floor inside a group would make its first parts void, and the rest would wait for them.
    if (batch.parts.unfinished() == 0) end_batch(end * log_->segment_bytes());
  }
  drain_next_ = end;
  if (releases) {
    SEMEL_CHECK(log_->release(kept - 1));
  }
  waiters_signal_.raise();
  return Done{};
}

/// On a full disk every attempt reads a batch in vain, which took a fifth of a processor. So it
/// waits for space, and for what ends meanwhile.
Status Storage::Impl::drain_old_again() {
  constexpr Millis again{2'000};
  if (!old_status_ && old_failed_.passed() < again &&
      disk_.bytes_free(options_.directory) <= old_failed_at_) {
    return old_status_;
  }
  old_status_ = drain_old();
  if (!old_status_) {
    old_failed_.restart();
    old_failed_at_ = disk_.bytes_free(options_.directory);
  }
  return old_status_;
}

Status Storage::Impl::drain_old() {
  for (;;) {
    const base::MutexLock dropping{dropping_mutex_};
    const base::MutexLock lock{archive_mutex_};
    if (old_segments_.empty()) return Done{};
    DrainBatch batch;
    batch.ended_ms = ended_now();
    batch.drops = keeps_all_ == 0 && may_drop();
    std::size_t count = 0;
    // Segments behind a gap are removed with it: without the gap they would count again.
    const auto is_behind_gap = [](const OldSegment& old) { return old.stop == old.begin; };
    while (count < old_segments_.size() && (count < drain_count || batch.parts.unfinished() != 0 ||
                                            is_behind_gap(old_segments_[count]))) {
      const OldSegment& old = old_segments_[count++];
      SEMEL_CHECK(scan_old(
          old, [&](const storage::LogRecord& record) { drain_record(batch, record); },
          [&] { sift(batch); }));
    }
    if (batch.superseded != 0) {
      SEMEL_CHECK(sync_successors());
    }
    // A removal that failed midway leaves segments of a batch that is in files already, and the
    // next batch may be smaller.
    const LogOffset end = std::max(batch_ends_.back(), old_segments_[count - 1].end);
    SEMEL_CHECK(archive_batch(batch, end));
    end_batch(end);
    for (; count > 0; --count) {
      SEMEL_CHECK(disk_.remove(old_segments_.front().path));
      old_segments_.erase(old_segments_.begin());
    }
    // mo: release [storage.old_left]: from now on the checkpoint describes this process alone
    if (old_segments_.empty()) old_left_.store(false, std::memory_order_release);
  }
}

void Storage::Impl::drain_record(DrainBatch& batch, const storage::LogRecord& record) {
  // mo: relaxed: when it is set, the log holds nothing before it.
  if (record.offset < floor_.load(std::memory_order_relaxed)) return;
  Bytes payload = record.payload;
  std::optional<std::string> whole;
  if (record.type == storage::RecordType::part) {
    whole = batch.parts.add(payload);
    if (!whole) return;
    payload = *whole;
  }
  if (record.offset < batch.from) return;
  while (!payload.empty()) {
    storage::MutationExtent extent;
    if (!storage::extent_of(payload, extent, record.base)) {
      batch.damaged = true;  // its seal is valid, so this is a bug or bad memory
      return;
    }
    const Bytes mutation = payload.substr(0, extent.bytes);
    payload.remove_prefix(extent.bytes);
    batch.largest = std::max(batch.largest, extent.version);
    if (extent.keep_until_ms <= batch.ended_ms) {
      ++batch.ended;
      continue;
    }
    batch.candidates.push_back({record.offset, mutation, record.base, extent});
    if (batch.candidates.size() == Engine::superseded_max) sift(batch);
  }
  if (whole) sift(batch);  // its bytes go now
}

void Storage::Impl::end_batch(LogOffset end) {
  SEMEL_ASSERT(batch_ends_.empty() || batch_ends_.back() <= end);
  SEMEL_ASSERT(batch_ends_.capacity() >= batch_ends_max);  // no memory is needed here
  if (batch_ends_.size() == batch_ends_max) batch_ends_.erase(batch_ends_.begin());
  batch_ends_.push_back(end);
}

Status Storage::Impl::archive_batch(const DrainBatch& batch, LogOffset drained) {
  if (batch.damaged) {
    return Error{ErrorCode::storage_damaged, "a sealed record before log offset " +
                                                 std::to_string(drained) + " cannot be read"};
  }
  if (batch.ended != 0) SEMEL_CHECK(record_time());
  if (batch.largest + version_reserve / 2 > archive_->description().versions) {
    storage::Description next = archive_->description();
    next.versions = batch.largest + version_reserve;
    SEMEL_CHECK(archive_->describe(next));
  }
  SEMEL_CHECK(archive_->add(batch.blobs, drained));
  // What the checkpoint calls drained must be in files on the disk.
  if (drained != 0) {
    // mo: relaxed: only the draining thread sets it
    SEMEL_ASSERT(drained_.load(std::memory_order_relaxed) <= drained);
    drained_.store(drained, std::memory_order_release);  // mo: release [storage.drained]
  }
  // With joined commits, and other writes of the user, the newest number may belong to a write that
  // was not synced; then only synced writes report their numbers.
  if (joined_files().family() == nullptr) {
    reached_sequence(archive_->database().GetLatestSequenceNumber());  // needs no memory
  }
  const base::MutexLock stats{mutex_};
  mutations_drained_ += batch.mutations;
  mutations_ended_ += batch.ended;
  mutations_superseded_ += batch.superseded;
  return Done{};
}

Status Storage::Impl::drain() {
  const LogOffset target = log_->used();
  // This process has appended nothing, so nothing of it can be drained.
  const bool is_unused = target < log_begin_;
  if (!is_unused) {
    LogOffset known =
        drain_to_.load(std::memory_order_relaxed);  // mo: relaxed: the exchange decides
    // mo: release [storage.drain_to]
    while (known < target &&
           !drain_to_.compare_exchange_weak(known, target, std::memory_order_release,
                                            std::memory_order_relaxed)) {
    }
  }
  for (;;) {
    const std::uint32_t seen = waiters_signal_.seen();
    // mo: acquire [storage.old_left] [storage.drained]
    if (!old_left_.load(std::memory_order_acquire) &&
        (is_unused || drained_.load(std::memory_order_acquire) >= target)) {
      return Done{};
    }
    {
      const base::MutexLock lock{mutex_};
      if (!drain_status_) {
        return Error{ErrorCode::storage_failed, drain_status_.error().detail};
      }
    }
    drain_requested_.store(true, std::memory_order_release);  // mo: release [storage.drain_to]
    drain_signal_.raise();
    waiters_signal_.wait(seen, Millis{100});
  }
}

}  // namespace semel
