#include "net/server/waker.hpp"

#include <sys/eventfd.h>

#include "base/assert.hpp"

namespace semel::net {

WakeQueue::WakeQueue() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void WakeQueue::put(ConnectionName name) noexcept {
  const base::MutexLock lock{mutex_};
  if (closed_) return;
  names_.push_back(name);
  // Under the mutex, so that close() cannot come between.
  SEMEL_ASSERT(event_.get() >= 0);
  if (names_.size() == 1) eventfd_write(event_.get(), 1);
}

void WakeQueue::ring() noexcept {
  const base::MutexLock lock{mutex_};
  if (!closed_) eventfd_write(event_.get(), 1);
}

void WakeQueue::pop_all(std::vector<ConnectionName>& names) {
  names.clear();
  const base::MutexLock lock{mutex_};
  names.swap(names_);
  eventfd_t ignored = 0;
  eventfd_read(event_.get(), &ignored);
}

void WakeQueue::close() noexcept {
  const base::MutexLock lock{mutex_};
  closed_ = true;
  names_.clear();
  event_.reset();
}

}  // namespace semel::net
