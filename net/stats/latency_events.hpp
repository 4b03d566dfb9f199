// LATENCY: of each kind of event the worst of each second in which it took longer than a limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"

namespace semel::net {

struct LatencySample {
  std::int64_t unix_seconds = 0;
  std::int64_t ms = 0;
};

struct LatencyEvent {
  std::string name{};
  std::vector<LatencySample> samples{};  ///< the oldest first
  std::int64_t worst_ms = 0;
};

class LatencyEvents {
 public:
  static constexpr std::size_t samples_max = 160;

  /// 0: nothing is watched.
  void set_limit_ms(std::int64_t ms) noexcept {
    limit_ms_.store(ms, std::memory_order_relaxed);  // mo: relaxed: takes effect soon
  }
  [[nodiscard]] std::int64_t limit_ms() const noexcept {
    return limit_ms_.load(std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  [[nodiscard]] bool takes(std::int64_t ns) const noexcept {
    const std::int64_t limit = limit_ms();
    return limit > 0 && ns / 1'000'000 >= limit;
  }

  /// `name` comes from the few that the code names, so they have no bound of their own.
  void add(std::string_view name, std::int64_t unix_seconds, std::int64_t ms);
  [[nodiscard]] std::vector<LatencyEvent> all() const;
  /// False: there was none.
  bool clear(std::string_view name);
  std::size_t clear();

 private:
  struct Series {
    std::deque<LatencySample> samples;
    std::int64_t worst_ms = 0;
  };
  std::atomic<std::int64_t> limit_ms_{0};
  mutable base::Mutex mutex_;
  std::map<std::string, Series, std::less<>> events_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::net
