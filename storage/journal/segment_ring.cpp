#include "storage/journal/segment_ring.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.hpp"

namespace semel::storage {
namespace {

/// An exception, for want of memory, means that it is still there: a removal needs none.
bool is_removed(Disk& disk, const std::string& path) noexcept {
  try {
    return disk.remove(path).ok();
  } catch (...) {
    return false;
  }
}

}  // namespace

SegmentRing::SegmentRing(Disk& disk, const LogSetup& setup, LogExtent& extent,
                         const BaseHints& bases)
    : disk_(disk), setup_(setup), extent_(extent), bases_(bases) {
  spare_.reserve(spare_max);  // release() needs no memory for them
}

std::size_t SegmentRing::file_bytes() const noexcept {
  // mo: relaxed: a statistic
  const std::uint64_t spare = spare_count_.load(std::memory_order_relaxed);
  return (extent_.number_of(extent_.room()) - extent_.oldest() + spare) * extent_.segment_bytes();
}

void SegmentRing::check_invariants() const noexcept {
  SEMEL_ASSERT(spare_.size() <= spare_max);
  SEMEL_ASSERT(ready_min <= ready_ && ready_ <= ready_max);
  for (std::size_t slot = 0; slot < slot_count; ++slot) {
    // mo: relaxed: this thread stores it
    const Segment* const shown = ring_[slot].load(std::memory_order_relaxed);
    const Segment* const owned = segments_[slot].get();
    SEMEL_ASSERT(shown == owned);
    SEMEL_ASSERT(owned == nullptr || owned->number() % slot_count == slot);
  }
}

// --- made ---------------------------------------------------------------------------------------

bool SegmentRing::wants_segment() const noexcept {
  const std::uint64_t next = extent_.number_of(extent_.room());
  const std::uint64_t first = extent_.oldest();
  if (first == 0) return true;
  // One segment is being written and others are ready, so that writers do not wait while the next
  // is made. Spare segments are prepared at once, for the time in which this thread is busy
  // draining and makes none.
  return next - first < LogExtent::segment_count &&
         (next <= extent_.number_of(extent_.tail()) + ready_ || !spare_.empty());
}

void SegmentRing::expect(std::uint64_t segments) noexcept {
  // One more, as nothing new is taken into the last: it is the reserve of operations under way.
  ready_ = std::clamp(segments + 1, ready_min, ready_max);
}

Result<std::unique_ptr<Segment>> SegmentRing::make(std::uint64_t number, bool zeroed) {
  SegmentHeader header;
  header.number = number;
  header.bytes = extent_.segment_bytes();
  header.storage_id = setup_.storage_id;
  header.first = setup_.first_number;
  header.base = bases_.next();
  if (spare_.empty()) return Segment::make(disk_, setup_.directory, header, zeroed, setup_.access);
  std::unique_ptr<Segment> old = std::move(spare_.back());
  spare_.pop_back();
  note_spares();
  return Segment::reuse(disk_, std::move(old), setup_.directory, header);
}

void SegmentRing::publish(std::unique_ptr<Segment> made) {
  const std::uint64_t number = made->number();
  SEMEL_ASSERT(!extent_.has_begun() ||
               (number >= extent_.oldest() && number - extent_.oldest() < segments_.size()));
  std::unique_ptr<Segment>& slot = segments_[number % segments_.size()];
  SEMEL_ASSERT(slot == nullptr);
  slot = std::move(made);
  // mo: release [log.segment]
  ring_[number % ring_.size()].store(slot.get(), std::memory_order_release);
  extent_.note_made(number);
}

Status SegmentRing::prepare(bool zeroed) {
  const bool reuses = !spare_.empty();
  SEMEL_TRY(
      made,
      make(extent_.has_begun() ? extent_.number_of(extent_.room()) : setup_.first_number, zeroed));
  // The next sync writes every touched page, so do not touch where syncs shall be small.
  if (zeroed && !reuses) {
    made->map_pages();
  } else if ((reuses || keeps_spares_) && extent_.has_begun()) {
    made->touch();
  }
  publish(std::move(made));
  return Done{};
}

Status SegmentRing::begin() {
  SEMEL_ASSERT(!extent_.has_begun());
  SEMEL_TRY(first, make(setup_.first_number, false));
  // Without the second the first would be in the way of the next attempt.
  std::optional<Result<std::unique_ptr<Segment>>> second;
  try {
    second.emplace(make(setup_.first_number + 1, false));
  } catch (...) {
    static_cast<void>(is_removed(disk_, first->path()));
    throw;
  }
  if (!second->ok()) {
    static_cast<void>(is_removed(disk_, first->path()));
    return second->error();
  }
  publish(std::move(first));
  publish(*std::move(*second));
  return Done{};
}

// --- released -----------------------------------------------------------------------------------

Status SegmentRing::release(std::uint64_t number) {
  const base::MutexLock lock{mutex_};
  for (std::uint64_t each = extent_.oldest(); each <= number; ++each) {
    std::unique_ptr<Segment>& owned = segments_[each % segments_.size()];
    SEMEL_ASSERT(owned != nullptr && owned->number() == each && owned->is_complete());
    const bool keeps = owned->is_mapped() && keeps_spares_ && spare_.size() < spare_max;
    // Before anything is changed: there may be no memory for it.
    const std::string path = keeps ? std::string{} : owned->path();
    // mo: release [log.segment]: a complete segment has no writers, and no other readers.
    ring_[each % ring_.size()].store(nullptr, std::memory_order_release);
    std::unique_ptr<Segment> old = std::move(owned);
    extent_.note_released(each);
    if (keeps) {
      spare_.push_back(std::move(old));
      note_spares();
      continue;
    }
    old.reset();
    SEMEL_CHECK(disk_.remove(path));
  }
  return Done{};
}

void SegmentRing::remove_spares() {
  // A file that cannot be removed now is removed by the next open.
  for (const std::unique_ptr<Segment>& old : spare_) {
    static_cast<void>(is_removed(disk_, old->path()));
  }
  spare_.clear();
  note_spares();
}

void SegmentRing::take_back() {
  if (extent_.oldest() == 0) return;  // none was made
  for (std::uint64_t number = extent_.number_of(extent_.room()) - 1;
       number > extent_.number_of(extent_.tail()) + ready_; --number) {
    // For one segment at a time: removing a file takes a while, and syncs wait for the mutex.
    const base::MutexLock lock{mutex_};
    std::atomic<Segment*>& slot = ring_[number % ring_.size()];
    std::unique_ptr<Segment>& owned = segments_[number % segments_.size()];
    SEMEL_ASSERT(owned != nullptr && owned->number() == number);
    // mo: seq_cst [log.take_back], and so is the load of the tail
    slot.store(nullptr, std::memory_order_seq_cst);
    const bool is_far = extent_.number_of(extent_.tail_after_slot()) + ready_min <= number;
    // A file that stays would be in the way of the segment's next one.
    if (!is_far || !is_removed(disk_, owned->path())) {
      slot.store(owned.get(), std::memory_order_release);  // mo: release [log.segment]
      return;
    }
    SEMEL_ASSERT(owned->completed() == segment_header_bytes);
    owned.reset();
    extent_.note_taken_back(number);
  }
}

void SegmentRing::remove_unused() {
  if (extent_.oldest() == 0) return;  // none was made
  remove_spares();
  // Newest first, so that a file that stays leaves no gap before it. The offset before the first
  // record is in a header.
  const std::uint64_t used = extent_.tail() == extent_.begin_of(setup_.first_number)
                                 ? setup_.first_number - 1
                                 : extent_.number_of(extent_.tail() - 1);
  for (std::uint64_t number = extent_.number_of(extent_.room()) - 1;
       number > used && number >= extent_.oldest(); --number) {
    static_cast<void>(is_removed(disk_, segments_[number % segments_.size()]->path()));  // as above
  }
}

}  // namespace semel::storage
