// Whether a command that writes has run alone, as far as commands are counted here.
#pragma once

#include <atomic>
#include <cstdint>

namespace semel::net {

/// Of two commands that overlap, the later one to begin sees the other in `running`. A command that
/// finds a change of the other one sees its number too: `begun` was counted before the change.
struct WriteCounts {
  std::atomic<std::uint64_t> running{0};
  std::atomic<std::uint64_t> begun{0};
};

/// While a command runs.
class CountedWrite {
 public:
  explicit CountedWrite(WriteCounts& counts) noexcept
      : counts_(counts),
        // mo: acq_rel [writes.overlap]: the later of two sees the earlier one
        began_alone_(counts.running.fetch_add(1, std::memory_order_acq_rel) == 0),
        // mo: acq_rel [writes.overlap]: before its changes, which publish it
        number_(counts.begun.fetch_add(1, std::memory_order_acq_rel) + 1) {}
  ~CountedWrite() {
    // mo: release [writes.overlap]: behind its changes
    counts_.running.fetch_sub(1, std::memory_order_release);
  }
  CountedWrite(const CountedWrite&) = delete;
  CountedWrite& operator=(const CountedWrite&) = delete;

  /// Whether no other command that is counted has run since it began.
  [[nodiscard]] bool is_alone() const noexcept {
    // mo: acquire [writes.overlap]: a change that was found brings its number
    return began_alone_ && counts_.begun.load(std::memory_order_acquire) == number_;
  }

 private:
  WriteCounts& counts_;
  const bool began_alone_;
  const std::uint64_t number_;
};

}  // namespace semel::net
