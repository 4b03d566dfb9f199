#include "storage/drain/drain_requests.hpp"

#include <utility>

#include "storage/log/stopwatch.hpp"

namespace semel::storage {

Status DrainRequests::drain() {
  const LogOffset used = log_.extent().used();
  // If this process has appended nothing, it has nothing to drain.
  const LogOffset target = used < log_begin_ ? 0 : used;
  LogOffset known = to_.load(std::memory_order_relaxed);  // mo: relaxed: the exchange decides
  // mo: release [storage.drain_to]
  while (known < target && !to_.compare_exchange_weak(known, target, std::memory_order_release,
                                                      std::memory_order_relaxed)) {
  }
  for (;;) {
    const std::uint32_t seen = progress_.seen();
    if (!files_.has_old_segments() && files_.drained() >= target) return Done{};
    if (has_trouble()) return Error{ErrorCode::storage_failed, trouble()};
    requested_.store(true, std::memory_order_release);  // mo: release [storage.drain_to]
    drainer_.raise();
    progress_.wait(seen, Millis{100});
  }
}

void DrainRequests::await_room(const Health& health, Millis at_most) const {
  const Stopwatch time;
  while (log_.extent().is_crowded() && time.passed() < at_most) {
    const std::uint32_t seen = progress_.seen();
    if (has_trouble() || health.has_failed()) return;
    progress_.wait(seen, Millis{20});
  }
}

bool DrainRequests::await_begun(Millis at_most) const {
  const Stopwatch time;
  while (!log_.extent().has_begun()) {
    const std::uint32_t seen = progress_.seen();
    if (time.passed() >= at_most) return false;
    progress_.wait(seen, Millis{20});
  }
  return true;
}

bool DrainRequests::take() noexcept {
  // mo: acq_rel [storage.drain_to]: the request is taken, and its target is read below
  if (!requested_.exchange(false, std::memory_order_acq_rel)) return false;
  // mo: acquire [storage.drain_to]
  return files_.has_old_segments() || files_.drained() < to_.load(std::memory_order_acquire);
}

void DrainRequests::set_status(Status status) noexcept {
  {
    const base::MutexLock lock{mutex_};
    status_ = std::move(status);
  }
  progress_.raise();
}

}  // namespace semel::storage
