#include "tools/semel/node/node_pulse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/assert.hpp"

namespace semel::tool {

void Pulse::beat(std::size_t place, Time now) noexcept {
  SEMEL_ASSERT(place < beats_.size());
  const std::int64_t at = std::max<std::int64_t>(now.time_since_epoch().count(), 1);
  beats_[place].store(at, std::memory_order_relaxed);  // mo: relaxed: see beats_
}

Status Pulse::check(Time now, Duration limit) const {
  std::size_t worst = 0;
  Duration longest = limit;
  bool found = false;
  for (std::size_t place = 0; place < beats_.size(); ++place) {
    const std::int64_t at = beats_[place].load(std::memory_order_relaxed);  // mo: relaxed: as above
    if (at == 0) continue;
    const Duration silence = now - Time{Duration{at}};
    if (silence <= longest) continue;
    worst = place;
    longest = silence;
    found = true;
  }
  if (!found) return Done{};
  const std::string name = worst == ticker ? "the ticker" : fmt::format("io thread {}", worst);
  return Error{ErrorCode::timed_out, fmt::format("{} has not answered for {:.1f} s", name,
                                                 std::chrono::duration<double>(longest).count())};
}

}  // namespace semel::tool
