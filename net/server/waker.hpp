// How other threads reach a connection: its waker puts it into a list of the connection's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "net/server/descriptor.hpp"
#include "net/server/session.hpp"

namespace semel::net {

/// Names a connection of one thread: slot and generation, so that an old name finds no connection.
using ConnectionName = std::uint64_t;

/// One per thread. Wakers keep it alive after the thread has gone; then it does nothing.
class WakeQueue {
 public:
  WakeQueue();

  /// Becomes readable when something was put into an empty list.
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }
  /// Adds a name. If there is no memory for it, pop_all() reports that one was lost.
  void put(ConnectionName name) noexcept;
  /// Makes descriptor() readable and puts nothing in. Needs no memory.
  void ring() noexcept;
  /// Takes all names, and makes descriptor() unreadable. On the thread itself. False: a name was
  /// lost, so every connection may be meant.
  [[nodiscard]] bool pop_all(std::vector<ConnectionName>& names) noexcept;
  void close() noexcept;

 private:
  Descriptor event_;
  base::Mutex mutex_;
  std::vector<ConnectionName> names_ SEMEL_GUARDED_BY(mutex_);
  bool lost_one_ SEMEL_GUARDED_BY(mutex_) = false;
  bool closed_ SEMEL_GUARDED_BY(mutex_) = false;
};

/// [waker.signalled]: the work before a wakeup is visible to the collect() that it causes. A wakeup
/// that finds the flag set is covered by a collect() that has not begun.
class Waker final : public SessionHost {
 public:
  Waker(std::shared_ptr<WakeQueue> queue, ConnectionName name) noexcept
      : queue_(std::move(queue)), name_(name) {}

  void wake() noexcept override {
    // mo: acq_rel [waker.signalled]: this wakeup's work is before the clearing that finds it.
    if (!signalled_.exchange(true, std::memory_order_acq_rel)) queue_->put(name_);
  }
  /// Before each collect().
  void clear() noexcept {
    // mo: acq_rel [waker.signalled]: sees the work before the wakeups that it covers.
    signalled_.exchange(false, std::memory_order_acq_rel);
  }

 private:
  const std::shared_ptr<WakeQueue> queue_;
  const ConnectionName name_;
  std::atomic<bool> signalled_{false};
};

}  // namespace semel::net
