// A longest common subsequence of two strings, as LCS finds it: of several, always the same one.
//
// The table of lengths is filled row by row, of which one is kept; of each cell stays one bit, the
// way back. So n x m cells take n x m / 8 bytes, and 4 times the length of the shorter string.
// Source: Wagner and Fischer, The string-to-string correction problem, 1974.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "semel/types.hpp"

namespace semel::engine {

/// A run of equal bytes: `length` of them, at `one` in the first string and at `other` in the
/// second.
struct CommonRun {
  std::uint32_t one;
  std::uint32_t other;
  std::uint32_t length;
};

struct CommonSubsequence {
  std::uint32_t length = 0;
  std::string bytes{};
  std::vector<CommonRun> runs{};  ///< from the last to the first
};

/// Time and memory: see above; the caller bounds the product of the lengths. std::bad_alloc.
[[nodiscard]] std::uint32_t common_length(Bytes one, Bytes other);
[[nodiscard]] CommonSubsequence common_subsequence(Bytes one, Bytes other);

}  // namespace semel::engine
