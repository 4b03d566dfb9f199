// Which keys may be evicted and in which order: the terms that an engine is given, and the pure
// functions that they need. See docs/decisions/0085-eviction.md.
//
// A use of a key is a second, or a logarithmic counter and the minute of its last decay, both in 24
// bits, with the arithmetic of redis-server: OBJECT IDLETIME and OBJECT FREQ answer by them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "semel/types.hpp"

namespace semel::engine {

enum class EvictionOrder : std::uint8_t { none, lru, lfu, random, ttl };

struct EvictionTerms {
  EvictionOrder order = EvictionOrder::none;
  bool only_with_ttl = false;   ///< keys without a ttl stay
  std::uint16_t databases = 0;  ///< bit i: database i, as clients name it, is a cache
  unsigned samples = 5;         ///< keys that are compared for each that goes
  std::uint64_t lfu_log_factor = 10;
  std::uint64_t lfu_decay_minutes = 1;  ///< 0: counters do not decay
  std::uint64_t limit_bytes = 0;        ///< of counted_bytes(); 0: none beside the engine's
  std::uint64_t seed = 0;               ///< of the choice of samples; 0: any

  [[nodiscard]] bool evicts() const noexcept {
    return order != EvictionOrder::none && databases != 0;
  }
};

namespace use {

constexpr std::uint32_t mask = (1U << 24) - 1;
constexpr std::uint32_t counter_first = 5;  // of a new key, so that it is not the next to go
constexpr std::uint32_t counter_max = 255;

constexpr std::uint32_t second_of(Timestamp now) noexcept {
  return static_cast<std::uint32_t>(now.time_since_epoch().count() / 1'000) & mask;
}
constexpr std::uint32_t minute_of(Timestamp now) noexcept {
  return static_cast<std::uint32_t>(now.time_since_epoch().count() / 60'000) & 0xffff;
}
/// Seconds since `second`; it wraps around after 194 days, as in redis-server.
constexpr std::uint32_t idle_of(std::uint32_t second, Timestamp now) noexcept {
  return (second_of(now) - second) & mask;
}

constexpr std::uint32_t pack(std::uint32_t minute, std::uint32_t counter) noexcept {
  return (minute & 0xffff) << 8 | counter;
}
/// The counter of a packed use, less what time has taken from it.
constexpr std::uint32_t counter_of(std::uint32_t packed, Timestamp now,
                                   std::uint64_t decay_minutes) noexcept {
  const std::uint32_t counter = packed & 0xff;
  if (decay_minutes == 0) return counter;
  const std::uint64_t passed = ((minute_of(now) - (packed >> 8)) & 0xffff) / decay_minutes;
  return passed >= counter ? 0 : counter - static_cast<std::uint32_t>(passed);
}
/// After one more use. `random`: 32 random bits. The larger it is, the rarer it grows.
constexpr std::uint32_t counted(std::uint32_t counter, std::uint64_t log_factor,
                                std::uint32_t random) noexcept {
  if (counter >= counter_max) return counter_max;
  const std::uint64_t above = counter > counter_first ? counter - counter_first : 0;
  // One in above * log_factor + 1; the factor is bounded, so that the product is.
  const std::uint64_t one_in = above * std::min<std::uint64_t>(log_factor, 1U << 31) + 1;
  return random % one_in == 0 ? counter + 1 : counter;
}

}  // namespace use
}  // namespace semel::engine
