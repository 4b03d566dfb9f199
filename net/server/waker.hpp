// How other threads reach a connection: its waker puts it into a list of its thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "net/server/descriptor.hpp"
#include "net/server/peer.hpp"

namespace semel::net {

/// Which connection of a thread: place and generation, so that an old name finds no connection.
using LinkName = std::uint64_t;

/// Of one thread. Wakers keep it alive after the thread has gone; then nothing happens.
class WakeQueue {
 public:
  WakeQueue();

  /// Becomes readable when something was put into an empty list.
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }
  void put(LinkName name) noexcept;
  /// Makes descriptor() readable and puts nothing in. Needs no memory.
  void ring() noexcept;
  /// Everything that was put in, and makes descriptor() unreadable. On the thread itself.
  void pop_all(std::vector<LinkName>& names);
  void close() noexcept;

 private:
  Descriptor event_;
  base::Mutex mutex_;
  std::vector<LinkName> names_ SEMEL_GUARDED_BY(mutex_);
  bool closed_ SEMEL_GUARDED_BY(mutex_) = false;
};

/// [waker.rung]: what was done before a ring is visible to the collect() that it causes. A ring
/// that finds the flag set is covered by a collect() that has not begun.
class Waker final : public PeerHost {
 public:
  Waker(std::shared_ptr<WakeQueue> queue, LinkName name) noexcept
      : queue_(std::move(queue)), name_(name) {}

  void wake() noexcept override {
    // mo: acq_rel [waker.rung]: this ring's work is before the clearing that finds it.
    if (!rung_.exchange(true, std::memory_order_acq_rel)) queue_->put(name_);
  }
  /// Before each collect().
  void clear() noexcept {
    // mo: acq_rel [waker.rung]: sees what was done before the rings that it covers.
    rung_.exchange(false, std::memory_order_acq_rel);
  }

 private:
  const std::shared_ptr<WakeQueue> queue_;
  const LinkName name_;
  std::atomic<bool> rung_{false};
};

}  // namespace semel::net
