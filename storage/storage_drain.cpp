// The thread that prepares segments of the log, and takes those that are full into the archive.
#include <algorithm>

#include "storage/log/mutation_codec.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

using storage::BlobSet;
using storage::Place;
using storage::ScanReport;

namespace {

/// So many segments at once: fewer and larger files.
constexpr std::uint64_t drain_count = storage::Log::segment_count / 4;

}  // namespace

Status Storage::Impl::drain_round() {
  const storage::WorkMark::Scope at_work{drain_round_};
  Status status = prepare_segments();
  // A full disk is no reason not to drain: that is what gives space back.
  if (Status drained = drain_some(takes_drain_request()); !drained) status = drained;
  if (Status forgotten = forget_ended(); !forgotten) status = forgotten;
  note_trouble(status);
  return status;
}

void Storage::Impl::run_drainer() {
  constexpr Millis look_again{50};  // for spans that end
  constexpr Millis try_again{250};  // after trouble
  for (;;) {
    const std::uint32_t seen = crossed_.seen();
    if (stop_.load(std::memory_order_acquire)) return;  // mo: acquire, with the signal
    const Status status = drain_round();
    crossed_.wait(seen, status ? look_again : try_again);
  }
}

/// Whether somebody waits for more than is drained by now. A caller of drain() asks again whenever
/// it wakes; were the last of these taken at its word, it would drain what was written afterwards.
bool Storage::Impl::takes_drain_request() {
  // mo: all three with the signal; acquire: see drain_old() and put_away()
  if (!is_drain_asked_.exchange(false, std::memory_order_acq_rel)) return false;
  return old_left_.load(std::memory_order_acquire) ||
         drained_.load(std::memory_order_acquire) < drain_to_.load(std::memory_order_acquire);
}

void Storage::Impl::note_trouble(const Status& status) {
  {
    const std::lock_guard lock{mutex_};
    // What cannot be taken in stays trouble in rounds that find nothing to be drained.
    trouble_ = status ? std::string{archive_->ingest_failure()} : status.error().detail;
    if (!status && archive_->is_stuck() && !trouble_.ends_with(storage::reopen_remedy)) {
      trouble_ += storage::reopen_remedy;
    }
  }
  rounds_.raise();
}

Status Storage::Impl::prepare_segments() {
  while (log_->wants_segment()) {
    // mo: relaxed: a figure
    const std::uint64_t rounds = wanted_rounds_.load(std::memory_order_relaxed);
    const Place tail = log_->tail();
    // Several are made in a row, and of what was written meanwhile nothing can be told.
    if (tail - prepared_tail_ >= log_->segment_bytes() / 2) {
      // Many small syncs since then: it is worth it.
      constexpr std::uint64_t bytes_each = std::uint64_t{64} << 10;
      zeroes_ = tail - prepared_tail_ <= (rounds - prepared_rounds_) * bytes_each;
      prepared_rounds_ = rounds;
      prepared_tail_ = tail;
    }
    SEMEL_TRY(made, log_->prepare(zeroes_));
    static_cast<void>(made);
    rounds_.raise();  // somebody may wait for room
  }
  return Done{};
}

Status Storage::Impl::drain_some(bool all) {
  // What is older goes first: the archive knows one place up to which everything was drained.
  // mo: acquire, with the signal
  if (recovered_.load(std::memory_order_acquire) || all || log_->is_crowded()) {
    SEMEL_TRY(drained, drain_old());
    static_cast<void>(drained);
  }
  if (old_left_.load(std::memory_order_acquire)) return Done{};  // mo: acquire: see drain_old()
  if (all) log_->close_segment();
  for (;;) {
    const std::uint64_t first = std::max(drain_next_, log_->oldest());
    std::uint64_t end = first;
    while (end - first < drain_count) {
      const storage::Segment* const next = log_->segment(end);
      if (next == nullptr || !next->is_complete()) break;
      ++end;
    }
    if (end == first || (end - first < drain_count && !all)) return Done{};
    SEMEL_TRY(drained, drain_complete(end));
    SEMEL_TRY(prepared, prepare_segments());
    static_cast<void>(drained), static_cast<void>(prepared);
    rewrite_if_worth_it();
  }
}

/// Takes the segments before `end` away, but for those in which a group begins that ends in a later
/// one. These are read again with it.
Status Storage::Impl::drain_complete(std::uint64_t end) {
  Harvest harvest{.from = drain_next_ * log_->segment_bytes(),
                  .parts = storage::PartCollector{log_->oldest() * log_->segment_bytes()},
                  .blobs = {}};
  const storage::ScanRules all_whole{storage_id_, ~Place{0}, 0, ~Place{0}};
  for (std::uint64_t number = log_->oldest(); number < end; ++number) {
    const storage::Segment& segment = *log_->segment(number);
    const ScanReport report =
        storage::scan(segment.view(), segment.header(), segment.path(), all_whole, false,
                      [&](Place place, storage::RecordType type, Bytes payload) {
                        harvest_record(harvest, place, type, payload);
                      });
    if (!report.damage.empty()) return report.damage.front().error();
  }
  const std::uint64_t kept = std::min(end, log_->number_of(harvest.parts.oldest()));
  const bool releases = kept > log_->oldest();
  {
    const std::lock_guard lock{archive_mutex_};
    SEMEL_TRY(put, put_away(harvest, releases ? kept * log_->segment_bytes() : 0));
    static_cast<void>(put);
    end_batch(end * log_->segment_bytes());
  }
  drain_next_ = end;
  if (releases) {
    SEMEL_TRY(released, log_->release(kept - 1));
    static_cast<void>(released);
  }
  rounds_.raise();
  return Done{};
}

Status Storage::Impl::drain_old() {
  for (;;) {
    const std::lock_guard lock{archive_mutex_};
    if (old_segments_.empty()) return Done{};
    Harvest harvest;
    std::size_t count = 0;
    // What lies behind a gap goes with it: once the gap is gone, nobody would know.
    const auto is_behind_gap = [&](std::size_t index) {
      return old_segments_[index].stop == old_segments_[index].begin;
    };
    while (count < old_segments_.size() &&
           (count < drain_count || harvest.parts.unfinished() != 0 || is_behind_gap(count))) {
      const OldSegment& old = old_segments_[count++];
      SEMEL_TRY(report, scan_old(old, [&](Place place, storage::RecordType type, Bytes payload) {
                  harvest_record(harvest, place, type, payload);
                }));
      static_cast<void>(report);
    }
    SEMEL_TRY(put, put_away(harvest, old_segments_[count - 1].end));
    static_cast<void>(put);
    end_batch(old_segments_[count - 1].end);
    for (; count > 0; --count) {
      SEMEL_TRY(removed, disk_.remove(old_segments_.front().path));
      static_cast<void>(removed);
      old_segments_.erase(old_segments_.begin());
    }
    // mo: release: from now on the mark speaks of this process alone.
    if (old_segments_.empty()) old_left_.store(false, std::memory_order_release);
  }
}

void Storage::Impl::harvest_record(Harvest& harvest, Place place, storage::RecordType type,
                                   Bytes payload) {
  // mo: relaxed: it is set when nothing before it is left in the log.
  if (place < floor_.load(std::memory_order_relaxed)) return;
  std::optional<std::string> whole;
  if (type == storage::RecordType::part) {
    whole = harvest.parts.add(payload);
    if (!whole) return;
    payload = *whole;
  }
  if (place < harvest.from) return;
  const std::uint64_t now_ms = line_now();
  while (!payload.empty()) {
    storage::MutationExtent extent;
    if (!storage::extent_of(payload, extent)) {
      harvest.damaged = true;  // with a right seal: we wrote it so
      return;
    }
    const Bytes mutation = payload.substr(0, extent.bytes);
    payload.remove_prefix(extent.bytes);
    harvest.largest = std::max(harvest.largest, extent.version);
    if (extent.keep_until_ms <= now_ms) {
      ++harvest.ended;
      continue;
    }
    ++harvest.mutations;
    harvest.blobs.add(storage::span_of(extent.keep_until_ms, now_ms, options_.span), place,
                      mutation);
  }
}

void Storage::Impl::end_batch(Place end) {
  if (batch_ends_.size() == batch_ends_max) batch_ends_.erase(batch_ends_.begin());
  batch_ends_.push_back(end);
}

/// Under archive_mutex_.
Status Storage::Impl::put_away(const Harvest& harvest, Place drained) {
  if (harvest.damaged) {
    return Error{ErrorCode::storage_damaged,
                 "a sealed record before place " + std::to_string(drained) + " cannot be read"};
  }
  if (harvest.largest + version_reserve / 2 > archive_->description().versions) {
    storage::Description next = archive_->description();
    next.versions = harvest.largest + version_reserve;
    SEMEL_TRY(described, archive_->describe(next));
    static_cast<void>(described);
  }
  SEMEL_TRY(added, archive_->add(harvest.blobs, drained));
  static_cast<void>(added);
  // mo: release: whoever puts these into the mark says what is on the disk.
  if (drained != 0) drained_.store(drained, std::memory_order_release);
  // If there are joined commits and other writes of the user, the newest number may be one of a
  // write that was not synced; only synced ones tell theirs then.
  if (joined_files().family() == nullptr) {
    reached_sequence(archive_->database().GetLatestSequenceNumber());
  }
  const std::lock_guard stats{mutex_};
  mutations_drained_ += harvest.mutations;
  mutations_ended_ += harvest.ended;
  return Done{};
}

Status Storage::Impl::forget_ended() {
  const storage::SpanNumber running = storage::running_span(line_now());
  if (running < running_span_ + static_cast<std::uint64_t>(options_.span.count())) return Done{};
  const std::lock_guard lock{archive_mutex_};
  SEMEL_TRY(forgotten, archive_->forget(running));
  SEMEL_TRY(joined, joined_files().forget(running));
  static_cast<void>(forgotten), static_cast<void>(joined);
  running_span_ = running;
  return Done{};
}

Status Storage::Impl::drain() {
  const Place target = log_->used();
  // This process has appended nothing: there is nothing that could be drained up to there.
  const bool is_unused = target < log_begin_;
  if (!is_unused) {
    Place known = drain_to_.load(std::memory_order_relaxed);  // mo: relaxed: the exchange decides
    // mo: release, with the signal
    while (known < target &&
           !drain_to_.compare_exchange_weak(known, target, std::memory_order_release,
                                            std::memory_order_relaxed)) {
    }
  }
  for (;;) {
    const std::uint32_t seen = rounds_.seen();
    // mo: acquire: see drain_old() and put_away()
    if (!old_left_.load(std::memory_order_acquire) &&
        (is_unused || drained_.load(std::memory_order_acquire) >= target)) {
      return Done{};
    }
    {
      const std::lock_guard lock{mutex_};
      if (!trouble_.empty()) return Error{ErrorCode::storage_failed, trouble_};
    }
    is_drain_asked_.store(true, std::memory_order_release);  // mo: release, with the signal
    crossed_.raise();
    rounds_.wait(seen, Millis{100});
  }
}

}  // namespace semel
