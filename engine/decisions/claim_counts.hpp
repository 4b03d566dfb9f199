// How claims were answered, by namespace: a fixed number of namespaces by their own name, those
// that are claimed in first; all others together.
//
// Concurrency
//   [counts.name]  release store of used_ after a name is written pairs with the acquire load
//                  before names are read. Names are never changed.
//   The counters are relaxed: statistics. Threads use different copies, which are summed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "semel/limits.hpp"
#include "semel/stats.hpp"
#include "semel/types.hpp"

namespace semel::engine {

class ClaimCounts {
 public:
  using Slot = std::uint8_t;  // 0: none yet
  static constexpr Slot slot_max = limits::counted_namespaces_max + 1;
  static_assert(limits::counted_namespaces_max < 255);

  /// False: no memory.
  [[nodiscard]] bool start() noexcept;
  [[nodiscard]] static constexpr std::size_t bytes() noexcept { return lane_count * sizeof(Lane); }

  /// The slot of a namespace, which may be shared with others. Progress: takes a mutex.
  [[nodiscard]] Slot slot_of(Bytes name) noexcept;
  /// `thread`: any number that differs between threads. Wait-free.
  void add(Slot slot, ClaimCount which, std::size_t thread) noexcept {
    Lane& lane = lanes_[thread % lane_count];
    // mo: relaxed: a statistic
    lane.counts[slot - 1][static_cast<std::size_t>(which)].fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::vector<NamespaceCounts> all() const;

 private:
  static constexpr std::size_t lane_count = 8;
  struct alignas(64) Lane {
    std::array<std::array<std::atomic<std::uint64_t>, claim_count_count>, slot_max> counts;
  };
  struct Name {
    std::uint8_t size;
    char bytes[limits::namespace_name_max];
  };

  std::unique_ptr<Lane[]> lanes_;
  base::Mutex mutex_;  // guards name insertion
  std::array<Name, limits::counted_namespaces_max> names_{};
  std::atomic<std::uint32_t> used_{0};
};

}  // namespace semel::engine
