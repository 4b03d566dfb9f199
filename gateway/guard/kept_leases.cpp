#include "gateway/guard/kept_leases.hpp"

#include <utility>

#include "gateway/guard/request_rules.hpp"

namespace semel::gateway {

void KeptLeases::keep(const Work& work, Watchdog::Guard&& guard) {
  const base::MutexLock lock{mutex_};
  if (!is_closed_) kept_.insert_or_assign(Name{work.route, work.epoch, work.key}, std::move(guard));
}

void KeptLeases::stop(const Work& work) {
  Watchdog::Guard ended;  // destroyed without the lock: it may wait for a renewal
  const base::MutexLock lock{mutex_};
  const auto found = kept_.find(std::tuple{work.route, work.epoch, std::string_view{work.key}});
  if (found == kept_.end()) return;
  ended = std::move(found->second);
  kept_.erase(found);
}

void KeptLeases::clear() {
  decltype(kept_) ended;  // destroyed without the lock
  const base::MutexLock lock{mutex_};
  is_closed_ = true;
  ended.swap(kept_);
}

}  // namespace semel::gateway
