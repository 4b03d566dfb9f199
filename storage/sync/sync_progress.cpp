#include "storage/sync/sync_progress.hpp"

#include "base/assert.hpp"

namespace semel::storage {

void SyncProgress::check_invariants() const noexcept {
  // mo: relaxed: of the syncing thread, which alone sets both
  SEMEL_ASSERT(synced_.load(std::memory_order_relaxed) <= target_.load(std::memory_order_relaxed));
}

void SyncProgress::begin_round(LogOffset target) noexcept {
  SEMEL_ASSERT(target_.load(std::memory_order_relaxed) <= target);  // mo: relaxed: of this thread
  target_.store(target, std::memory_order_release);  // mo: release [storage.round]: first
  round_.fetch_add(1, std::memory_order_release);    // mo: release [storage.round]
  check_invariants();
}

std::uint32_t SyncProgress::publish(LogOffset synced) noexcept {
  SEMEL_ASSERT(synced_.load(std::memory_order_relaxed) <= synced);  // mo: relaxed: of this thread
  synced_.store(synced,
                std::memory_order_seq_cst);  // mo: seq_cst [storage.synced] [storage.wanted]
  published_rounds_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a figure
  check_invariants();
  return bit_of(round_.load(std::memory_order_relaxed));  // mo: relaxed: of this thread
}

void SyncProgress::smooth_round(double seconds) noexcept {
  // mo: relaxed: a figure, which only this thread sets
  const double before = round_seconds_.load(std::memory_order_relaxed);
  const double after = before == 0 ? seconds : (7 * before + seconds) / 8;
  round_seconds_.store(after, std::memory_order_relaxed);  // mo: relaxed: as above
}

}  // namespace semel::storage
