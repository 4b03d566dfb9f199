// Whether a node may still propose what makes the group's state larger. Once it is in the
// replicated log it is too late: a node that cannot apply an entry has to stop, and with the same
// limit all others do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "semel/clock.hpp"
#include "semel/engine.hpp"

namespace semel::replication {

/// On top of the operator's limit: for commands that were admitted while there was memory and are
/// not applied yet.
inline constexpr std::size_t memory_reserve = std::size_t{256} << 20;

/// Thread-safe.
class MemoryGate {
 public:
  /// Of an engine whose limit has the reserve in it.
  explicit MemoryGate(Engine& engine) noexcept : engine_(engine) {}

  /// Looks every few milliseconds. `besides`: memory that the engine does not count.
  [[nodiscard]] bool is_full(std::size_t besides) {
    constexpr std::int64_t every_ms = 5;
    const std::int64_t now = clock_.now().time_since_epoch().count();
    // mo: relaxed: figures of a moment ago, by any thread
    if (looked_.load(std::memory_order_relaxed) + every_ms < now) {
      looked_.store(now, std::memory_order_relaxed);  // mo: relaxed: as above
      const Stats stats = engine_.stats();
      // Freed memory is in lists for reuse; but the next record may not fit there.
      const std::uint64_t held =
          stats.bytes_records + stats.bytes_table + stats.bytes_wheel + besides;
      const bool full = held + memory_reserve > stats.bytes_limit ||
                        stats.bytes_used + besides + memory_reserve / 4 > stats.bytes_limit;
      is_full_.store(full, std::memory_order_relaxed);  // mo: relaxed: as above
    }
    return is_full_.load(std::memory_order_relaxed);  // mo: relaxed: as above
  }

 private:
  Engine& engine_;
  const SystemClock clock_;
  std::atomic<std::int64_t> looked_{0};
  std::atomic<bool> is_full_{false};
};

}  // namespace semel::replication
