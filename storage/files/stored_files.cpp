#include "storage/files/stored_files.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"

namespace semel::storage {

StoredFiles::StoredFiles(const Context& context, std::unique_ptr<Archive> archive,
                         EarlierProcess earlier, std::vector<OldSegment> segments,
                         LogOffset drained)
    : context_(context),
      archive_(std::move(archive)),
      earlier_(std::move(earlier)),
      old_segments_(std::move(segments)),
      old_left_(!old_segments_.empty()),
      floor_(archive_->description().floor),
      drained_(drained),
      rocks_sequence_(archive_->database().GetLatestSequenceNumber()) {
  batch_ends_.reserve(batch_ends_max);
  batch_ends_.push_back(drained);
}

void StoredFiles::check_invariants() const {
  // mo: relaxed: only changed with the mutex held
  SEMEL_ASSERT(old_left_.load(std::memory_order_relaxed) == !old_segments_.empty());
  SEMEL_ASSERT(!batch_ends_.empty() && batch_ends_.size() <= batch_ends_max);
  SEMEL_ASSERT(batch_ends_.front() <= batch_ends_.back());
}

void StoredFiles::reached_sequence(std::uint64_t sequence) noexcept {
  // mo: relaxed: only the word itself is compared. release [storage.rocks_sequence]: the checkpoint
  //     may only name numbers of synced writes.
  std::uint64_t before = rocks_sequence_.load(std::memory_order_relaxed);
  while (before < sequence &&
         !rocks_sequence_.compare_exchange_weak(before, sequence, std::memory_order_release,
                                                std::memory_order_relaxed)) {
  }
}

std::uint64_t StoredFiles::ended_now() const noexcept {
  const std::uint64_t now_ms = context_.durable_now();
  return is_recovered() ? now_ms : std::min(now_ms, earlier_.ended_before_ms);
}

std::uint64_t StoredFiles::bytes() const {
  std::uint64_t of_joined = 0;
  const Status read = archive_->guarded([&]() -> Status {
    of_joined = joined().bytes();
    return Done{};
  });
  return archive_->bytes() + (read ? of_joined : 0);
}

Status StoredFiles::add(const BlobSet& blobs, LogOffset drained, Version largest) {
  if (largest + version_reserve / 2 > archive_->description().versions) {
    SEMEL_CHECK(describe([&](Description& next) { next.versions = largest + version_reserve; }));
  }
  SEMEL_CHECK(archive_->add(blobs, drained));
  // What the checkpoint calls drained must be in files on the disk.
  if (drained != 0) {
    // mo: relaxed: only the draining thread sets it
    SEMEL_ASSERT(drained_.load(std::memory_order_relaxed) <= drained);
    drained_.store(drained, std::memory_order_release);  // mo: release [storage.drained]
  }
  // With joined commits, and other writes of the user, the newest number may belong to a write that
  // was not synced; then only synced writes report their numbers.
  if (!has_joined()) reached_sequence(archive_->database().GetLatestSequenceNumber());
  return Done{};
}

void StoredFiles::end_batch(LogOffset end) {
  SEMEL_ASSERT(batch_ends_.empty() || batch_ends_.back() <= end);
  SEMEL_ASSERT(batch_ends_.capacity() >= batch_ends_max);  // no memory is needed here
  if (batch_ends_.size() == batch_ends_max) batch_ends_.erase(batch_ends_.begin());
  batch_ends_.push_back(end);
  check_invariants();
}

LogOffset StoredFiles::last_batch_end(LogOffset cut) const {
  const auto after = std::upper_bound(batch_ends_.begin(), batch_ends_.end(), cut);
  return after == batch_ends_.begin() ? 0 : *std::prev(after);
}

Status StoredFiles::make_void(LogOffset floor, const ColdMark& cold) {
  // A rewrite and a spill may overlap. The one with the larger floor has written again what counts.
  if (floor < archive_->description().floor) return Done{};
  SEMEL_CHECK(describe([&](Description& next) {
    next.floor = floor;
    next.cold = cold;
    // What a spill has left out as ended may be an erase, and what that keeps away is in the store.
    if (is_recovered()) next.anchor = context_.anchor_now();
  }));
  SEMEL_CHECK(archive_->forget_before(floor));
  SEMEL_CHECK(archive_->guarded([&] { return joined().forget_before(floor); }));
  floor_.store(floor, std::memory_order_relaxed);  // mo: relaxed: the journal has nothing older
  return Done{};
}

Status StoredFiles::record_time() {
  // Until then nothing is dropped that had not ended by the last time on disk.
  if (!is_recovered()) return Done{};
  return describe([&](Description& next) { next.anchor = context_.anchor_now(); });
}

Status StoredFiles::forget_ended(SpanNumber running) {
  // An idle disk may sleep: nothing is written unless a span has ended.
  SEMEL_TRY(has_ended, archive_->has_ended(running));
  SEMEL_CHECK(archive_->guarded([&]() -> Status {
    SEMEL_TRY(of_joined, joined().has_ended(running));
    has_ended = has_ended || of_joined;
    return Done{};
  }));
  if (!has_ended) return Done{};
  SEMEL_CHECK(record_time());
  SEMEL_CHECK(archive_->forget(running));
  return archive_->guarded([&] { return joined().forget(running); });
}

Status StoredFiles::compact() {
  const SpanNumber running = running_span(ended_now());
  SEMEL_CHECK(record_time());
  SEMEL_CHECK(archive_->compact(running));
  return archive_->guarded([&] { return joined().compact(running); });
}

Status StoredFiles::remove_old(std::size_t count) {
  SEMEL_ASSERT(count <= old_segments_.size());
  for (; count > 0; --count) {
    SEMEL_CHECK(context_.disk.remove(old_segments_.front().path));
    old_segments_.erase(old_segments_.begin());
  }
  // mo: release [storage.old_left]: from now on the checkpoint describes this process alone
  if (old_segments_.empty()) old_left_.store(false, std::memory_order_release);
  check_invariants();
  return Done{};
}

}  // namespace semel::storage
