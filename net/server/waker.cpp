#include "net/server/waker.hpp"

#include <sys/eventfd.h>

namespace semel::net {

WakeQueue::WakeQueue() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void WakeQueue::put(LinkName name) noexcept {
  const std::lock_guard lock{mutex_};
  if (closed_) return;
  names_.push_back(name);
  // Under the mutex, so that close() cannot come between.
  if (names_.size() == 1) eventfd_write(event_.get(), 1);
}

void WakeQueue::take(std::vector<LinkName>& names) {
  names.clear();
  const std::lock_guard lock{mutex_};
  names.swap(names_);
  eventfd_t ignored = 0;
  eventfd_read(event_.get(), &ignored);
}

void WakeQueue::close() noexcept {
  const std::lock_guard lock{mutex_};
  closed_ = true;
  names_.clear();
  event_.reset();
}

}  // namespace semel::net
