#include "engine/decisions/decision_log.hpp"

#include <sys/mman.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "base/assert.hpp"
#include "engine/rules/bytes.hpp"

namespace semel::engine {
namespace {

constexpr std::size_t kept_unchanged_max = limits::decisions_per_key_max / 2;
constexpr unsigned spins_max = 200;  // some microseconds: longer than a copy of a bucket takes

static_assert(kept_unchanged_max > 1);

std::uint16_t tag_of(std::uint64_t hash) noexcept {
  return static_cast<std::uint16_t>(hash);
}

/// The places with the tag of this hash, as bits.
unsigned likely_in(const std::uint16_t (&tags)[DecisionLog::place_count + 1],
                   std::uint64_t hash) noexcept {
#if defined(__SSE2__)
  const __m128i wanted = _mm_set1_epi16(static_cast<short>(tag_of(hash)));
  const auto* const at = reinterpret_cast<const __m128i*>(tags);
  return static_cast<unsigned>(
      _mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(_mm_loadu_si128(at), wanted),
                                        _mm_cmpeq_epi16(_mm_loadu_si128(at + 1), wanted))));
#else
  unsigned likely = 0;
  for (unsigned i = 0; i < DecisionLog::place_count; ++i) {
    likely |= static_cast<unsigned>(tags[i] == tag_of(hash)) << i;
  }
  return likely;
#endif
}

}  // namespace

/// Holds a bucket, or not if it stays locked.
class DecisionLog::Lock {
 public:
  explicit Lock(Bucket& bucket, bool waits = false) noexcept : bucket_(bucket) {
    for (unsigned spins = 0;; ++spins) {
      // mo: acquire [decisions.lock]: what the last holder wrote is read.
      if (bucket_.lock.exchange(1, std::memory_order_acquire) == 0) break;
      if (spins < spins_max) continue;
      if (!waits) return;
      std::this_thread::yield();
    }
    held_ = true;
  }
  ~Lock() {
    // mo: release [decisions.lock]: the next holder sees the writes.
    if (held_) bucket_.lock.store(0, std::memory_order_release);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return held_; }

 private:
  Bucket& bucket_;
  bool held_ = false;
};

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

bool DecisionLog::merge(Place& newest, const DecisionFacts& facts) noexcept {
  if (newest.call != facts.call || newest.answer != facts.answer) return false;
  const DecisionFacts known = facts_of(newest);
  const bool same = known.flags == facts.flags && known.error == facts.error &&
                    known.epoch == facts.epoch && known.attempt == facts.attempt &&
                    known.met == facts.met && known.met_epoch == facts.met_epoch &&
                    known.changed == facts.changed && known.owner == facts.owner &&
                    known.client == facts.client.substr(0, client_bytes_max) &&
                    known.met_owner == facts.met_owner;
  if (!same) return false;
  newest.last_ms = std::max(newest.last_ms, facts.at.time_since_epoch().count());
  newest.span_ms = facts.span.count();
  newest.met_lease_ms = facts.met_lease_until.time_since_epoch().count();
  ++newest.times;
  return true;
}

unsigned DecisionLog::places_of(const Bucket& bucket, std::uint64_t hash) noexcept {
  unsigned found = 0;
  for (unsigned likely = likely_in(bucket.tags, hash) & ((1U << bucket.count) - 1); likely != 0;
       likely &= likely - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(likely));
    if (bucket.places[i].hash == hash) found |= 1U << i;
  }
  return found;
}

std::uint8_t DecisionLog::newest_of(const Bucket& bucket, unsigned places) noexcept {
  if ((places & (places - 1)) == 0) [[likely]]
    return static_cast<std::uint8_t>(std::countr_zero(places));
  std::size_t i = bucket.count;
  do {
    --i;
  } while ((places >> bucket.order.at(i) & 1) == 0);
  return bucket.order.at(i);
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

inline std::uint8_t DecisionLog::choose_place(Bucket& bucket, unsigned places,
                                              bool changes) noexcept {
  // A single place is below both bounds.
  const bool is_bounded = (places & (places - 1)) != 0;
  const std::optional<std::size_t> bound =
      is_bounded ? bound_of(bucket, places, changes) : std::nullopt;
  if (!bound && bucket.count < place_count) {
    const std::uint8_t place = bucket.count++;
    bucket.order.append(place, place);
    return place;
  }
  const std::size_t victim = bound.value_or(0);
  const std::uint8_t place = bucket.order.at(victim);
  bucket.order.move_to_end(victim, bucket.count);
  return place;
}

inline void DecisionLog::write(Place& place, std::uint64_t hash,
                               const DecisionFacts& facts) noexcept {
  place.hash = hash;
  place.first_ms = place.last_ms = facts.at.time_since_epoch().count();
  place.times = 1;
  place.epoch = facts.epoch;
  place.met_epoch = facts.met_epoch;
  place.met_lease_ms = facts.met_lease_until.time_since_epoch().count();
  place.span_ms = facts.span.count();
  place.attempt = facts.attempt;
  place.error = static_cast<std::uint16_t>(facts.error);
  place.call = facts.call;
  place.answer = facts.answer;
  place.flags = facts.flags;
  place.met = facts.met;
  place.changed = facts.changed;
  char* to = place.text;
  const auto append = [&to](Bytes text, std::size_t bytes_max) {
    const std::size_t size = std::min(text.size(), bytes_max);
    if (size != 0) copy_bytes(to, text.data(), size);
    to += size;
    return static_cast<std::uint8_t>(size);
  };
  place.owner_size = append(facts.owner, limits::owner_label_max);
  place.client_size = append(facts.client, client_bytes_max);
  place.met_owner_size = append(facts.met_owner, limits::owner_label_max);
}

DecisionFacts DecisionLog::facts_of(const Place& place) noexcept {
  DecisionFacts facts;
  facts.call = place.call;
  facts.answer = place.answer;
  facts.flags = place.flags;
  facts.changed = place.changed;
  facts.error = static_cast<ErrorCode>(place.error);
  facts.attempt = place.attempt;
  facts.epoch = place.epoch;
  facts.at = Timestamp{Millis{place.first_ms}};
  facts.span = Millis{place.span_ms};
  facts.met = place.met;
  facts.met_epoch = place.met_epoch;
  facts.met_lease_until = Timestamp{Millis{place.met_lease_ms}};
  facts.owner = {place.text, place.owner_size};
  facts.client = {place.text + place.owner_size, place.client_size};
  facts.met_owner = {place.text + place.owner_size + place.client_size, place.met_owner_size};
  return facts;
}

void DecisionLog::add(std::uint64_t hash, const DecisionFacts& facts) noexcept {
  Bucket& bucket = bucket_of(hash);
  const Lock lock{bucket};
  if (!lock) {
    missed_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
    return;
  }
  SEMEL_ASSERT(bucket.count <= place_count);
  const unsigned places = places_of(bucket, hash);
  if (places != 0 && merge(bucket.places[newest_of(bucket, places)], facts)) return;
  const std::uint8_t place = choose_place(bucket, places, facts.changed);
  bucket.tags[place] = tag_of(hash);
  write(bucket.places[place], hash, facts);
  const std::uint8_t next = bucket.count < place_count ? bucket.count : bucket.order.at(0);
  bucket.next.store(next, std::memory_order_relaxed);  // mo: relaxed: a hint for fetch_place()
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
