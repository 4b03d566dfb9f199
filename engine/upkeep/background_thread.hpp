// The thread of an engine that ends records and frees memory when no call does.
#pragma once

#include <functional>
#include <thread>

#include "base/mutex.hpp"
#include "semel/types.hpp"

namespace semel::engine {

class BackgroundThread {
 public:
  BackgroundThread() = default;
  ~BackgroundThread() { stop(); }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  /// Calls `step` every so often until stop(). Once. std::system_error.
  void start(Millis every, std::function<void()> step);
  /// Returns when the thread has ended. More than once is allowed.
  void stop();

 private:
  void run(Millis every, const std::function<void()>& step);

  base::Mutex mutex_;
  base::Condition wake_;
  bool stop_ SEMEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace semel::engine
