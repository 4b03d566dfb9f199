#include "engine/types/common_subsequence.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace semel::engine {

namespace {

/// Fills the table. `differs(i, j, up, left)` is called of each cell whose bytes one[i] and
/// other[j] differ, with the lengths of both without one[i], and without other[j].
template <class Differs>
std::uint32_t fill(Bytes one, Bytes other, Differs&& differs) {
  const bool swaps = one.size() < other.size();
  const Bytes rows = swaps ? other : one;
  const Bytes columns = swaps ? one : other;
  std::vector<std::uint32_t> lengths(columns.size() + 1, 0);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::uint32_t diagonal = 0;  // without both bytes
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const std::uint32_t above = lengths[column + 1];
      const std::uint32_t beside = lengths[column];
      if (rows[row] == columns[column]) {
        lengths[column + 1] = diagonal + 1;
      } else {
        lengths[column + 1] = std::max(above, beside);
        swaps ? differs(column, row, beside, above) : differs(row, column, above, beside);
      }
      diagonal = above;
    }
  }
  return lengths.back();
}

}  // namespace

std::uint32_t common_length(Bytes one, Bytes other) {
  return fill(one, other, [](std::size_t, std::size_t, std::uint32_t, std::uint32_t) {});
}

CommonSubsequence common_subsequence(Bytes one, Bytes other) {
  CommonSubsequence found;
  std::vector<bool> goes_up(one.size() * other.size());
  found.length =
      fill(one, other, [&](std::size_t i, std::size_t j, std::uint32_t up, std::uint32_t left) {
        if (up > left) goes_up[i * other.size() + j] = true;
      });
  found.bytes.reserve(found.length);
  std::size_t i = one.size();
  std::size_t j = other.size();
  bool is_in_run = false;
  while (i > 0 && j > 0) {
    if (one[i - 1] != other[j - 1]) {
      is_in_run = false;
      goes_up[(i - 1) * other.size() + j - 1] ? --i : --j;
      continue;
    }
    --i;
    --j;
    found.bytes += one[i];
    if (!is_in_run) found.runs.push_back({});
    is_in_run = true;
    CommonRun& run = found.runs.back();
    run = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j), run.length + 1};
  }
  std::ranges::reverse(found.bytes);
  return found;
}

}  // namespace semel::engine
