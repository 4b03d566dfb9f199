#include "replication/parts/loop_thread.hpp"

#include <poll.h>

#include <system_error>

#include "base/assert.hpp"
#include "semel/types.hpp"
#include "storage/log/disk.hpp"

namespace semel::replication {

Status LoopThread::start() {
  SEMEL_ASSERT(!thread_.joinable());
  guard_.emplace(context_.get_executor());
  try {
    thread_ = std::thread{[this] { run(); }};
  } catch (const std::system_error&) {
    return Error{ErrorCode::no_thread, "the replica's thread"};
  }
  return Done{};
}

void LoopThread::run() {
  storage::name_thread("semel-replica");
  run_part(hooks_.begin);
  for (;;) {
    try {
      if (!is_armed_ && ticks_) arm();
      context_.run();
      return;
    } catch (const std::bad_alloc&) {
      hooks_.starved();
      pause();
    }
  }
}

void LoopThread::arm() {
  timer_.expires_after(Millis{static_cast<std::int64_t>(hooks_.tick_after())});
  timer_.async_wait([this](const boost::system::error_code& error) {
    is_armed_ = false;
    if (error || !ticks_) return;
    run_part(hooks_.tick);
    if (ticks_) arm();
  });
  is_armed_ = true;
}

void LoopThread::stop_ticking() noexcept {
  ticks_ = false;
  timer_.cancel();
}

void LoopThread::join(const std::function<void()>& last) {
  if (!thread_.joinable()) return;
  post_surely([this, &last] {
    last();
    guard_.reset();
  });
  thread_.join();
}

void LoopThread::drain() {
  context_.restart();
  context_.poll();
}

void LoopThread::pause() noexcept {
  poll(nullptr, 0, 1);
}

}  // namespace semel::replication
