// From the engine's threads back to the thread of a request: a coroutine waits for a callback on
// another thread.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

#include "base/mutex.hpp"

namespace semel::gateway {

/// Posts to an io_context until it is closed; later posts are dropped. Thread-safe.
class Bridge {
 public:
  explicit Bridge(boost::asio::io_context& io) : io_(&io) {}

  template <class Function>
  void post(Function&& function) {
    const base::MutexLock lock{mutex_};
    // If it is closed, the waiting coroutine is destroyed with `function`.
    if (io_ != nullptr) boost::asio::post(*io_, std::forward<Function>(function));
  }
  /// After this the io_context may be destroyed.
  void close() {
    const base::MutexLock lock{mutex_};
    io_ = nullptr;
  }

 private:
  base::Mutex mutex_;
  boost::asio::io_context* io_ SEMEL_GUARDED_BY(mutex_);
};

/// `start` gets a callback that takes a Value, and has it called once, on any thread or at once.
template <class Value, class Start>
boost::asio::awaitable<Value> await_callback(std::shared_ptr<Bridge> bridge, Start start) {
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(Value)>(
      [bridge = std::move(bridge), start = std::move(start)](auto handler) mutable {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        start([bridge, shared](Value value) {
          bridge->post([shared, value = std::move(value)]() mutable {
            auto resumed = std::move(*shared);
            std::move(resumed)(std::move(value));
          });
        });
      },
      boost::asio::use_awaitable);
}

}  // namespace semel::gateway
