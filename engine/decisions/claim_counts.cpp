#include "engine/decisions/claim_counts.hpp"

#include <cstring>
#include <new>

#include "base/assert.hpp"

namespace semel::engine {

bool ClaimCounts::start() noexcept {
  lanes_.reset(new (std::nothrow) Lane[lane_count]{});
  return lanes_ != nullptr;
}

ClaimCounts::Slot ClaimCounts::slot_of(Bytes name) noexcept {
  SEMEL_ASSERT(name.size() <= limits::namespace_name_max);
  const base::MutexLock lock{mutex_};
  const std::uint32_t used = used_.load(std::memory_order_relaxed);  // mo: relaxed: under the mutex
  for (std::uint32_t i = 0; i < used; ++i) {
    if (Bytes{names_[i].bytes, names_[i].size} == name) return static_cast<Slot>(i + 1);
  }
  if (used == names_.size()) return slot_max;
  names_[used].size = static_cast<std::uint8_t>(name.size());
  std::memcpy(names_[used].bytes, name.data(), name.size());
  used_.store(used + 1, std::memory_order_release);  // mo: release [counts.name]
  return static_cast<Slot>(used + 1);
}

std::vector<NamespaceCounts> ClaimCounts::all() const {
  const std::uint32_t used = used_.load(std::memory_order_acquire);  // mo: acquire [counts.name]
  std::vector<NamespaceCounts> all(used);
  for (std::uint32_t i = 0; i < used; ++i) all[i].name.assign(names_[i].bytes, names_[i].size);
  if (used == names_.size()) all.emplace_back();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t lane = 0; lane < lane_count; ++lane) {
      for (std::size_t which = 0; which < claim_count_count; ++which) {
        // mo: relaxed: a statistic
        all[i].counts[which] += lanes_[lane].counts[i][which].load(std::memory_order_relaxed);
      }
    }
  }
  return all;
}

}  // namespace semel::engine
