// Iterations over members that come and go between the calls: members in the order of a hash, and
// the cursor a place in it. A member that is there from the first call to the last is visited,
// once, whatever becomes of its score and of other members; nothing is kept between the calls.
//
// A call looks at all members, so it visits a 64th of them at least: the whole iteration costs at
// most 64 walks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "semel/types.hpp"

namespace semel::engine {

/// The part of the order that one call visits: places from `from` to `last`.
struct ScanStep {
  std::uint64_t from = 0;
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t next = 0;  ///< the cursor that the client gets; 0: that was all

  [[nodiscard]] bool has(Bytes member) const noexcept;
};

/// `count`: about how many of `size` members are wanted. Any cursor is good.
[[nodiscard]] ScanStep scan_step(std::uint64_t cursor, std::size_t size,
                                 std::size_t count) noexcept;

}  // namespace semel::engine
