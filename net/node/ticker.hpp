// The thread that sweeps ended records and runs deadlines of a node.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "base/mutex.hpp"
#include "net/node/node.hpp"
#include "semel/engine.hpp"

namespace semel::net {

/// Removes ended records, publishes their events, and ends waits whose deadline has passed.
class Ticker {
 public:
  static constexpr std::chrono::milliseconds often{100};

  /// `now_and_then` is called about as often as that. `node` must outlive this. std::system_error:
  /// there is no thread.
  explicit Ticker(
      Node& node, std::function<void()> now_and_then = [] {});
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /// From now on no client may wait: waits would delay the shutdown. Any thread.
  void end_waits() noexcept;

 private:
  void run();
  void release_clients();

  Node& node_;
  const std::function<void()> now_and_then_;
  base::Mutex mutex_;
  base::Condition stopped_;
  bool stops_ SEMEL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> ends_waits_{false};
  std::thread thread_;
};

}  // namespace semel::net
