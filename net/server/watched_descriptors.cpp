#include "net/server/watched_descriptors.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace semel::net {

bool add_to(int epoll, int descriptor, ConnectionName name) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = name;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

Result<std::size_t> WatchedDescriptors::watch(int descriptor, std::function<void()> ready) {
  const auto free = std::find_if(watched_.begin(), watched_.end(),
                                 [](const Watched& each) { return each.descriptor < 0; });
  const auto index = static_cast<std::size_t>(free - watched_.begin());
  if (free == watched_.end()) watched_.emplace_back();
  if (add_to(epoll_, descriptor, bit | index)) {
    watched_[index] = {descriptor, std::move(ready)};
    return index;
  }
  return Error{ErrorCode::no_thread,
               "a listener cannot be watched: " + std::string{std::strerror(errno)}};
}

void WatchedDescriptors::set(std::size_t index, bool on) {
  epoll_event event{};
  event.events = on ? EPOLLIN : 0U;
  event.data.u64 = bit | index;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, watched_[index].descriptor, &event);
}

void WatchedDescriptors::forget(std::size_t index) noexcept {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, watched_[index].descriptor, nullptr);
  watched_[index] = {};
}

void WatchedDescriptors::call(ConnectionName name) const {
  const Watched& watched = watched_[name & ~bit];
  if (watched.ready) watched.ready();
}

}  // namespace semel::net
