// What a replica holds, as bytes that two replicas can be compared by.
#pragma once

#include <string>
#include <vector>

#include "replication/state/state_machine.hpp"

namespace semel::tests {

struct Canonical {
  replication::ReplicaState state;
  /// A mutation each, ascending: on each replica a snapshot comes in another order.
  std::vector<std::string> mutations;
  Status status{Done{}};

  /// Everything, as one text of bytes.
  [[nodiscard]] std::string bytes() const;
};

[[nodiscard]] std::string bytes_of(const Mutation& mutation);
[[nodiscard]] Canonical canonical(replication::StateMachine& replica);
/// A new replica with this state. `options`: as for StateMachine::open.
[[nodiscard]] Result<std::unique_ptr<replication::StateMachine>> copy_of(
    replication::StateMachine& replica, const Options& options);

}  // namespace semel::tests
