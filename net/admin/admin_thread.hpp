// Work for the thread of an admin server.
#pragma once

#include <functional>
#include <utility>

#include "base/mutex.hpp"

namespace semel::net {

/// Runs functions on the thread of an AdminServer; may outlive it.
class AdminThread {
 public:
  using Post = std::function<void(std::function<void()>)>;

  explicit AdminThread(Post post) : post_(std::move(post)) {}

  /// From any thread; does not wait for `work`. Without effect after the server's end.
  void post(std::function<void()> work) {
    const base::MutexLock lock{mutex_};
    if (post_) post_(std::move(work));
  }
  /// The server ends.
  void close() {
    const base::MutexLock lock{mutex_};
    post_ = nullptr;
  }

 private:
  base::Mutex mutex_;
  Post post_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::net
