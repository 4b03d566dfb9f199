// DecisionLog::add() in the frame of its caller, which writes the facts of a decision where they
// stay. For the calls that are made often; all others call the one in decision_log.cpp.
#pragma once

#include <bit>
#include <optional>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/assert.hpp"
#include "engine/decisions/decision_log.hpp"

namespace semel::engine {

[[nodiscard]] constexpr std::uint16_t decision_tag_of(std::uint64_t hash) noexcept {
  return static_cast<std::uint16_t>(hash);
}

[[gnu::always_inline]] inline unsigned DecisionLog::places_of(const Bucket& bucket,
                                                              std::uint64_t hash) noexcept {
  unsigned likely = 0;
#if defined(__SSE2__)
  const __m128i wanted = _mm_set1_epi16(static_cast<short>(decision_tag_of(hash)));
  const auto* const at = reinterpret_cast<const __m128i*>(bucket.tags);
  likely = static_cast<unsigned>(
      _mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(_mm_loadu_si128(at), wanted),
                                        _mm_cmpeq_epi16(_mm_loadu_si128(at + 1), wanted))));
#else
  for (unsigned i = 0; i < DecisionLog::place_count; ++i) {
    likely |= static_cast<unsigned>(bucket.tags[i] == decision_tag_of(hash)) << i;
  }
#endif
  unsigned found = 0;
  for (likely &= (1U << bucket.count) - 1; likely != 0; likely &= likely - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(likely));
    if (bucket.places[i].hash == hash) found |= 1U << i;
  }
  return found;
}

[[gnu::always_inline]] inline std::uint8_t DecisionLog::choose_place(Bucket& bucket,
                                                                     unsigned places,
                                                                     bool changes) noexcept {
  // A single place is below both bounds.
  const bool is_bounded = (places & (places - 1)) != 0;
  const std::optional<std::size_t> bound =
      is_bounded ? bound_of(bucket, places, changes) : std::nullopt;
  if (!bound && bucket.count < place_count) {
    return bucket.count++;
  }
  const std::size_t victim = bound.value_or(0);
  const std::uint8_t place = bucket.order.at(victim);
  bucket.order.move_to_end(victim, bucket.count);
  return place;
}

/// The decision as add_here() would write it. `fill` by value: what it holds need not lie in memory
/// for the calls that do not come here.
template <class Fill>
[[gnu::noinline]] DecisionLog::Place fresh_place(DecisionCall call, bool changes,
                                                 Fill fill) noexcept {
  DecisionLog::Place fresh;
  fresh.call = call;
  fresh.changed = changes;
  fill(fresh);
  return fresh;
}

template <class Fill>
[[gnu::always_inline]] inline void DecisionLog::add_here(Bucket& bucket, std::uint64_t hash,
                                                         DecisionCall call, bool changes,
                                                         const Fill& fill) noexcept {
  const Lock lock{bucket};
  if (!lock) [[unlikely]]
    return miss();
  SEMEL_ASSERT(bucket.count <= place_count);
  const unsigned places = places_of(bucket, hash);
  const bool is_single = (places & (places - 1)) == 0;
  // A single place of another call is no repeat.
  if (places != 0 && !(is_single && bucket.places[std::countr_zero(places)].call != call)) {
    if (merge_newest(bucket, places, fresh_place(call, changes, fill))) return;
  }
  const std::uint8_t at = choose_place(bucket, places, changes);
  const std::uint8_t next = bucket.count < place_count ? bucket.count : bucket.order.at(0);
  bucket.next.store(next, std::memory_order_relaxed);  // mo: relaxed: a hint for fetch_place()
  bucket.tags[at] = decision_tag_of(hash);
  Place& place = bucket.places[at];
  place.hash = hash;
  place.times = 1;
  place.call = call;
  place.changed = changes;
  fill(place);
}

}  // namespace semel::engine
