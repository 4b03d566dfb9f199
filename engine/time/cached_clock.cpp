#include "semel/cached_clock.hpp"

#include <algorithm>

namespace semel {

CachedClock::CachedClock(Millis every) {
  const Millis pause = std::clamp(every, Millis{1}, Millis{100});
  renew();
  thread_ = std::thread{[this, pause] {
    std::unique_lock lock{mutex_};
    while (!stopped_.wait_for(lock, pause, [this] { return stop_; })) renew();
  }};
}

CachedClock::~CachedClock() {
  {
    const std::lock_guard lock{mutex_};
    stop_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

}  // namespace semel
