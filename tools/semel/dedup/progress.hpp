// The progress line of a dedup run.
#pragma once

#include <cstdint>

#include "tools/semel/shared/progress_line.hpp"

namespace semel::tool {

class Progress {
 public:
  /// `bytes_total` 0: not known, no percentage and no time left.
  Progress(ProgressLine& line, std::uint64_t bytes_total)
      : line_(line), bytes_total_(bytes_total) {}

  struct Counts {
    std::uint64_t bytes = 0;
    std::uint64_t lines = 0;
    std::uint64_t duplicates = 0;
  };
  /// Draws again if enough time has passed.
  void show(const Counts& counts) {
    line_.show([&] { return text_of(counts); });
  }
  /// Takes the line off the terminal, before anything else is written there.
  void clear() { line_.clear(); }

 private:
  [[nodiscard]] std::string text_of(const Counts& counts) const;

  ProgressLine& line_;
  std::uint64_t bytes_total_;
};

}  // namespace semel::tool
