#include "engine/decisions/decision_log.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <thread>

namespace semel::engine {
namespace {

constexpr std::size_t kept_unchanged_max = limits::decisions_per_key_max / 2;

static_assert(kept_unchanged_max > 1);

}  // namespace

bool DecisionLog::Lock::wait(Bucket& bucket, bool for_long) noexcept {
  constexpr unsigned spins_max = 200;  // some microseconds: longer than a copy of a bucket takes
  for (unsigned spins = 1;; ++spins) {
    // mo: acquire [decisions.lock]: what the last holder wrote is read.
    if (bucket.lock.exchange(1, std::memory_order_acquire) == 0) return true;
    if (spins < spins_max) continue;
    if (!for_long) return false;
    std::this_thread::yield();
  }
}

DecisionLog::~DecisionLog() {
  if (memory_ != nullptr) munmap(memory_, bytes());
}

bool DecisionLog::start(std::size_t bytes) noexcept {
  const std::size_t count = std::max<std::size_t>(bytes / bucket_bytes, 1);
  // Zero pages, of which the system gives each when it is first used: a bucket of zeros is empty.
  void* const memory = mmap(nullptr, count * bucket_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  // Each note is at a random place. Failure of the advice only costs speed.
  madvise(memory, count * bucket_bytes, MADV_HUGEPAGE);
  memory_ = static_cast<std::byte*>(memory);
  bucket_count_ = count;
  return true;
}

bool DecisionLog::merge(Place& newest, const Place& fresh) noexcept {
  const bool same = newest.call == fresh.call && newest.answer == fresh.answer &&
                    newest.flags == fresh.flags && newest.error == fresh.error &&
                    newest.epoch == fresh.epoch && newest.numbers == fresh.numbers &&
                    newest.met == fresh.met && newest.met_epoch == fresh.met_epoch &&
                    newest.changed == fresh.changed && newest.owner() == fresh.owner() &&
                    newest.client() == fresh.client() && newest.met_owner() == fresh.met_owner();
  if (!same) return false;
  newest.last_ms = std::max(newest.last_ms, fresh.last_ms);
  newest.span_ms = fresh.span_ms;
  newest.met_lease_ms = fresh.met_lease_ms;
  ++newest.times;
  return true;
}

bool DecisionLog::merge_newest(Bucket& bucket, unsigned places, const Place& fresh) noexcept {
  std::size_t newest = static_cast<std::size_t>(std::countr_zero(places));
  if ((places & (places - 1)) != 0) {
    std::size_t i = bucket.count;
    do {
      newest = bucket.order.at(--i);
    } while ((places >> newest & 1) == 0);
  }
  return merge(bucket.places[newest], fresh);
}

std::optional<std::size_t> DecisionLog::bound_of(const Bucket& bucket, unsigned places,
                                                 bool changes) noexcept {
  std::size_t of_key = 0;
  std::size_t unchanged = 0;
  std::size_t oldest = 0;            // of the key, in `order`
  std::size_t oldest_unchanged = 0;  // likewise
  for (std::size_t i = bucket.count; i-- > 0;) {
    const std::uint8_t place = bucket.order.at(i);
    if ((places >> place & 1) == 0) continue;
    ++of_key;
    oldest = i;
    if (bucket.places[place].changed) continue;
    ++unchanged;
    oldest_unchanged = i;
  }
  if (!changes && unchanged >= kept_unchanged_max) return oldest_unchanged;
  if (of_key >= limits::decisions_per_key_max) return oldest;
  return std::nullopt;
}

DecisionFacts DecisionLog::facts_of(const Place& place) noexcept {
  DecisionFacts facts;
  facts.call = place.call;
  facts.answer = place.answer;
  facts.flags = place.flags;
  facts.changed = place.changed;
  facts.error = static_cast<ErrorCode>(place.error);
  facts.numbers = place.numbers;
  facts.epoch = place.epoch;
  facts.at = Timestamp{Millis{place.first_ms}};
  facts.span = Millis{place.span_ms};
  facts.met = place.met;
  facts.met_epoch = place.met_epoch;
  facts.met_lease_until = Timestamp{Millis{place.met_lease_ms}};
  facts.owner = place.owner();
  facts.client = place.client();
  facts.met_owner = place.met_owner();
  return facts;
}

std::size_t DecisionLog::copy(
    std::uint64_t hash, std::span<Place, limits::decisions_per_key_max> found) const noexcept {
  Bucket& bucket = bucket_of(hash);
  std::size_t count = 0;
  const Lock lock{bucket, true};
  for (std::size_t i = 0; i < bucket.count; ++i) {
    const Place& place = bucket.places[bucket.order.at(i)];
    if (place.hash == hash && count < found.size()) found[count++] = place;
  }
  return count;
}

}  // namespace semel::engine
