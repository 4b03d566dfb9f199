// Heartbeats of a node's threads.
//
// Each thread has its own: a heartbeat of one thread would not show that another one is blocked in
// a call.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "net/settings/setting_limits.hpp"
#include "semel/result.hpp"

namespace semel::tool {

/// Safe from any thread. Progress: a store, or one load a thread.
class Pulse {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  /// The index of the ticker's thread; io threads have the indices before it.
  static constexpr std::size_t ticker = net::io_threads_max;

  /// The thread at index `place` is alive now. From its first beat on, more are expected.
  void beat(std::size_t place, Time now) noexcept;
  /// Error: a thread has been silent for longer than `limit`. The detail names it: "io thread 2 has
  /// not answered for 7.2 s".
  [[nodiscard]] Status check(Time now, Duration limit) const;

 private:
  // mo: relaxed throughout: a time stands for itself.
  std::array<std::atomic<std::int64_t>, net::io_threads_max + 1> beats_{};  // 0: not expected
};

}  // namespace semel::tool
