// Time that passed on the machine's steady clock, whatever the engine's clock does.
#pragma once

#include <chrono>

namespace semel::base {

/// Starts when it is made.
class Stopwatch {
 public:
  [[nodiscard]] std::chrono::milliseconds passed() const noexcept {
    return std::chrono::duration_cast<std::chrono::milliseconds>(since_start());
  }
  [[nodiscard]] double seconds() const noexcept {
    return std::chrono::duration<double>(since_start()).count();
  }
  void restart() noexcept { start_ = std::chrono::steady_clock::now(); }

 private:
  [[nodiscard]] std::chrono::steady_clock::duration since_start() const noexcept {
    return std::chrono::steady_clock::now() - start_;
  }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace semel::base
