#include "net/server/waker.hpp"

#include <sys/eventfd.h>

#include <new>
#include <utility>

#include "base/assert.hpp"

namespace semel::net {

WakeQueue::WakeQueue() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void WakeQueue::put(ConnectionName name) noexcept {
  const base::MutexLock lock{mutex_};
  if (closed_) return;
  const bool is_quiet = names_.empty() && !lost_one_;
  try {
    names_.push_back(name);
  } catch (const std::bad_alloc&) {
    lost_one_ = true;
  }
  // Under the mutex, so that close() cannot come between.
  SEMEL_ASSERT(event_.get() >= 0);
  if (is_quiet) eventfd_write(event_.get(), 1);
}

void WakeQueue::ring() noexcept {
  const base::MutexLock lock{mutex_};
  if (!closed_) eventfd_write(event_.get(), 1);
}

bool WakeQueue::pop_all(std::vector<ConnectionName>& names) noexcept {
  names.clear();
  const base::MutexLock lock{mutex_};
  names.swap(names_);
  eventfd_t ignored = 0;
  eventfd_read(event_.get(), &ignored);
  return !std::exchange(lost_one_, false);
}

void WakeQueue::close() noexcept {
  const base::MutexLock lock{mutex_};
  closed_ = true;
  names_.clear();
  event_.reset();
}

}  // namespace semel::net
