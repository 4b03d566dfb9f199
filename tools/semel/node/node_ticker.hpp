// The thread that lets time pass for a node.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "net/node/node.hpp"
#include "semel/engine.hpp"

namespace semel::tool {

/// What has ended is removed and told, waits with a deadline are ended.
class Ticker {
 public:
  static constexpr std::chrono::milliseconds often{100};

  /// `now_and_then` is called about as often as that.
  Ticker(net::Node& node, std::function<void()> now_and_then);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /// From now on no client waits: the node ends, and they would hold it up.
  void end_waits() noexcept;

 private:
  void run();
  void release_clients();

  net::Node& node_;
  const std::function<void()> now_and_then_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stops_ = false;  // under mutex_
  std::atomic<bool> ends_waits_{false};
  std::thread thread_;
};

}  // namespace semel::tool
