// The work: keys and values made from an index, and the orders in which they are asked for.
//
// Keys are computed, not stored: an array of 10 million keys would add its own cache misses to
// every map's figures.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/random.hpp"
#include "semel/types.hpp"

namespace semel::bench {

/// 32 bytes that look random.
using Key = std::array<std::uint64_t, 4>;

inline constexpr std::uint64_t work_seed = 0x5e3e'1000'2026'0001;

[[nodiscard]] inline Key key_of(std::uint64_t index) noexcept {
  constexpr std::uint64_t step = 0x9e37'79b9'7f4a'7c15;
  const std::uint64_t at = work_seed + index * 4 * step;
  return {base::mix_bits(at + step), base::mix_bits(at + 2 * step), base::mix_bits(at + 3 * step),
          base::mix_bits(at + 4 * step)};
}

/// What the record of a key must hold; a repeat that returns anything else stops the run.
[[nodiscard]] constexpr std::uint64_t value_of(std::uint64_t index) noexcept {
  return index * 0x2545'f491'4f6c'dd1d + 1;
}

[[nodiscard]] inline Bytes bytes_of(const Key& key) noexcept {
  return {reinterpret_cast<const char*>(key.data()), sizeof(key)};
}
[[nodiscard]] inline Bytes bytes_of(const std::uint64_t& value) noexcept {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
[[nodiscard]] inline std::uint64_t number_of(Bytes bytes) noexcept {
  std::uint64_t value = 0;
  if (bytes.size() == sizeof(value)) std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

/// The `i`th uniform choice of one of `count` things (< 2^32) by `thread`.
[[nodiscard]] inline std::uint64_t uniform(std::uint64_t i, unsigned thread,
                                           std::uint64_t count) noexcept {
  const std::uint64_t random = base::mix_bits(work_seed ^ (std::uint64_t{thread} << 56) ^ (i + 1));
  return ((random >> 32) * count) >> 32;
}

/// Zipf ranks 0..count-1 by rejection-inversion (Hoermann and Derflinger, 1996): no table.
class Zipf {
 public:
  Zipf(std::uint64_t count, double exponent)
      : count_(static_cast<double>(count)),
        exponent_(exponent),
        high_(area(count_ + 0.5)),
        low_(area(1.5) - 1),
        accept_(2 - area_inverse(area(2.5) - std::pow(2, -exponent))) {}

  /// `random` gives the next 64 random bits.
  template <class Random>
  [[nodiscard]] std::uint64_t operator()(Random&& random) const {
    for (;;) {
      const double share = static_cast<double>(random() >> 11) * 0x1.0p-53;
      const double at = high_ + share * (low_ - high_);
      const double x = area_inverse(at);
      const double rank = std::fmin(std::fmax(std::floor(x + 0.5), 1), count_);
      if (rank - x <= accept_ || at >= area(rank + 0.5) - std::pow(rank, -exponent_)) {
        return static_cast<std::uint64_t>(rank) - 1;
      }
    }
  }

 private:
  /// Integral of x^-exponent up to a constant, and back.
  [[nodiscard]] double area(double x) const {
    return std::expm1((1 - exponent_) * std::log(x)) / (1 - exponent_);
  }
  [[nodiscard]] double area_inverse(double y) const {
    return std::exp(std::log1p((1 - exponent_) * y) / (1 - exponent_));
  }

  double count_;
  double exponent_;
  double high_;
  double low_;
  double accept_;
};

}  // namespace semel::bench
