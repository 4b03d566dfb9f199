#include "net/stats/latency_events.hpp"

#include <algorithm>

namespace semel::net {

void LatencyEvents::add(std::string_view name, std::int64_t unix_seconds, std::int64_t ms) {
  const base::MutexLock lock{mutex_};
  Series& series = events_.try_emplace(std::string{name}).first->second;
  series.worst_ms = std::max(series.worst_ms, ms);
  if (!series.samples.empty() && series.samples.back().unix_seconds == unix_seconds) {
    series.samples.back().ms = std::max(series.samples.back().ms, ms);
    return;
  }
  series.samples.push_back({unix_seconds, ms});
  if (series.samples.size() > samples_max) series.samples.pop_front();
}

std::vector<LatencyEvent> LatencyEvents::all() const {
  const base::MutexLock lock{mutex_};
  std::vector<LatencyEvent> found;
  for (const auto& [name, series] : events_) {
    found.push_back({name, {series.samples.begin(), series.samples.end()}, series.worst_ms});
  }
  return found;
}

bool LatencyEvents::clear(std::string_view name) {
  const base::MutexLock lock{mutex_};
  const auto found = events_.find(name);
  if (found == events_.end()) return false;
  events_.erase(found);
  return true;
}

std::size_t LatencyEvents::clear() {
  const base::MutexLock lock{mutex_};
  const std::size_t count = events_.size();
  events_.clear();
  return count;
}

}  // namespace semel::net
