#include "storage/drain/log_to_files.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "base/assert.hpp"

namespace semel::storage {

namespace {

/// Drained at once, about half a millisecond.
constexpr std::uint64_t records_in_a_row = 1'000;

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

void LogToFiles::count_keeps(int change) {
  const base::MutexLock lock{dropping_mutex_};
  keeps_all_ += change;
  SEMEL_ASSERT(keeps_all_ >= 0);
}

DrainCounts LogToFiles::counts() const noexcept {
  // mo: relaxed: statistics, all three
  return {.mutations = mutations_.load(std::memory_order_relaxed),
          .ended = ended_.load(std::memory_order_relaxed),
          .superseded = superseded_.load(std::memory_order_relaxed)};  // mo: relaxed: as above
}

/// The kernel takes a processor away at its ticks only, 4 ms apart at 250 Hz, and several
/// background threads may run in a row: a claim that has lost its processor to them waits for all.
void LogToFiles::yield_cpu() const noexcept {
  // Not if writers come near: a thread that yields gets less of the processor.
  if (log_.segments().is_ahead()) sched_yield();
}

Status LogToFiles::read(DrainBatch& batch, std::uint64_t end) const {
  const ScanRules all_whole{context_.storage_id, ~LogOffset{0}, 0, ~LogOffset{0}};
  std::uint64_t records = 0;
  const SegmentBuffer buffer{log_.extent().segment_bytes()};
  if (!buffer.is_made()) return system_error("memory for a segment");
  for (std::uint64_t number = log_.extent().oldest(); number < end; ++number) {
    const Segment& segment = *log_.segments().segment(number);
    SEMEL_TRY(bytes, segment.read(buffer.get()));
    const ScanReport report = scan(bytes, segment.header(), segment.path(), all_whole, false,
                                   [&](const LogRecord& record) {
                                     batch.add(record);
                                     if (++records % records_in_a_row == 0) yield_cpu();
                                   });
    batch.skip_superseded();
    if (!report.damage.empty()) return report.damage.front().error();
  }
  return Done{};
}

Status LogToFiles::drain_to(std::uint64_t end) {
  SEMEL_ASSERT(next_ < end);
  const base::MutexLock dropping{dropping_mutex_};
  DrainBatch batch{context_,
                   files_,
                   engine_,
                   drops(),
                   next_ * log_.extent().segment_bytes(),
                   log_.extent().oldest() * log_.extent().segment_bytes()};
  SEMEL_CHECK(read(batch, end));
  const std::uint64_t kept = std::min(end, log_.extent().number_of(batch.parts().oldest()));
  const bool releases = kept > log_.extent().oldest();
  if (batch.counts().superseded != 0) SEMEL_CHECK(sync_successors());
  {
    const base::MutexLock lock{files_.mutex};
    SEMEL_CHECK(archive(batch, releases ? kept * log_.extent().segment_bytes() : 0));
    // A floor inside a group would make its first parts void, and the rest would wait for them.
    if (batch.parts().unfinished() == 0) files_.end_batch(end * log_.extent().segment_bytes());
  }
  next_ = end;
  if (releases) SEMEL_CHECK(log_.segments().release(kept - 1));
  progress_.raise();
  return Done{};
}

/// The first segments of earlier processes. Returns how many.
Result<std::size_t> LogToFiles::read_old(DrainBatch& batch) const {
  const auto segments = files_.old_segments();
  // Segments behind a gap are removed with it: without the gap they would count again.
  const auto is_behind_gap = [](const OldSegment& old) { return old.stop == old.begin; };
  std::size_t count = 0;
  while (count < segments.size() && (count < batch_segments || batch.parts().unfinished() != 0 ||
                                     is_behind_gap(segments[count]))) {
    SEMEL_CHECK(files_.earlier().scan(
        segments[count++], [&](const LogRecord& record) { batch.add(record); },
        [&] { batch.skip_superseded(); }));
  }
  return count;
}

Status LogToFiles::drain_old() {
  for (;;) {
    const base::MutexLock dropping{dropping_mutex_};
    const base::MutexLock lock{files_.mutex};
    if (files_.old_segments().empty()) return Done{};
    DrainBatch batch{context_, files_, engine_, drops()};
    SEMEL_TRY(count, read_old(batch));
    if (batch.counts().superseded != 0) SEMEL_CHECK(sync_successors());
    // A removal that failed midway leaves segments of a batch that is in files already, and the
    // next batch may be smaller.
    const LogOffset end = std::max(files_.last_batch_end(), files_.old_segments()[count - 1].end);
    SEMEL_CHECK(archive(batch, end));
    files_.end_batch(end);
    SEMEL_CHECK(files_.remove_old(count));
  }
}

Status LogToFiles::archive(const DrainBatch& batch, LogOffset drained) {
  if (batch.is_damaged()) {
    return Error{ErrorCode::storage_damaged, "a sealed record before log offset " +
                                                 std::to_string(drained) + " cannot be read"};
  }
  const DrainCounts& counts = batch.counts();
  if (counts.ended != 0) SEMEL_CHECK(files_.record_time());
  SEMEL_CHECK(files_.add(batch.blobs(), drained, batch.largest()));
  // mo: relaxed: statistics, all three
  mutations_.fetch_add(counts.mutations, std::memory_order_relaxed);
  ended_.fetch_add(counts.ended, std::memory_order_relaxed);
  superseded_.fetch_add(counts.superseded, std::memory_order_relaxed);  // mo: relaxed: as above
  return Done{};
}

/// Returns when the mutations because of which others were dropped are synced. Errors: those of
/// syncing; closing.
Status LogToFiles::sync_successors() {
  // They are sealed, so they lie in segments that are there. A record behind those may wait for a
  // segment that this thread has yet to make or to release.
  const LogOffset to = std::min(log_.tail(), log_.extent().room());
  sync_.request(to);
  for (;;) {
    const std::uint32_t seen = progress_.seen();
    if (health_.has_failed()) return health_.unknown();
    if (sync_.synced() >= to) return Done{};
    // The syncing thread may have ended.
    if (health_.is_closing()) return Error{ErrorCode::closing, context_.options.directory};
    SEMEL_CHECK(spares_.prepare());
    progress_.wait(seen, Millis{5});
  }
}

}  // namespace semel::storage
