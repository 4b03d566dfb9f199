// How long the disk has taken. Waiting for a disk is measured by the machine's steady clock, not by
// the engine's: a test that stops the engine's time must not wait for ever.
#pragma once

#include <chrono>

#include "semel/types.hpp"

namespace semel::storage {

class Stopwatch {
 public:
  [[nodiscard]] Millis passed() const noexcept {
    return std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - start_);
  }
  [[nodiscard]] double seconds() const noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  void restart() noexcept { start_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace semel::storage
