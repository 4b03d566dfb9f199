// What a gateway counts. Any thread adds; the metrics page reads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace semel::gateway {

enum class Count : std::uint8_t {
  connections,
  requests,
  passed,
  guarded,
  granted,
  replayed,
  in_flight,
  mismatch,
  in_doubt,
  not_kept,
  busy,
  refused,
  bad_requests,
  upstream_failed,
  unrecorded,
  last
};

class Counters {
 public:
  void add(Count what, std::uint64_t by = 1) noexcept {
    // mo: relaxed: a figure
    counts_[static_cast<std::size_t>(what)].fetch_add(by, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t of(Count what) const noexcept {
    // mo: relaxed: as above
    return counts_[static_cast<std::size_t>(what)].load(std::memory_order_relaxed);
  }
  /// In the text form of Prometheus.
  [[nodiscard]] std::string text() const;

 private:
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Count::last)> counts_{};
};

}  // namespace semel::gateway
