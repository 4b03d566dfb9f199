// The time of a group, as one of its replicas has it.
#pragma once

#include <optional>

#include "semel/clock.hpp"

namespace semel::engine {

/// Between entries it goes on by the replica's own clock. Thread-safe.
class GroupTime : public Clock {
 public:
  /// The time, if this replica knows it, and has recently had everything that the group had
  /// decided. Answers of finished work may be repeated then without asking the others: at worst an
  /// operator has made it forgotten a moment ago.
  [[nodiscard]] virtual std::optional<Timestamp> if_current() const noexcept = 0;
};

}  // namespace semel::engine
