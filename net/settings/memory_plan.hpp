// What the settings of memory mean together: maxmemory, maxmemory-policy, cache-databases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/settings/settings.hpp"

namespace semel::net {

struct MemoryPlan {
  /// The node compares the counted bytes with maxmemory before it runs a command. Otherwise
  /// maxmemory is the limit of the engine, which refuses by itself.
  bool counts = false;
  std::size_t limit_bytes = 0;  ///< maxmemory
  std::size_t arena_bytes = 0;  ///< the limit that the engine needs, at least
};
[[nodiscard]] MemoryPlan memory_plan_of(const Settings& settings);

/// The words of the setting maxmemory-policy, in their order.
enum class MemoryPolicy : std::uint8_t {
  volatile_lru,
  volatile_lfu,
  volatile_random,
  volatile_ttl,
  allkeys_lru,
  allkeys_lfu,
  allkeys_random,
  noeviction,
};
[[nodiscard]] inline MemoryPolicy memory_policy_of(const Settings& settings) noexcept {
  return settings.choice<MemoryPolicy>(Setting::maxmemory_policy);
}
[[nodiscard]] constexpr bool is_lfu(MemoryPolicy policy) noexcept {
  return policy == MemoryPolicy::volatile_lfu || policy == MemoryPolicy::allkeys_lfu;
}

/// Bit i: database i is among those that the text of cache-databases names.
[[nodiscard]] std::uint16_t cache_databases_of(std::string_view text);

}  // namespace semel::net
