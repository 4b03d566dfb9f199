#include "engine/types/random_picks.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace semel::engine {

std::vector<std::size_t> Picks::some(std::size_t size, std::size_t count) {
  SEMEL_ASSERT(count <= size);
  if (count == 1) return {below(size)};  // the same pick, without a table
  std::vector<std::size_t> chosen;
  chosen.reserve(count);
  // Floyd: the choices are uniform as a whole, but which is where is not.
  std::unordered_set<std::size_t> seen;
  for (std::size_t last = size - count; last < size; ++last) {
    const std::size_t drawn = below(last + 1);
    const std::size_t taken = seen.insert(drawn).second ? drawn : last;
    seen.insert(taken);
    chosen.push_back(taken);
  }
  for (std::size_t left = chosen.size(); left > 1; --left) {
    std::swap(chosen[left - 1], chosen[below(left)]);
  }
  return chosen;
}

}  // namespace semel::engine
