#include "engine/types/set_pop.hpp"

#include <algorithm>
#include <vector>

#include "engine/types/random_picks.hpp"

namespace semel::engine {

void pop_members(ObjectEdit& set, std::size_t count, std::uint64_t random, ByteList& popped) {
  const std::size_t taken = std::min(count, set.size());
  if (taken == 1) {  // as most are: the same pick, without lists
    const std::size_t rank = Picks{random}.below(set.size());
    popped.append(set.at(rank).key);
    return set.erase_at(rank);
  }
  std::vector<std::size_t> ranks = Picks{random}.some(set.size(), taken);
  std::sort(ranks.begin(), ranks.end());
  for (const std::size_t rank : ranks) popped.append(set.at(rank).key);
  for (std::size_t i = ranks.size(); i > 0;) {
    const std::size_t end = i--;
    while (i > 0 && ranks[i - 1] + 1 == ranks[i]) --i;
    set.erase_range(ranks[i], ranks[end - 1] + 1);
  }
}

}  // namespace semel::engine
