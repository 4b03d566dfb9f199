// Seeded randomness of the proofs. The same seed gives the same run with every compiler.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "tests/proofs/model/oracle.hpp"

namespace semel::proofs {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// 0..count - 1.
  std::uint64_t below(std::uint64_t count) { return engine_() % count; }
  std::uint64_t between(std::uint64_t first, std::uint64_t last) {
    return first + below(last - first + 1);
  }
  /// True `part` times in `whole`.
  bool chance(std::uint64_t part, std::uint64_t whole) { return below(whole) < part; }
  std::uint64_t bits() { return engine_(); }

  template <class T, std::size_t Count>
  const T& pick(const std::array<T, Count>& choices) {
    return choices[below(Count)];
  }

  /// A duration: mostly a few milliseconds, now and then up to `longest`, each size as likely.
  Ms duration(Ms longest) {
    if (chance(2, 3)) return static_cast<Ms>(between(1, 20));
    Ms ceiling = 20;
    const std::uint64_t steps = below(15);
    for (std::uint64_t i = 0; i < steps && ceiling < longest; ++i) ceiling *= 7;
    if (ceiling > longest) ceiling = longest;
    return static_cast<Ms>(between(1, static_cast<std::uint64_t>(ceiling)));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace semel::proofs
