// Uniform choices from one number: the same number, the same choices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.hpp"
#include "base/random.hpp"

namespace semel::engine {

class Picks {
 public:
  explicit Picks(std::uint64_t number) noexcept : state_(number) {}

  /// A number from 0 to `bound` - 1, each as likely. `bound` > 0.
  [[nodiscard]] std::size_t below(std::size_t bound) noexcept {
    SEMEL_ASSERT(bound > 0);
    // Numbers of the last, shorter row would make the first ones likelier.
    const std::uint64_t rest = (0 - std::uint64_t{bound}) % bound;
    std::uint64_t number = base::next_random(state_);
    while (number < rest) number = base::next_random(state_);
    return static_cast<std::size_t>(number % bound);
  }

  /// `count` different numbers from 0 to `size` - 1, in any order. `count` <= `size`.
  [[nodiscard]] std::vector<std::size_t> some(std::size_t size, std::size_t count);

 private:
  std::uint64_t state_;
};

}  // namespace semel::engine
