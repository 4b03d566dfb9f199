// Whether the threads of a node still go round: each says so itself, again and again.
//
// What only one thread says of all of them would be said as well while another is stuck in one call
// and serves nobody.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace semel::tool {

/// Safe from any thread. Progress: a store, or one load a thread.
class Pulse {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  static constexpr std::size_t io_threads_max = 64;
  /// The place of the thread that lets time pass; places before it are the io threads'.
  static constexpr std::size_t ticker = io_threads_max;

  /// The thread at `place` goes round, now; from the first time on it is expected to.
  void beat(std::size_t place, Time now) noexcept;
  /// A thread that has been silent for longer than `limit`: "io thread 2 has not answered for
  /// 7.2 s". None: all of them go round.
  [[nodiscard]] std::optional<std::string> silent(Time now, Duration limit) const;

 private:
  // mo: relaxed throughout: a time stands for itself.
  std::array<std::atomic<std::int64_t>, io_threads_max + 1> beats_{};  // 0: not expected
};

}  // namespace semel::tool
