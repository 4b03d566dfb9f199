#include "engine/upkeep/background_thread.hpp"

#include <utility>

#include "base/assert.hpp"

namespace semel::engine {

void BackgroundThread::start(Millis every, std::function<void()> step) {
  SEMEL_ASSERT(!thread_.joinable());
  thread_ = std::thread{[this, every, step = std::move(step)] { run(every, step); }};
}

void BackgroundThread::run(Millis every, const std::function<void()>& step) {
  base::MutexLock lock{mutex_};
  while (!stop_) {
    wake_.wait_for(lock, every);
    if (stop_) return;
    lock.unlock();
    step();
    lock.lock();
  }
}

void BackgroundThread::stop() {
  {
    const base::MutexLock lock{mutex_};
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace semel::engine
