#include "net/settings/memory_plan.hpp"

#include <algorithm>

#include "net/resp/text.hpp"
#include "net/settings/setting_table.hpp"
#include "semel/limits.hpp"

namespace semel::net {

std::uint16_t cache_databases_of(std::string_view text) {
  if (text == "all") return 0xffff;
  std::uint16_t databases = 0;
  for (const std::string_view word : words_of(text)) {
    const auto db = integer_of(word);
    if (db && *db >= 0 && *db < 16) databases = static_cast<std::uint16_t>(databases | 1U << *db);
  }
  return databases;
}

MemoryPlan memory_plan_of(const Settings& settings) {
  constexpr std::size_t arena_min = std::size_t{64}
                                    << 20;  // its tables have room, whatever shards is
  const auto limit = static_cast<std::size_t>(settings.integer(Setting::maxmemory));
  const bool has_caches = !settings.text(Setting::cache_databases).empty();
  MemoryPlan plan{.counts = has_caches || limit < limits::memory_bytes_min,
                  .limit_bytes = limit,
                  .arena_bytes = limit};
  if (plan.counts) {
    // What lies idle between records is not counted.
    const std::size_t whole = limit + limit / 8 + (std::size_t{2} << 20);
    plan.arena_bytes = std::clamp(whole, arena_min, limits::memory_bytes_max);
  }
  return plan;
}

}  // namespace semel::net
