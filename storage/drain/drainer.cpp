#include "storage/drain/drainer.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "storage/archive/rocks_guard.hpp"
#include "storage/log/spans.hpp"

namespace semel::storage {

namespace {

/// Where superseded mutations are dropped, segments stay in the journal until so many are complete:
/// the longer, the more of their mutations have been superseded. Then some of them are drained at
/// once. Writers are slowed down from 24 segments on.
constexpr std::uint64_t complete_max = LogExtent::segment_count / 2 - 2;
constexpr std::uint64_t batch_segments_late = LogExtent::segment_count / 8;

}  // namespace

Status Drainer::begin_log(bool is_new) {
  while (!log_.extent().accepts()) {
    const Status prepared =
        log_.extent().has_begun() ? log_.segments().prepare(false) : log_.segments().begin();
    if (prepared) continue;
    // The disk is full. The storage opens all the same: it can be read, and it must be able to use
    // space that comes back by draining, by changes that free (they need two segments), or from
    // outside.
    const bool is_full =
        context_.disk.bytes_free(context_.options.directory) < context_.reserve_bytes();
    if (!log_.extent().accepts_frees() && (is_new || !is_full)) return prepared;
    record(prepared);
    break;
  }
  return Done{};
}

void Drainer::run() noexcept {
  name_thread("semel:drain");
  constexpr Millis look_again{50};  // for spans that end
  constexpr Millis try_again{250};  // after trouble
  Signal& signal = requests_.signal();
  for (;;) {
    const std::uint32_t seen = signal.seen();
    if (health_.is_closing()) return;
    const Status status = try_round();
    signal.wait(seen, status ? look_again : try_again);
  }
}

/// What a round had not finished when memory ended is repeated by the next.
Status Drainer::try_round() noexcept {
  try {
    return round();
  } catch (...) {
    health_.count_starved();
  }
  const Status status = Error{ErrorCode::storage_failed, no_memory};
  record(status);
  return status;
}

Status Drainer::round() {
  const WorkTimer::Scope at_work{at_work_};
  if (spares_.measure_write_rate()) rewriter_.start_if_due(spares_.is_write_rate_low());
  Status status = spares_.prepare();
  // Drain even if the disk is full: draining frees space.
  if (Status drained = drain_some(requests_.take()); !drained) status = drained;
  if (Status forgotten = forget_ended(); !forgotten) status = forgotten;
  record(status);
  if (!has_reserve_ && status) keep_reserve();
  return status;
}

void Drainer::record(const Status& status) noexcept {
  Status next = Error{ErrorCode::storage_failed, no_memory};
  const Archive& archive = files_.archive();
  try {
    // A failed ingestion stays an error in rounds that find nothing to drain.
    Status said = status ? archive.ingest_status() : status;
    if (!status && archive.is_stuck() && !archive.is_broken() &&
        !status.error().detail.ends_with(reopen_remedy)) {
      Error error = status.error();
      error.detail += reopen_remedy;
      said = std::move(error);
    }
    next = std::move(said);
  } catch (...) {
    health_.count_starved();
  }
  requests_.set_status(std::move(next));
}

/// Made when there is plenty of space: it must not be what fills the disk.
void Drainer::keep_reserve() {
  const std::size_t bytes = context_.reserve_bytes();
  if (context_.disk.bytes_free(context_.options.directory) < 4 * bytes) return;
  const Result<int> made = context_.disk.create(context_.reserve_path(), bytes);
  if (made.ok()) close(*made);
  has_reserve_ = true;  // also after an error: the next open tries again
}

/// Of the segments from `first` on, at most so many.
std::uint64_t Drainer::count_complete(std::uint64_t first, std::uint64_t at_most) const {
  std::uint64_t complete = 0;
  while (complete < at_most) {
    const Segment* const next = log_.segments().segment(first + complete);
    if (next == nullptr || !next->is_complete()) break;
    ++complete;
  }
  return complete;
}

Status Drainer::drain_some(bool all) {
  // Older segments first: the archive records one offset up to which everything was drained.
  if (files_.is_recovered() || all || log_.extent().is_crowded()) {
    SEMEL_CHECK(all ? log_to_files_.drain_old() : drain_old_again());
  }
  if (files_.has_old_segments()) return Done{};
  if (all) log_.close_segment();
  constexpr std::uint64_t batch_segments = LogToFiles::batch_segments;
  const bool at_once = all || spares_.is_write_rate_low();
  for (;;) {
    const bool late = engine_.may_drop();
    const std::uint64_t wanted = at_once ? 1 : late ? complete_max : batch_segments;
    const std::uint64_t at_most = at_once || !late ? batch_segments : batch_segments_late;
    const std::uint64_t first = log_to_files_.next();
    const std::uint64_t complete = count_complete(first, std::max(wanted, at_most));
    if (complete < wanted) return Done{};
    spares_.ensure_spare_segments(batch_segments, complete >= at_most && !at_once);
    SEMEL_CHECK(log_to_files_.drain_to(first + std::min(complete, at_most)));
    spares_.drained();
    SEMEL_CHECK(spares_.prepare());
    rewriter_.start_if_due(spares_.is_write_rate_low());
  }
}

/// On a full disk every attempt reads a batch in vain, which took a fifth of a processor. So it
/// waits for more space or for the end of records.
Status Drainer::drain_old_again() {
  constexpr Millis again{2'000};
  const std::string& directory = context_.options.directory;
  if (!old_status_ && old_failed_.passed() < again &&
      context_.disk.bytes_free(directory) <= old_failed_at_) {
    return old_status_;
  }
  old_status_ = log_to_files_.drain_old();
  if (!old_status_) {
    old_failed_.restart();
    old_failed_at_ = context_.disk.bytes_free(directory);
  }
  return old_status_;
}

Status Drainer::forget_ended() {
  // Recovery reads what ended while no process ran.
  if (!files_.is_recovered()) return Done{};
  const SpanNumber running = running_span(context_.durable_now());
  constexpr std::uint64_t steps = 12;  // in a span: its files leave soon after its end
  if (running < running_span_ + static_cast<std::uint64_t>(context_.options.span.count()) / steps) {
    return Done{};
  }
  const base::MutexLock lock{files_.mutex};
  SEMEL_CHECK(files_.forget_ended(running));
  running_span_ = running;
  return Done{};
}

}  // namespace semel::storage
