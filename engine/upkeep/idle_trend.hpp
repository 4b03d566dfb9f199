// Whether memory that lies idle grows, call by call.
#pragma once

#include <cstddef>

namespace semel::engine {

/// Of one thread at a time.
class IdleTrend {
 public:
  /// Notes how much lies idle, once a call. True: it grew by more than 3 % from one look, which
  /// comes with each 64th call, to the next. Records are ending then, and a compaction would move
  /// what ends soon and empty spans that empty themselves.
  [[nodiscard]] bool grows(std::size_t idle) noexcept {
    constexpr unsigned look_every = 64;
    if (++calls_ % look_every == 0) {
      grows_ = idle > seen_ + seen_ / 32;
      seen_ = idle;
    }
    return grows_;
  }

 private:
  unsigned calls_ = 0;
  std::size_t seen_ = 0;  // at the last look
  bool grows_ = false;
};

}  // namespace semel::engine
