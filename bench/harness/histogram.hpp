// Latencies in fixed memory: 64 steps for each power of two, so a figure is at most 1.6 % off.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace semel::bench {

/// Percentiles of one measurement, in nanoseconds.
struct Tail {
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
  double samples = 0;
};

/// Counts values of any unit. Not thread-safe: one per thread, merged afterwards.
class Histogram {
 public:
  void add(std::uint64_t value) noexcept {
    ++counts_[index_of(value)];
    ++total_;
    max_ = std::max(max_, value);
  }

  void merge(const Histogram& other) noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
    max_ = std::max(max_, other.max_);
  }

  /// The smallest recorded step that at least `share` of all values do not exceed.
  [[nodiscard]] std::uint64_t quantile(double share) const noexcept {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > wanted) return std::min(upper_end(i), max_);
    }
    return max_;
  }

  [[nodiscard]] Tail tail(double ticks_per_ns) const noexcept {
    const auto ns = [&](std::uint64_t ticks) { return static_cast<double>(ticks) / ticks_per_ns; };
    return {.p50 = ns(quantile(0.5)),
            .p99 = ns(quantile(0.99)),
            .p999 = ns(quantile(0.999)),
            .max = ns(max_),
            .samples = static_cast<double>(total_)};
  }

 private:
  static constexpr unsigned step_bits = 6;
  static constexpr std::size_t steps = std::size_t{1} << step_bits;

  static std::size_t index_of(std::uint64_t value) noexcept {
    if (value < steps) return static_cast<std::size_t>(value);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - step_bits - 1;
    return (std::size_t{shift} + 1) * steps + static_cast<std::size_t>((value >> shift) - steps);
  }
  static std::uint64_t upper_end(std::size_t index) noexcept {
    if (index < steps) return index;
    const std::size_t shift = index / steps - 1;
    return ((index % steps + steps + 1) << shift) - 1;
  }

  std::array<std::uint64_t, (64 - step_bits + 1) * steps> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace semel::bench
