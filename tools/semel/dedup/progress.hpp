// One progress line on the terminal. Nothing is written if standard error is not a terminal.
#pragma once

#include <cstdint>

#include "semel/clock.hpp"

namespace semel::tool {

class Progress {
 public:
  /// `bytes_total` 0: not known, no percentage and no time left.
  Progress(bool enabled, std::uint64_t bytes_total);

  struct Counts {
    std::uint64_t bytes = 0;
    std::uint64_t lines = 0;
    std::uint64_t duplicates = 0;
  };
  /// Draws again if enough time has passed.
  void show(const Counts& counts) {
    if (enabled_) draw(counts);
  }
  /// Takes the line off the terminal, before anything else is written there.
  void clear();

  /// Since construction.
  [[nodiscard]] Millis elapsed() const { return clock_.now() - start_; }

  /// True if standard error is a terminal and standard output is not: lines on the same terminal
  /// would tear the progress line apart.
  [[nodiscard]] static bool is_wanted();

 private:
  void draw(const Counts& counts);

  SystemClock clock_;
  Timestamp start_;
  Timestamp next_;
  std::uint64_t bytes_total_;
  bool enabled_;
  bool drawn_ = false;
};

}  // namespace semel::tool
